//! Strings are made of strings, again and again.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared;
use crate::findings::{allocations, words};
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "string_churn",
    unit: "share",
    info: 0.20,
    warning: 0.80,
    needs: &["allocations"],
    record: "allocations",
    next: "tracequet export IN --what allocation --own",
    causes: &[],
    of_recording: false,
    judge,
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
