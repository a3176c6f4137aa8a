//! Too many collections are full ones.

use crate::findings::prelude::*;
use crate::subjects::collections::NOT_DUMP;

pub(super) const RULE: Rule = Rule {
    name: "many_gen2",
    title: "Many GCs are gen 2",
    about: "Too many GCs are gen 2.",
    measure: "Gen 2 GCs, as a share of all. At least ten GCs. Gen 2 GCs that take less than 1 % of the time, and none \
        100 ms, are fine; a warning is possible from 5 % or 500 ms on.",
    unit: "share",
    info: 0.10,
    warning: 0.30,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); Visual Studio (DA0005); limits tracequet's own.",
    needs: &["collections"],
    record: "gc",
    advice: "Allocate fewer large objects, take `GC.Collect` out, and keep less alive for a middle time.",
    causes: &["large_object_triggers", "induced", "high_memory_load", "leak", "growing_live_set"],
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    example: Example::of("habits/induced", "habits/induced-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut full, mut other) = (0u64, 0u64);
    for gc in look.picture.collections.of(look.id).filter(|gc| !gc.is_dump) {
        if gc.generation == Some(2) { full += 1 } else { other += 1 }
    }
    let rows = full + other;
    let value = full as f64 / rows.max(1) as f64;
    let few = Few::share(value, rows, shared::LEAST_COLLECTIONS, "GCs");
    let sentence = format!("{full} of {rows} GCs were gen 2.");
    let evidence = shared::collections(look, &format!("generation = 2 AND {NOT_DUMP}"));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows, at_most, few, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        (1..=20).for_each(|n| made.gc(n, if part(n - 1, 20) { 2 } else { 0 }, "AllocSmall", "background"))
    }
}
