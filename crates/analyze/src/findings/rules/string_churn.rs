//! Strings are made of strings, again and again.

use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared;
use crate::findings::verdict::Verdict;
use crate::findings::{allocations, words};
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
        changing the case.",
    closer: closer::ALLOCATIONS,
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example::of("habits/strings", "habits/strings-clean", Verdict::Warning)
        .by("Depot.Labels.Write")
        .about("System.String"),
    #[cfg(test)]
    story,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let part = allocations::part(look, |site, _, name, allocated| {
        let is_text = matches!(name, "System.String" | "System.Char[]" | "System.Text.StringBuilder");
        let is_made = is_text && look.picture.sites.has(site, &[Is::MakesString]);
        if is_made { (allocated.bytes, allocated.samples) } else { (0.0, 0) }
    });
    if part.all_samples < shared::LEAST_SAMPLES {
        return Judged::too_little(format!("{} samples of allocations are too few.", part.all_samples));
    }
    let (value, rate) = (part.share(), part.bytes / look.seconds().max(1e-9));
    let sentence = format!(
        "Strings made of others are {} of what is allocated, {} a second{}.",
        words::percent(value),
        words::size(rate),
        part.by()
    );
    let evidence =
        allocations::evidence(look, "type_name IN ('System.String', 'System.Char[]', 'System.Text.StringBuilder')");
    let at_most = Some(score(rate, 5e6, 50e6));
    let (subject, own_method) = if part.samples > 0 { (part.type_name, part.own_method) } else { (None, None) };
    Figure { value, rows: part.all_samples, at_most, subject, own_method, sentence, evidence }.into()
}

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    use crate::findings::story::allocation;
    use tracequet_facts::fact::FactSink;

    let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
    let site = made.site(&["Shop.Totals.Sum()", "System.Text.StringBuilder.Append(char)"]);
    for n in 0..200 {
        let name = if part(n, 200) { "System.String" } else { "Shop.Line" };
        made.tables.add(&allocation(site, "sampled", name, "small"));
    }
}
