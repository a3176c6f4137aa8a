//! Young objects live on because old ones hold them.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "young_held_by_old",
    title: "Old objects keep young ones alive",
    about: "Young objects live on because objects of older generations point to them, so that young GCs have to look \
        through old ones.",
    measure: "Bytes that marking found alive from older generations, divided by all bytes that gen 0 and gen 1 GCs \
        marked. At least ten, and 10 MB. Where the pauses for such GCs take less than 2 % of the time it is fine, from \
        10 % on a warning is possible. Of a generational-aware recording `explain` takes the last walk of the heap: bytes of young objects that \
        old ones point to, divided by those of all young ones. At least 1,000 objects; below 100 kB it is fine.",
    unit: "share",
    info: 0.50,
    warning: 0.80,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["collections"],
    record: "gc",
    advice: "Look for caches, lists and queues that live long and get new elements all the time: reuse their elements, or \
        store values.",
    closer: closer::RECORD_LIFETIMES,
    causes: &["leak", "growing_live_set"],
    evidence: Evidence { sections: &["survival", "heap", "collections"], sort: None },
    query: "SELECT m.root_kind, count(DISTINCT g.gc_id) AS collections, sum(m.promoted_bytes) AS alive_bytes, \
        sum(m.duration_ns) / 1e6 AS mark_ms FROM gc g JOIN gc_mark m ON m.trace_id = g.trace_id AND m.gc_id = g.gc_id \
        WHERE {process of g} AND g.generation <= 1 GROUP BY ALL ORDER BY alive_bytes DESC",
    example: Example::of("habits/old", "habits/old-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut held, mut alive, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        let Some(marked) = all.marked_by(gc) else { continue };
        held += marked.from_older as f64;
        alive += marked.all as f64;
        rows += 1;
    }
    if alive < shared::LEAST_BYTES {
        return Judged::TooLittle(shared::lack_of_bytes(alive, "that young GCs find alive"));
    }
    let value = held / alive;
    let few = Few::share(value, rows, shared::LEAST_COLLECTIONS, "gen 0 and gen 1 GCs");
    let sentence = format!(
        "{} of what gen 0 and gen 1 GCs found alive was held by objects of older generations.",
        words::percent(value)
    );
    // What young collections do not pay for is no matter.
    let at_most = shared::cost_of_young(look);
    Figure { value, rows, at_most, few, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcMark};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            for (root_kind, promoted_bytes) in
                [("older_generation", (x * 9e6) as u64), ("stack", 10_000_000 - (x * 9e6) as u64)]
            {
                made.tables.add(&GcMark { gc_id, root_kind, promoted_bytes, ..GcMark::default() });
            }
        });
    }
}
