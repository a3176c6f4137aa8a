//! Threads that allocate large objects wait for a background collection.

use std::collections::BTreeMap;

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "loh_alloc_waits",
    unit: "ns",
    info: 2e8,
    warning: 1e9,
    needs: &["allocation_waits"],
    record: "gc",
    next: "tracequet export IN --what allocation --own",
    causes: &["large_object_triggers", "leak", "growing_live_set"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    let waits = &look.process.allocation_waits;
    let evidence = format!(
        "SELECT start_ts, thread_id, reason, duration_ns / 1e6 AS wait_ms, callsite_id FROM gc_allocation_wait WHERE {} \
         AND (reason LIKE '%loh%' OR reason LIKE '%uoh%') ORDER BY duration_ns DESC LIMIT 20",
        look.of_process
    );
    let value = waits.values().map(|load| load.longest_ns).max().unwrap_or_default() as f64;
    let rows: u64 = waits.values().map(|load| load.count).sum();
    if rows == 0 {
        let sentence = "No thread waited to allocate a large object.".to_owned();
        return Figure { sentence, evidence, ..Figure::default() }.into();
    }
    let mut methods: BTreeMap<&str, f64> = BTreeMap::new();
    for (site, load) in waits {
        if let Some(method) = sites.own_method(*site) {
            *methods.entry(method).or_default() += load.times.total;
        }
    }
    let own_method = methods.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(method, _)| (*method).to_owned());
    let at = own_method.as_ref().map_or(String::new(), |method| format!(", most in {method}"));
    let times = if rows == 1 { "once".to_owned() } else { format!("{rows} times") };
    let total: f64 = waits.values().map(|load| load.times.total).sum();
    let sentence = format!(
        "Threads that allocate large objects waited {times} for a background collection{at}: up to {}, {} in all.",
        words::time(value),
        words::time(total)
    );
    Figure { value, rows, own_method, sentence, evidence, ..Figure::default() }.into()
}
