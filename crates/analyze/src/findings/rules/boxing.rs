//! Values are put into objects, again and again.

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "boxing",
    title: "Values are boxed",
    about: "Values are put into objects, again and again.",
    measure: "Bytes of boxed values (numbers, `DateTime`, `Guid` and so on, and what the runtime's helpers box) in all \
        allocated bytes. At least 100 samples; below 1 MB of boxed values a second it is fine, from 10 MB on a warning \
        is possible. Structures and enums of your own count where the recording has types (`--for allocations`, `--for \
        all`).",
    unit: "share",
    info: 0.10,
    warning: 0.30,
    source: "JDK Mission Control has 20 and 80 %, of programs that do nothing else; limits tracequet's own.",
    needs: &["allocations"],
    record: "allocations",
    advice: "Use generic collections (`List<int>`) and generic methods, and implement `IEquatable<T>` in keys.",
    closer: closer::ALLOCATIONS,
    causes: &["logging"],
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example::of("bugs/boxing", "bugs/boxing-clean", Verdict::Warning)
        .by("Shop.Totals.Answer")
        .about("System.Int32"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Types of values, which are objects only when they are boxed. Of other types some recordings say whether they are.
const VALUES: &[&str] = &[
    "System.Boolean", "System.Byte", "System.SByte", "System.Char", "System.Int16", "System.UInt16", "System.Int32",
    "System.UInt32", "System.Int64", "System.UInt64", "System.Single", "System.Double", "System.Decimal",
    "System.IntPtr", "System.UIntPtr", "System.DateTime", "System.DateTimeOffset", "System.TimeSpan",
    "System.DateOnly", "System.TimeOnly", "System.Guid",
];

fn judge(look: &Look<'_>) -> Judged {
    let part = allocations::part(look, |site, kind, name| {
        VALUES.contains(&name)
            || look.picture.types.is_value(look.id, kind) == Some(true)
            || name.starts_with("System.ValueTuple`")
            || look.picture.sites.has(site, &[Is::Boxes])
    });
    let (value, rate) = (part.share(), part.rate(look));
    // A structure of the user is boxed where its objects are; without its element type it may be a class.
    let unknown = allocations::part(look, |_, kind, name| {
        words::is_own_type(name) && !name.ends_with(']') && look.picture.types.is_value(look.id, kind).is_none()
    });
    let may_be = score(value + unknown.share(), RULE.info, RULE.warning);
    let may_be = may_be.min(score(rate + unknown.rate(look), 1e6, 10e6));
    if Verdict::of_score(score(value, RULE.info, RULE.warning)) == Verdict::Fine
        && Verdict::of_score(may_be) > Verdict::Fine
    {
        return Judged::too_little(format!(
            "Of {} of what is allocated it is not known whether it is boxed values: the recording does not have the element types.",
            words::percent(unknown.share())
        ));
    }
    let of_type = part.type_name.as_ref().map_or(String::new(), |name| format!(", most of them {name}"));
    let sentence = format!("Boxed values are {}{of_type}{}.", part.amount(look), part.by());
    let list = VALUES.iter().map(|name| words::quoted(name)).collect::<Vec<_>>().join(", ");
    let of_type = part.type_name.as_ref().map_or(String::new(), |name| format!(", {}", words::quoted(name)));
    let evidence = allocations::evidence(look, &format!("type_name IN ({list}{of_type})"));
    // A large share of a few bytes costs nothing.
    let at_most = score(rate, 1e6, 10e6);
    part.figure(at_most, sentence, evidence)
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Type};

    use crate::findings::tests::story::{Made, allocation};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        let site = made.site(&["Shop.Totals.Sum()", "System.Text.StringBuilder.Append(char)"]);
        for n in 0..200 {
            let name = if part(n, 200) { "System.Int32" } else { "Shop.Line" };
            made.tables.add(&allocation(site, "sampled", name, "small"));
        }
        for (name, element_type) in [("System.Int32", 0x08), ("Shop.Line", 0x12)] {
            let type_id = name.len() as u64;
            made.tables.add(&Type { process_id: 7, type_id, name, element_type, ..Type::default() });
        }
    }
}
