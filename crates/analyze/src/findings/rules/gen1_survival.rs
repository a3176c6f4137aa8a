//! Much of what is in generation 1 lives on into generation 2.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "gen1_survival",
    title: "Most of gen 1 survives into gen 2",
    about: "What is in gen 1 lives on, so that it fails as the place where short lives end.",
    measure: "Bytes of gen 1 that survived gen 1 GCs, divided by its objects at their start. At least ten; below 1 MB \
        a second it is fine, from 10 MB on a warning is possible. Within ten seconds there is no warning: what a \
        program keeps, it makes when it starts. Where allocations and surviving ranges are recorded, too (`--for all`), your method with most of it is \
        named.",
    unit: "share",
    info: 0.50,
    warning: 0.80,
    needs: &["collections"],
    record: "gc",
    advice: "Keep objects for less time: less across an `await`, in queues and in batches; or for good, in a cache with a \
        bound.",
    closer: closer::RECORD_LIFETIMES,
    causes: &["leak", "growing_live_set", "dies_in_gen2"],
    evidence: Evidence { sections: &["survival", "heap", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, sum(h.object_before_bytes) AS object_bytes, \
        sum(h.pinned_survived_bytes + h.other_survived_bytes) AS survived_bytes FROM gc g JOIN gc_heap_generation h \
        ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {process of g} AND g.generation = 1 AND h.generation = 1 GROUP BY ALL \
        ORDER BY survived_bytes DESC LIMIT 20",
    example: Example::of("habits/grows", "habits/grows-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Seconds without which there is no warning: what a program keeps, it makes when it starts, and all of that lives on.
const WARM: f64 = 10.0;

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut survived, mut objects, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation == Some(1) && !gc.is_dump) {
        let Some(found) = all.generations_of(gc) else { continue };
        survived += found.middle_survived as f64;
        objects += found.middle_objects as f64;
        rows += 1;
    }
    // More than all survive when objects came in meanwhile.
    let value = (survived / objects.max(1.0)).min(1.0);
    let few = Few::share(value, rows, shared::LEAST_COLLECTIONS, "gen 1 GCs");
    let rate = look.per_second(survived);
    // Where sampled objects were followed, those that got there have call sites.
    let (followed, _) = look.process.survivors.rows();
    let old = followed.iter().filter(|row| row.reached == Some(2)).map(|row| (row.site, row.bytes));
    let old: Vec<(u32, f64)> = old.collect();
    let most = look.picture.sites.most(old.iter().copied());
    let by = most.as_ref().map_or(String::new(), |most| {
        format!(", most of it by {}{}{}", most.method, most.inlined, shared::called_by(look, &most.method, &old))
    });
    let (part, rate_of) = (words::percent(value), words::size(rate));
    let sentence = format!("{part} of what was in gen 1 survived into gen 2, {rate_of} a second{by}.");
    let own_method = most.map(|most| most.method);
    // A large share of a few bytes costs nothing.
    let by_rate = score(rate, 1e6, 10e6);
    let at_most = Some(if look.seconds() < WARM { by_rate.min(60.0) } else { by_rate });
    Figure { value, rows, at_most, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapGeneration};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 1, "AllocSmall", "blocking");
            let row = GcHeapGeneration {
                gc_id,
                generation: 1,
                object_before_bytes: 100_000_000,
                other_survived_bytes: (x * 95e6) as u64,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        });
    }
}
