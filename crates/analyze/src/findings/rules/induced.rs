//! The program asks for collections.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "induced",
    title: "GCs are induced",
    about: "The program induces GCs: `GC.Collect`, or memory pressure that it reports.",
    measure: "GCs with a reason that begins with `Induced`, divided by all; those that list the heap for a dump are \
        left out. Of fewer than ten GCs there is no warning. The query names who asked.",
    unit: "share",
    info: 0.0,
    warning: 0.50,
    source: "JDK Mission Control: 50 %.",
    needs: &["collections"],
    record: "gc",
    advice: "Take the calls of `GC.Collect` and `GC.AddMemoryPressure` out: the GC knows when it is worth it.",
    evidence: Evidence { sections: &["collections"], sort: Some("reason") },
    query: "SELECT g.gc_id, g.start_ts, g.generation, g.reason, g.pause_ns / 1e6 AS pause_ms, s.own_method FROM gc g \
        LEFT JOIN site s ON s.trace_id = g.trace_id AND s.callsite_id = g.trigger_callsite_id \
        WHERE {process of g} AND g.reason LIKE 'Induced%' AND g.heap_object_count = 0 ORDER BY g.start_ts LIMIT 20",
    example: Example::of("habits/induced", "habits/induced-clean", Verdict::Warning).by("Depot.Cleaning.After"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let (mut all, mut induced) = (0u64, 0u64);
    let mut sites: Vec<(u32, f64)> = Vec::new();
    // Collections that list the heap were requested by the recorder, not by the program.
    for gc in picture.collections.of(*id).filter(|gc| !gc.is_dump) {
        all += 1;
        if gc.is_induced {
            induced += 1;
            sites.push((gc.trigger_site, 1.0));
        }
    }
    if all == 0 {
        return Judged::none("GC");
    }
    let most = picture.sites.most(sites);
    let by = most.as_ref().map_or(String::new(), |most| format!(", most by {}{}", most.method, most.inlined));
    let sentence = format!("{induced} of {all} GCs were induced (GC.Collect or memory pressure){by}.");
    let own_method = most.map(|most| most.method);
    // Of a few collections, one is a large share.
    let at_most = (all < shared::LEAST_COLLECTIONS).then_some(50.0);
    Figure { value: induced as f64 / all as f64, rows: all, at_most, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        (1..=20).for_each(|n| made.gc(n, 1, if part(n - 1, 20) { "Induced" } else { "AllocSmall" }, "blocking"))
    }
}
