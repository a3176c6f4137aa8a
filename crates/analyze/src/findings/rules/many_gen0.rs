//! Young collections follow each other closely: the program allocates much.

use crate::findings::allocations;
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::windows::Windows;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "many_gen0",
    unit: "count/s",
    info: 10.0,
    warning: 50.0,
    needs: &["collections"],
    record: "gc,allocations",
    next: "tracequet export IN --what allocation --own",
    causes: &["boxing", "string_churn", "induced"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut windows, mut rows, mut bytes) = (Windows::default(), 0u64, 0.0);
    for gc in look.picture.collections.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        windows.at(gc.start_ns, 1.0);
        bytes += gc.allocated.unwrap_or_default() as f64;
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || look.seconds() < 1.0 {
        return Judged::too_little(format!(
            "{rows} collections of generation 0 and 1 in {} are too few.",
            words::time(look.recording_ns() as f64)
        ));
    }
    let value = windows.worst(look.recording_ns()) * 1e9;
    let part = allocations::part(look, |_, _, _, allocated| (allocated.bytes, allocated.samples));
    let rate = match bytes > 0.0 {
        true => format!(", with {} allocated a second", words::size(bytes / look.seconds())),
        false => String::new(),
    };
    let sentence = format!(
        "{} collections of generation 0 and 1 a second in the worst half minute{rate}{}.",
        words::three(value),
        part.by()
    );
    let evidence = format!(
        "SELECT date_trunc('second', start_ts) AS second, count(*) AS collections, sum(allocated_bytes) AS allocated_bytes, \
         sum(pause_ns) / 1e6 AS pause_ms, max(gen0_budget_bytes) AS gen0_budget_bytes, max(heap_count) AS heaps FROM gc \
         WHERE {} AND generation <= 1 GROUP BY ALL ORDER BY collections DESC LIMIT 20",
        look.of_process
    );
    // Many that take no time are no matter.
    let at_most = shared::cost_of_young(look);
    Figure { value, rows, at_most, own_method: part.own_method, sentence, evidence, ..Figure::default() }.into()
}
