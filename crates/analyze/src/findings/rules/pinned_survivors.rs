//! Much of what survives in the young generations is pinned.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "pinned_survivors",
    title: "Pinned objects survive in the young generations",
    about: "Much of what survives in the young generations is pinned, so that memory around it stays free and unused.",
    measure: "Pinned bytes that survived gen 0 and gen 1 GCs, divided by all that survived. At least ten GCs and 10 \
        MB. Where handles and allocations are recorded, too (`--for all`), your method that allocates most of what is pinned is named.",
    unit: "share",
    info: 0.10,
    warning: 0.30,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["collections"],
    record: "gc",
    advice: "Allocate buffers for native code once, with `GC.AllocateArray(pinned: true)`, and pin shortly (`fixed`).",
    evidence: Evidence { sections: &["heap", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, sum(h.pinned_survived_bytes) AS pinned_bytes, sum(h.other_survived_bytes) AS other_bytes \
        FROM gc g JOIN gc_heap_generation h ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {process of g} AND g.generation <= 1 \
        AND h.generation <= 1 GROUP BY ALL ORDER BY pinned_bytes DESC LIMIT 20",
    example: Example::of("habits/pinned", "habits/pinned-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut pinned, mut survived, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        let Some(found) = all.generations_of(gc) else { continue };
        pinned += found.young_pinned as f64;
        survived += found.young_survived as f64;
        rows += 1;
    }
    if survived < shared::LEAST_BYTES {
        return Judged::TooLittle(shared::lack_of_bytes(survived, "that survive GCs"));
    }
    let value = pinned / survived;
    let few = Few::share(value, rows, shared::LEAST_COLLECTIONS, "gen 0 and gen 1 GCs");
    let most = shared::pinned_by(look);
    let by = most.as_ref().map_or(String::new(), |most| {
        format!(" Most of what was pinned is allocated by {}{}.", most.method, most.inlined)
    });
    let own_method = most.map(|most| most.method);
    let sentence = format!("{} of what survived gen 0 and gen 1 GCs was pinned.{by}", words::percent(value));
    Figure { value, rows, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapGeneration};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            let (pinned_survived_bytes, other_survived_bytes) = ((x * 5e6) as u64, 5_000_000);
            let row =
                GcHeapGeneration { gc_id, pinned_survived_bytes, other_survived_bytes, ..GcHeapGeneration::default() };
            made.tables.add(&row);
        });
    }
}
