//! Work waits long for a worker of the thread pool.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "queue_delay",
    unit: "ns",
    info: 1e8,
    warning: 1e9,
    needs: &["work_items"],
    record: "threadpool",
    next: "tracequet stats IN",
    causes: &["blocked_workers", "starvation", "lock_convoy"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let queued = &look.process.queued;
    if queued.count < 100 {
        return Judged::too_little(format!("{} work items of the thread pool are too few.", queued.count));
    }
    let value = queued.quantile(0.99);
    let sentence = format!("One of 100 work items waits {} or longer for a worker.", words::time(value));
    let evidence = format!(
        "SELECT queue_ts, kind, wait_ns / 1e6 AS wait_ms FROM thread_pool_work WHERE {} AND wait_ns IS NOT NULL \
         ORDER BY wait_ns DESC LIMIT 20",
        look.of_process
    );
    Figure { value, rows: queued.count, sentence, evidence, ..Figure::default() }.into()
}
