//! One type is much of what is allocated.

use std::collections::BTreeMap;

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "type_dominates",
    title: "One type dominates allocations",
    about: "One type is much of what is allocated: the first place to look when allocations cost.",
    measure: "Bytes of the type with the most bytes, in all allocated bytes. At least 100 samples. Below 10 MB a second of \
        it, it is fine. It is never a warning: a program may work with one type.",
    unit: "share",
    info: 0.30,
    warning: 0.60,
    needs: &["allocations"],
    record: "allocations",
    advice: "Make fewer objects of it in the method that is named: reuse them, or use a struct where they are small.",
    closer: closer::ALLOCATIONS,
    causes: &["logging", "rented_buffers", "boxing", "string_churn", "large_object_triggers"],
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example::of("habits/strings", "habits/strings-clean", Verdict::Info)
        .by("Depot.Labels.Write")
        .about("System.String"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let mut types: BTreeMap<u64, f64> = BTreeMap::new();
    for ((_, kind), allocated) in look.process.counted() {
        *types.entry(*kind).or_default() += allocated.bytes;
    }
    let largest = types.into_iter().filter(|(kind, _)| look.picture.types.name(look.id, *kind).is_some());
    let largest = largest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(kind, _)| kind);
    let part = allocations::part(look, |_, kind, _| Some(kind) == largest);
    let name = part.type_name.clone().unwrap_or_default();
    let sentence = format!("{} is {}{}.", words::short(&name, 80), part.amount(look), part.by());
    let evidence = allocations::evidence(look, &format!("type_name = {}", words::quoted(&name)));
    // What a program works with may be of one type: this is where to look first, and no warning.
    let at_most = score(part.rate(look), 10e6, 100e6).min(60.0);
    part.figure(at_most, sentence, evidence)
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::FactSink;

    use crate::findings::tests::story::{Made, allocation};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        let site = made.site(&["Shop.Totals.Sum()"]);
        let others = ["A", "BB", "CCC", "DDDD", "EEEEE", "FFFFFF"];
        for n in 0..200u32 {
            // More than of each other type from the start.
            let name = if n < 34 || part(n, 200) { "Shop.Line" } else { others[n as usize % 6] };
            made.tables.add(&allocation(site, "sampled", name, "small"));
        }
    }
}
