//! Arrays of a pool are allocated all the time: they are rented and not returned.

use crate::findings::prelude::*;
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
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let part = allocations::part(look, |site, _, _| look.picture.sites.has(site, &[Is::Rents]));
    let sentence = format!("Arrays that a pool had to allocate are {}{}.", part.amount(look), part.by());
    let evidence = allocations::evidence(look, "type_name LIKE '%[]'");
    let at_most = score(part.rate(look), 1e6, 10e6);
    part.figure(at_most, sentence, evidence)
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::FactSink;

    use crate::findings::tests::story::{Made, allocation};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let rent = made.site(&["Shop.Stamps.Print()", "System.Buffers.SharedArrayPool`1[System.Byte].Rent(int)"]);
        let other = made.site(&["Shop.Totals.Sum()"]);
        for n in 0..200 {
            let is_rented = f64::from(n) < 200.0 * x;
            made.tables.add(&allocation(if is_rented { rent } else { other }, "sampled", "System.Byte[]", "small"));
        }
    }
}
