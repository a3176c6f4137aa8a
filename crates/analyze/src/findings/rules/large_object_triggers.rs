//! Allocations of large objects make the collector run, each time over the whole heap.

use crate::findings::collections::Gc;
use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "large_object_triggers",
    title: "Large objects trigger GCs",
    about: "Objects of 85,000 bytes and more make the GC run, each time over the whole heap.",
    measure: "GCs with the reason `AllocLarge` or `OutOfSpaceLOH`, divided by all. At least ten GCs. Where gen 2 GCs take \
        less than 1 % of the time, and none 100 ms, it is fine; a warning is possible from 5 % or 500 ms on. The type \
        and your method that triggered most of them are named.",
    unit: "share",
    info: 0.10,
    warning: 0.50,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["collections"],
    record: "gc,allocations",
    advice: "Rent arrays from `ArrayPool<T>`, keep a buffer, or work in pieces below 85,000 bytes.",
    closer: closer::ALLOCATIONS,
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    query: "SELECT g.reason, g.generation, s.own_method, count(*) AS collections, sum(g.pause_ns) / 1e6 AS pause_ms FROM gc g \
        LEFT JOIN site s ON s.trace_id = g.trace_id AND s.callsite_id = g.trigger_callsite_id WHERE {process of g} \
        GROUP BY ALL ORDER BY collections DESC",
    example: Example::of("bugs/large", "bugs/large-clean", Verdict::Warning)
        .by("Shop.Pictures.Answer")
        .about("System.Byte[]"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let is_large = |gc: &&Gc| matches!(picture.text(gc.reason), Some("AllocLarge" | "OutOfSpaceLOH"));
    let all = picture.collections.of(*id).count() as u64;
    let large: Vec<&Gc> = picture.collections.of(*id).filter(is_large).collect();
    let value = large.len() as f64 / all.max(1) as f64;
    let few = Few::share(value, all, shared::LEAST_COLLECTIONS, "GCs");
    let sites = &picture.sites;
    // The stack of the allocation for which a collection was started. Who allocates most large objects may be another one.
    let most = sites.most(large.iter().map(|gc| (gc.trigger_site, 1.0)));
    let is_its = |site: u32| most.as_ref().is_none_or(|most| sites.own_method(site) == Some(&most.method));
    let part = allocations::large_part(look, |site, _, _| is_its(site));
    let of_type = part.type_name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    let by = most.as_ref().map_or(String::new(), |most| format!(", most by {}{}", most.method, most.inlined));
    let sentence = format!("{} of {all} GCs were triggered by LOH allocations{by}{of_type}.", large.len());
    let own_method = most.map(|most| most.method);
    let subject = part.type_name.filter(|_| !large.is_empty());
    let at_most = shared::cost_of_full(look);
    Figure { value, rows: all, at_most, few, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::{Made, allocation};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        // Most large objects are of one method, and another one makes the collector run.
        let (draw, load) = (made.site(&["Shop.Pictures.Draw()"]), made.site(&["Shop.Pictures.Load()"]));
        for gc_id in 1..=20 {
            let row = Gc {
                gc_id,
                process_id: 7,
                generation: Some(2),
                reason: Some(if part(gc_id - 1, 20) { "AllocLarge" } else { "AllocSmall" }),
                trigger_callsite_id: if part(gc_id - 1, 20) { load } else { draw },
                ..Gc::default()
            };
            made.tables.add(&row);
        }
        (0..3).for_each(|_| made.tables.add(&allocation(draw, "tick", "System.Byte[]", "large")));
        made.tables.add(&allocation(load, "tick", "System.Char[]", "large"));
    }
}
