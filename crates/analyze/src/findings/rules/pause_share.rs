//! The program stands still for the collector.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "pause_share",
    title: "The program stands still for GCs",
    about: "The program stands still for the GC.",
    measure: "Time of pauses for GCs, divided by the time, in the worst half minute. At least ten pauses.",
    unit: "share",
    info: 0.05,
    warning: 0.10,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc) and JDK Mission Control: 5 and 10 %.",
    needs: &["pauses"],
    record: "gc",
    advice: "Allocate less in what runs often, and let objects die young.",
    closer: closer::ALLOCATIONS,
    causes: &[
        "suspension_dominates", "large_object_triggers", "induced", "high_memory_load", "blocking_full", "leak",
        "growing_live_set", "boxing", "string_churn",
    ],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["collections"], sort: Some("pause") },
    example: Example::of("habits/old", "habits/old-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let mut windows = Windows::default();
    for (start_ns, end_ns) in look.picture.collections.pauses.apart(look.id) {
        windows.span(*start_ns, end_ns.saturating_sub(*start_ns));
    }
    let rows = look.picture.collections.pauses_of(look.id).count() as u64;
    if look.seconds() < 1.0 {
        return Judged::TooLittle(look.too_short(1e9, "one pause is much of it"));
    }
    let value = windows.worst(look.recording_ns());
    let few = Few::sum(value, rows, shared::LEAST_COLLECTIONS, "pauses");
    let sentence = format!("GC pauses took {} of {}.", words::percent(value), look.worst());
    let evidence = shared::pauses(look, "duration_ns");
    Figure { value, rows, few, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (1..=40).for_each(|n| made.pause(n, ns(S / 4), 0));
    }
}
