//! Arrays of a pool are allocated all the time: they are rented and not returned.

use crate::findings::allocations::{evidence, part};
use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared::LEAST_SAMPLES;
use crate::findings::verdict::Verdict;
use crate::findings::words;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "rented_buffers",
    title: "Rented arrays are not returned",
    about: "A pool of arrays allocates all the time: what is rented from it does not come back, so that it costs more than arrays without \
        a pool.",
    measure: "Bytes of sampled allocations within `ArrayPool<T>.Rent`, or of arrays that are left uninitialized as the shared pool makes \
        them where the compiler put `Rent` into its caller, divided by all. At least 100 samples; below 1 MB a second it is fine, \
        from 10 MB on a warning is possible.",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &["allocations"],
    record: "allocations",
    advice: "Call `ArrayPool<T>.Shared.Return` in a `finally` for each `Rent`, once and on every way out.",
    closer: closer::ALLOCATIONS,
    evidence: Evidence { sections: &["stacks-allocations", "allocations", "collections"], sort: None },
    example: Example::of("habits/rents", "habits/rents-clean", Verdict::Warning).by("Depot.Stamps.Print"),
    #[cfg(test)]
    story,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    let part = part(look, |site, _, _, allocated| match sites.has(site, &[Is::Rents]) {
        true => (allocated.bytes, allocated.samples),
        false => (0.0, 0),
    });
    if part.all_samples < LEAST_SAMPLES {
        return Judged::too_little(format!("{} samples of allocations are too few.", part.all_samples));
    }
    let rate = part.bytes / look.seconds().max(1e-9);
    let sentence = format!(
        "Arrays that a pool had to allocate are {} of what is allocated, {} a second{}.",
        words::percent(part.share()),
        words::size(rate),
        part.by()
    );
    let evidence = evidence(look, "type_name LIKE '%[]'");
    Figure {
        value: part.share(),
        rows: part.all_samples,
        at_most: Some(score(rate, 1e6, 10e6)),
        subject: part.type_name,
        own_method: part.own_method,
        sentence,
        evidence,
    }
    .into()
}

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    use crate::findings::story::allocation;
    use tracequet_facts::fact::FactSink;

    let rent = made.site(&["Shop.Stamps.Print()", "System.Buffers.SharedArrayPool`1[System.Byte].Rent(int)"]);
    let other = made.site(&["Shop.Totals.Sum()"]);
    for n in 0..200 {
        let is_rented = f64::from(n) < 200.0 * x;
        made.tables.add(&allocation(if is_rented { rent } else { other }, "sampled", "System.Byte[]", "small"));
    }
}
