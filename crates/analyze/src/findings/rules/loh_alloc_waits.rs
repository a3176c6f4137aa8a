//! Threads that allocate large objects wait for a background collection.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "loh_alloc_waits",
    title: "Allocations of large objects wait for a background GC",
    about: "Threads that allocate large objects have to wait until a background GC is further, because large objects \
        grow too much meanwhile.",
    measure: "The longest of these waits (`gc_allocation_wait`, of large and pinned objects).",
    unit: "ns",
    info: 2e8,
    warning: 1e9,
    source: "GCStats of PerfView marks 200 ms; 1 s as `long_pause`.",
    needs: &["allocation_waits"],
    record: "gc",
    advice: "Reuse large arrays (`ArrayPool<T>`), or make them smaller than 85,000 bytes.",
    closer: closer::ALLOCATIONS,
    causes: &["large_object_triggers", "leak", "growing_live_set"],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["stacks-allocations", "collections"], sort: Some("pause") },
    query: "SELECT start_ts, thread_id, reason, duration_ns / 1e6 AS wait_ms, callsite_id FROM gc_allocation_wait WHERE {process} \
        AND (reason LIKE '%loh%' OR reason LIKE '%uoh%') ORDER BY duration_ns DESC LIMIT 20",
    example: Example::of("habits/large-waits", "habits/large-waits-clean", Verdict::Warning).by("Depot.Photos.Develop"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    let waits = &look.process.allocation_waits;
    let value = waits.values().map(|load| load.longest_ns).max().unwrap_or_default() as f64;
    let rows: u64 = waits.values().map(|load| load.count).sum();
    if rows == 0 {
        let sentence = "No thread waited to allocate a large object.".to_owned();
        return Figure { sentence, ..Figure::default() }.into();
    }
    let most = sites.most(waits.iter().map(|(site, load)| (*site, load.times.total)));
    let at = most.as_ref().map_or(String::new(), |most| format!(", most in {}{}", most.method, most.inlined));
    let own_method = most.map(|most| most.method);
    let times = if rows == 1 { "once".to_owned() } else { format!("{rows} times") };
    let total: f64 = waits.values().map(|load| load.times.total).sum();
    let sentence = format!(
        "Threads that allocate large objects waited {times} for a background GC{at}: up to {}, {} in all.",
        words::time(value),
        words::time(total)
    );
    Figure { value, rows, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcAllocationWait};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        let site = made.site(&["Shop.Pictures.Draw()"]);
        for n in 0..5 {
            for (reason, duration) in [("uoh_alloc_during_bgc", ns(2 * S)), ("low_memory", 5 * S)] {
                let row = GcAllocationWait {
                    start_ts_ns: n * 10 * S,
                    end_ts_ns: Some(n * 10 * S + duration),
                    process_id: 7,
                    callsite_id: site,
                    reason: Some(reason),
                    ..GcAllocationWait::default()
                };
                made.tables.add(&row);
            }
        }
    }
}
