//! Background collections begin though much of generation 2 is free.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "gen2_free_on_entry",
    title: "Background GCs start while much of gen 2 is free",
    about: "Background GCs begin though much of gen 2 is free.",
    measure: "Free bytes of gen 2, divided by its size, when background GCs begin. At least three, and 10 MB. Gen 2 \
        GCs that take less than 1 % of the time, and none 100 ms, are fine; a warning is possible from 5 % or 500 ms \
        on.",
    unit: "share",
    info: 0.15,
    warning: 0.70,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc): 15 and 70 %.",
    needs: &["collections"],
    record: "gc",
    advice: "Take away what else starts them: allocations of large objects, and `GC.Collect`.",
    causes: &["large_object_triggers", "induced", "leak", "growing_live_set"],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["heap", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, g.reason, sum(h.size_before_bytes) AS size_bytes, \
        sum(h.free_list_before_bytes + h.free_object_before_bytes) AS free_bytes FROM gc g JOIN gc_heap_generation h \
        ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {process of g} AND g.kind = 'background' AND h.generation = 2 \
        GROUP BY ALL ORDER BY g.start_ts LIMIT 20",
    example: Example::of("habits/holes", "habits/holes-clean", Verdict::Info),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut free, mut size, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.is_background && gc.generation == Some(2)) {
        let Some([_, _, old, ..]) = all.generations_of(gc) else { continue };
        free += old.free_before as f64;
        size += old.before as f64;
        rows += 1;
    }
    if rows < 3 {
        return Judged::too_few(rows, 3, "background GCs");
    }
    if size < rows as f64 * shared::LEAST_BYTES {
        return Judged::TooLittle(shared::lack_of_bytes(size / rows as f64, "of gen 2"));
    }
    let value = free / size;
    let sentence = format!("When background GCs began, {} of gen 2 was free.", words::percent(value));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows, at_most, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapGeneration};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=5).for_each(|gc_id| {
            made.gc(gc_id, 2, "AllocSmall", "background");
            let (size_before_bytes, free_list_before_bytes) = (100_000_000, (x * 100e6) as u64);
            let row = GcHeapGeneration {
                gc_id,
                generation: 2,
                size_before_bytes,
                free_list_before_bytes,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        });
    }
}
