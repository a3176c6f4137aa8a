//! Young collections follow each other closely: the program allocates much.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "many_gen0",
    title: "Gen 0 and gen 1 GCs follow each other closely",
    about: "The young generations are collected again and again: the program allocates much, or their budget is small.",
    measure: "Gen 0 and gen 1 GCs a second, in the worst half minute. At least ten. Where their pauses take less than \
        2 % of the time it is fine, from 10 % on a warning is possible. The method with the most allocated bytes is \
        named, where they are recorded. The query has the budget of gen 0 and the number of heaps.",
    unit: "count/s",
    info: 10.0,
    warning: 50.0,
    needs: &["collections"],
    record: "gc,allocations",
    advice: "Allocate less in the method that is named. Where that cannot be, `System.GC.Gen0Size`, server GC or \
        `System.GC.HeapCount` make their budget larger.",
    closer: closer::ALLOCATIONS,
    causes: &["boxing", "string_churn", "induced"],
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    query: "SELECT date_trunc('second', start_ts) AS second, count(*) AS collections, sum(allocated_bytes) AS allocated_bytes, \
        sum(pause_ns) / 1e6 AS pause_ms, max(gen0_budget_bytes) AS gen0_budget_bytes, max(heap_count) AS heaps FROM gc \
        WHERE {process} AND generation <= 1 GROUP BY ALL ORDER BY collections DESC LIMIT 20",
    example: Example::of("habits/often", "habits/often-clean", Verdict::Warning).by("Depot.Garbage.Make"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut windows, mut rows, mut bytes) = (Windows::default(), 0u64, 0.0);
    for gc in look.picture.collections.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        windows.at(gc.start_ns, 1.0);
        bytes += gc.allocated.unwrap_or_default() as f64;
        rows += 1;
    }
    if look.seconds() < 1.0 {
        return Judged::TooLittle(look.too_short(1e9, "one GC is much of it"));
    }
    let value = windows.worst(look.recording_ns()) * 1e9;
    let few = Few::sum(value, rows, shared::LEAST_COLLECTIONS, "gen 0 and gen 1 GCs");
    let part = allocations::part(look, |_, _, _| true);
    let rate = match bytes > 0.0 {
        true => format!(", with {} allocated a second", words::size(bytes / look.seconds())),
        false => String::new(),
    };
    let sentence =
        format!("{} gen 0 and gen 1 GCs a second in {}{rate}{}.", words::three(value), look.worst(), part.by());
    // Many that take no time are no matter.
    let at_most = shared::cost_of_young(look);
    Figure { value, rows, at_most, few, own_method: part.own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        // Ten at least, so that there is a verdict.
        for n in 0..(20 + (x * 4000.0) as u32) {
            let row = Gc {
                gc_id: n + 1,
                process_id: 7,
                generation: Some(0),
                start_ts_ns: i64::from(n) * 10 * MS,
                complete: true,
                ..Gc::default()
            };
            made.tables.add(&row);
        }
    }
}
