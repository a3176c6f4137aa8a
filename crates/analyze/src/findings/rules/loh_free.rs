//! Large objects find no room in what is free among them: their memory is in pieces.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "loh_free",
    title: "The LOH is fragmented",
    about: "There is much free memory between large objects, and new ones do not fit into it.",
    measure: "Free bytes of the LOH, divided by its size, when gen 2 GCs begin; behind a GC it would be what was \
        garbage before. At least three gen 2 GCs, of fewer it is no warning; GCs with less than 50 MB are left out. Below 50 MB of free bytes it \
        is fine, from 500 MB on a warning is possible.",
    unit: "share",
    info: 0.30,
    warning: 0.50,
    needs: &["collections"],
    record: "gc",
    advice: "Use large buffers of one size again (`ArrayPool<T>`). `System.GC.ConserveMemory` makes the GC compact them.",
    closer: closer::ALLOCATIONS,
    causes: &["large_object_triggers"],
    evidence: Evidence { sections: &["heap", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, g.reason, sum(h.size_before_bytes) AS size_bytes, \
        sum(h.free_list_before_bytes + h.free_object_before_bytes) AS free_bytes FROM gc g JOIN gc_heap_generation h \
        ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {process of g} AND g.generation = 2 AND h.generation = 3 \
        GROUP BY ALL ORDER BY g.start_ts LIMIT 20",
    example: Example::of("habits/large-holes", "habits/large-holes-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Bytes of large objects and free memory between them from which on it matters, and full collections that are needed.
const LEAST_BYTES: u64 = 50_000_000;
const LEAST: u64 = 3;

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut free, mut size, mut rows, mut seen) = (0.0, 0.0, 0u64, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation == Some(2)) {
        let Some(found) = all.generations_of(gc) else { continue };
        seen += 1;
        if found.large_before > LEAST_BYTES {
            free += found.large_free as f64;
            size += found.large_before as f64;
            rows += 1;
        }
    }
    if seen == 0 {
        return Judged::too_few(seen, LEAST, "gen 2 GCs");
    }
    let is_enough = rows >= LEAST.min(seen) && size > 0.0;
    let (value, mean) = if is_enough { (free / size, free / rows as f64) } else { (0.0, 0.0) };
    let sentence = match is_enough {
        true => format!("When gen 2 GCs began, {} of the LOH was free ({}).", words::percent(value), words::size(mean)),
        false => "The LOH takes less than 50 MB.".to_owned(),
    };
    let at_most = Some(score(mean, 50e6, 500e6));
    let few = (seen < LEAST).then(|| Few { least: value, lack: Lack::rows(seen, LEAST, "gen 2 GCs") });
    let part = allocations::large_part(look, |_, _, _| true);
    let own_method = part.own_method.filter(|_| is_enough);
    let by = own_method.as_ref().map_or(String::new(), |method| format!(" {method} allocates most of what is large."));
    let sentence = sentence + &by;
    Figure { value, rows: seen, at_most, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapGeneration};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=5).for_each(|gc_id| {
            made.gc(gc_id, 2, "AllocSmall", "background");
            let row = GcHeapGeneration {
                gc_id,
                generation: 3,
                size_before_bytes: 2_000_000_000,
                free_list_before_bytes: (x * 1.5e9) as u64,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        });
    }
}
