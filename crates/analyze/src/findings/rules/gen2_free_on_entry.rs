//! Background collections begin though much of generation 2 is free.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "gen2_free_on_entry",
    unit: "share",
    info: 0.15,
    warning: 0.70,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &["large_object_triggers", "induced", "leak", "growing_live_set"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut free, mut size, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.is_background && gc.generation == Some(2)) {
        let Some([_, _, old, ..]) = all.generations_of(gc) else { continue };
        free += old.free_before as f64;
        size += old.size_before as f64;
        rows += 1;
    }
    if rows < 3 || size < rows as f64 * 10e6 {
        return Judged::too_little(format!(
            "{rows} background collections of {} of generation 2 are too little.",
            words::size(size / rows.max(1) as f64)
        ));
    }
    let value = free / size;
    let sentence = format!("When background collections began, {} of generation 2 was free.", words::percent(value));
    let evidence = format!(
        "SELECT g.gc_id, g.start_ts, g.reason, sum(h.size_before_bytes) AS size_bytes, \
         sum(h.free_list_before_bytes + h.free_object_before_bytes) AS free_bytes FROM gc g JOIN gc_heap_generation h \
         ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {} AND g.kind = 'background' AND h.generation = 2 \
         GROUP BY ALL ORDER BY g.start_ts LIMIT 20",
        look.of("g")
    );
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows, at_most, sentence, evidence, ..Figure::default() }.into()
}
