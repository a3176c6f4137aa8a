//! It takes long until all threads have stopped for a collection.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "slow_suspension",
    title: "Threads stop late for a GC",
    about: "It takes long until all threads have stopped for a GC.",
    measure: "The longest time until all threads had stopped. At least ten pauses.",
    unit: "ns",
    info: 1e7,
    warning: 1e8,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc): 10 ms; 100 ms tracequet's own.",
    needs: &["pauses"],
    record: "gc",
    advice: "Run fewer busy threads than there are processors, and split long loops and copies that the runtime cannot \
        stop.",
    causes: &["hot_method"],
    evidence: Evidence { sections: &["collections"], sort: Some("suspend") },
    example: Example::of("habits/unstoppable", "habits/unstoppable-clean", Verdict::Warning).about("gc_id "),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let slowest = look.picture.collections.pauses_of(look.id).max_by_key(|pause| pause.suspend_ns);
    let rows = look.picture.collections.pauses_of(look.id).count() as u64;
    let Some(pause) = slowest else { return Judged::too_few(0, shared::LEAST_COLLECTIONS, "pauses") };
    let value = pause.suspend_ns as f64;
    // Of more pauses the longest is no shorter.
    let lack = Lack::rows(rows, shared::LEAST_COLLECTIONS, "pauses");
    let few = (rows < shared::LEAST_COLLECTIONS).then_some(Few { least: value, lack });
    let sentence = format!("Longest suspension: {} ({}).", words::time(value), look.gc(pause.gc_id));
    let evidence = shared::pauses(look, "suspend_ns");
    let subject = Some(format!("gc_id {}", pause.gc_id));
    Figure { value, rows, few, subject, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (1..=40).for_each(|n| made.pause(n, S / 5, if n == 9 { ns(S / 5) } else { 0 }));
    }
}
