//! The thread pool adds workers because none comes free.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "starvation",
    title: "The thread pool is starved",
    about: "The thread pool adds workers because none comes free for long.",
    measure: "Adjustments with the reason `Starvation`, or `CooperativeBlocking` with more workers than before.",
    unit: "count",
    info: 1.0,
    warning: 10.0,
    needs: &["adjustments"],
    record: "threadpool",
    advice: "Do not block workers: `await` in place of `.Result`, `.Wait()` and `Thread.Sleep`, and hold locks shortly. \
        `ThreadPool.SetMinThreads` only hides it.",
    closer: closer::WAITS,
    causes: &["blocked_workers", "lock_convoy"],
    evidence: Evidence { sections: &["pool"], sort: None },
    query: "SELECT ts, worker_count, reason FROM thread_pool WHERE {process} AND starvation ORDER BY ts LIMIT 100",
    example: Example::of("figures/recordings/starved", "figures/recordings/calm", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let value = look.process.starvation.total;
    let sentence = format!("The thread pool added workers {value:.0} times because all were busy.");
    Figure { value, rows: value as u64, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, ThreadPool};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        for n in 0..(x * 20.0) as i64 {
            let row = ThreadPool {
                ts_ns: n * S,
                process_id: 7,
                kind: "adjustment",
                starvation: Some(true),
                ..ThreadPool::default()
            };
            made.tables.add(&row);
        }
    }
}
