//! Work waits long for a worker of the thread pool.

use crate::findings::prelude::*;
use crate::subjects::pool::percentile;

pub(super) const RULE: Rule = Rule {
    name: "queue_delay",
    title: "Work waits in the queue of the thread pool",
    about: "Work waits long in the queue of the thread pool.",
    measure: "99th percentile of the time from queueing a work item to a worker taking it. At least 100 items. Where these events are not \
        recorded, the mean wait by the runtime's counters: the length of the queue, divided by the work items that end in a second.",
    unit: "ns",
    info: 1e8,
    warning: 1e9,
    needs: &["work_items", "pool_counters"],
    record: "threadpool",
    advice: "Free the workers: `await` where they block, and move long calculations to a thread of their own or do less of \
        them at a time.",
    closer: closer::WAITS,
    causes: &["blocked_workers", "starvation", "lock_convoy", "hot_method"],
    evidence: Evidence { sections: &["pool"], sort: None },
    query: "SELECT queue_ts, kind, wait_ns / 1e6 AS wait_ms FROM thread_pool_work WHERE {process} AND wait_ns IS NOT NULL \
        ORDER BY wait_ns DESC LIMIT 20",
    example: Example::of("habits/inbox", "habits/inbox-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Intervals of counters for a verdict.
const LEAST_INTERVALS: u64 = 3;

fn judge(look: &Look<'_>) -> Judged {
    let rows = look.process.queued_ns.len() as u64;
    let queue = &look.process.queue;
    if rows == 0
        && let Some((value, mean)) = queue.wait_ns().zip(queue.mean()).filter(|_| queue.intervals >= LEAST_INTERVALS)
    {
        let sentence = format!(
            "{} work items wait for a worker on average, each about {}, by the counters of the thread pool.",
            words::three(mean.round()),
            words::time(value)
        );
        let evidence = look
            .sql("SELECT ts, name, value FROM counter WHERE {process} AND name LIKE 'threadpool-%' ORDER BY name, ts");
        return Figure { value, rows: queue.intervals, sentence, evidence, ..Figure::default() }.into();
    }
    if rows < 100 {
        return Judged::too_few(rows, 100, "work items of the thread pool");
    }
    let value = percentile(&look.process.queued_ns, 99).unwrap_or_default() as f64;
    let sentence = format!("1 % of work items wait {} or more for a worker.", words::time(value));
    Figure { value, rows, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, ThreadPoolWork};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (0..200).for_each(|n| {
            let row = ThreadPoolWork {
                queue_ts_ns: n,
                start_ts_ns: Some(n + ns(2 * S)),
                process_id: 7,
                kind: "work",
                ..ThreadPoolWork::default()
            };
            made.tables.add(&row);
        });
    }
}
