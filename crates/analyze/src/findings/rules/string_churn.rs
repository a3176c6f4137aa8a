//! Strings are made of strings, again and again.

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "string_churn",
    title: "Strings are built from strings",
    about: "Strings are made of strings, again and again.",
    measure: "Bytes of `String`, `Char[]` and `StringBuilder` that are allocated below methods that make strings (`Concat`, \
        `Format`, `Substring`, `StringBuilder`, interpolation), in all allocated bytes; at least 100 samples; below 5 \
        MB of such strings a second it is fine, from 50 MB on a warning is possible.",
    unit: "share",
    info: 0.20,
    warning: 0.80,
    source: "Visual Studio (DA0001); limits of JDK Mission Control for boxing.",
    needs: &["allocations"],
    record: "allocations",
    advice: "Write to a `StringBuilder` or a span that is used again, and compare with `StringComparison` in place of \
        changing the case. For a log hand over a template and its values (`LogDebug(\"step {Step}\", step)`) or take \
        `[LoggerMessage]`: a finished text is made even where its level is off.",
    closer: closer::ALLOCATIONS,
    causes: &["logging"],
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example::of("habits/strings", "habits/strings-clean", Verdict::Warning)
        .by("Depot.Labels.Write")
        .about("System.String"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let part = allocations::part(look, |site, _, name| {
        let is_text = matches!(name, "System.String" | "System.Char[]" | "System.Text.StringBuilder");
        is_text && look.picture.sites.has(site, &[Is::MakesString])
    });
    let sentence = format!("Strings made of others are {}{}.", part.amount(look), part.by());
    let evidence =
        allocations::evidence(look, "type_name IN ('System.String', 'System.Char[]', 'System.Text.StringBuilder')");
    let at_most = score(part.rate(look), 5e6, 50e6);
    part.figure(at_most, sentence, evidence)
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::FactSink;

    use crate::findings::tests::story::{Made, allocation};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        let site = made.site(&["Shop.Totals.Sum()", "System.Text.StringBuilder.Append(char)"]);
        for n in 0..200 {
            let name = if part(n, 200) { "System.String" } else { "Shop.Line" };
            made.tables.add(&allocation(site, "sampled", name, "small"));
        }
    }
}
