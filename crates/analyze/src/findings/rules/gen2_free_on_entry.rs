//! Background collections begin though much of generation 2 is free.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "gen2_free_on_entry",
    title: "Gen 2 GCs start while much of gen 2 is free",
    about: "Gen 2 GCs begin though much of gen 2 is free: new objects do not fit into its holes, or something else starts them.",
    measure: "Free bytes of gen 2, divided by its size, when gen 2 GCs begin that were not induced. At least three, and 10 MB. Gen 2 \
        GCs that take less than 1 % of the time, and none 100 ms, are fine; a warning is possible from 5 % or 500 ms \
        on.",
    unit: "share",
    info: 0.15,
    warning: 0.70,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc): 15 and 70 %.",
    needs: &["collections"],
    record: "gc",
    advice: "Take away what makes the holes: objects that stay pinned (`GCHandle.Free`, dispose of the `MemoryHandle`, allocate what native \
        code uses with `GC.AllocateArray(pinned: true)`), and few old objects between many that go. Take away what else starts them: \
        allocations of large objects.",
    causes: &["large_object_triggers", "induced", "leak", "growing_live_set"],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["heap", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, g.reason, sum(h.size_before_bytes) AS size_bytes, \
        sum(h.free_list_before_bytes + h.free_object_before_bytes) AS free_bytes FROM gc g JOIN gc_heap_generation h \
        ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {process of g} AND g.generation = 2 AND h.generation = 2 \
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
    let mut pinned = 0.0;
    for gc in all.of(look.id).filter(|gc| gc.generation == Some(2) && !gc.is_induced && !gc.is_dump) {
        let Some(found) = all.generations_of(gc) else { continue };
        pinned += found.old_pinned as f64;
        free += found.old_free as f64;
        size += found.old_before as f64;
        rows += 1;
    }
    if rows < 3 {
        return Judged::too_few(rows, 3, "gen 2 GCs");
    }
    if size < rows as f64 * shared::LEAST_BYTES {
        return Judged::TooLittle(shared::lack_of_bytes(size / rows as f64, "of gen 2"));
    }
    let value = free / size;
    let most = shared::pinned_by(look).filter(|_| pinned > 0.0);
    let mean = |sum: f64| words::size(sum / rows as f64);
    let pins = if pinned > 0.0 { format!(" {} in it stayed pinned.", mean(pinned)) } else { String::new() };
    let by = most.as_ref().map_or(String::new(), |most| {
        format!(" Most of what is pinned is allocated by {}{}.", most.method, most.inlined)
    });
    let (part, own_method) = (words::percent(value), most.map(|most| most.method));
    let sentence =
        format!("When gen 2 GCs began, {part} of gen 2 was free ({} of {}).{pins}{by}", mean(free), mean(size));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows, at_most, own_method, sentence, ..Figure::default() }.into()
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
