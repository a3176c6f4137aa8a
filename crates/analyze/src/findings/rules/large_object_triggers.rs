//! Allocations of large objects make the collector run, each time over the whole heap.

use crate::findings::allocations;
use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::verdict::Verdict;

pub(super) const RULE: Rule = Rule {
    name: "large_object_triggers",
    title: "Large objects trigger GCs",
    about: "Objects of 85,000 bytes and more make the collector run, each time over the whole heap.",
    measure: "Collections with the reason `AllocLarge` or `OutOfSpaceLOH`, divided by all. At least ten collections. The \
        type and your method with the most bytes of large objects are named.",
    unit: "share",
    info: 0.10,
    warning: 0.50,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["collections"],
    record: "gc,allocations",
    advice: "Rent arrays from `ArrayPool<T>`, keep a buffer, or work in pieces below 85,000 bytes.",
    closer: closer::ALLOCATIONS,
    causes: &[],
    of_recording: false,
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example {
        with: "bugs/large",
        without: "bugs/large-clean",
        verdict: Verdict::Warning,
        own_method: Some("Shop.Pictures.Answer"),
        subject: Some("System.Byte[]"),
        unrecorded: Some("habits/formulas"),
    },
    #[cfg(test)]
    story,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let (mut all, mut large) = (0u64, 0u64);
    for gc in picture.collections.of(*id) {
        all += 1;
        large += u64::from(matches!(picture.text(gc.reason), Some("AllocLarge" | "OutOfSpaceLOH")));
    }
    if all < shared::LEAST_COLLECTIONS {
        return Judged::too_little(format!("{all} collections are too few."));
    }
    let value = large as f64 / all as f64;
    let part = allocations::part(look, |_, _, _, allocated| (allocated.large_bytes, allocated.large_samples));
    let of_type = part.type_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let sentence = format!("{large} of {all} collections were for large objects{of_type}{}.", part.by());
    let evidence = format!(
        "SELECT reason, generation, count(*) AS collections, sum(pause_ns) / 1e6 AS pause_ms FROM gc WHERE {} \
         GROUP BY ALL ORDER BY collections DESC",
        look.of_process
    );
    let (subject, own_method) = if large > 0 { (part.type_name, part.own_method) } else { (None, None) };
    Figure { value, rows: all, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    use crate::findings::story::allocation;
    use tracequet_facts::fact::FactSink;

    let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
    let site = made.site(&["Shop.Pictures.Draw()"]);
    (1..=20).for_each(|n| made.gc(n, 2, if part(n - 1, 20) { "AllocLarge" } else { "AllocSmall" }, "background"));
    made.tables.add(&allocation(site, "tick", "System.Byte[]", "large"));
}
