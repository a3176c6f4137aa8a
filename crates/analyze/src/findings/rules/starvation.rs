//! The thread pool adds workers because none comes free.

use crate::findings::rule::{Figure, Judged, Look, Rule};

pub(super) const RULE: Rule = Rule {
    name: "starvation",
    unit: "count",
    info: 1.0,
    warning: 10.0,
    needs: &["adjustments"],
    record: "threadpool",
    next: "tracequet stats IN",
    causes: &["blocked_workers", "lock_convoy"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let value = look.process.starvation.total;
    let sentence = format!("The thread pool added workers {value:.0} times because all were busy.");
    let evidence = format!(
        "SELECT ts, worker_count, reason FROM thread_pool WHERE {} AND starvation ORDER BY ts LIMIT 100",
        look.of_process
    );
    Figure { value, rows: value as u64, sentence, evidence, ..Figure::default() }.into()
}
