//! A collection stopped the program for long.

use crate::findings::prelude::*;
use crate::subjects::pauses::Pauses;

pub(super) const RULE: Rule = Rule {
    name: "long_pause",
    title: "A GC paused the program for long",
    about: "A GC stopped the program for long.",
    measure: "The longest pause for a GC. The query has the bytes that were promoted: where they do not explain the \
        pause, it is the time until threads had stopped, or the processor was taken away.",
    unit: "ns",
    info: 2e8,
    warning: 1e9,
    source: "GCStats of PerfView marks 200 ms; JDK Mission Control: 1 s.",
    needs: &["pauses"],
    record: "gc",
    advice: "Keep fewer objects alive and allocate fewer large ones; where few bytes were promoted, look for what took the \
        processor or held threads up.",
    causes: &[
        "slow_suspension", "large_object_triggers", "induced", "high_memory_load", "blocking_full", "leak",
        "growing_live_set",
    ],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["collections"], sort: Some("pause") },
    example: Example::of("habits/unstoppable", "habits/unstoppable-clean", Verdict::Warning).about("gc_id "),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let longest = Pauses::longest(look.picture.collections.pauses_of(look.id));
    let Some(pause) = longest else { return Judged::none("pause") };
    let value = pause.duration_ns as f64;
    let suspend = pause.suspend_ns as f64;
    let why =
        if suspend * 2.0 > value { format!(", {} of it suspension", words::time(suspend)) } else { String::new() };
    let sentence = format!("Longest pause: {} ({}){why}.", words::time(value), look.gc(pause.gc_id));
    let evidence = shared::pauses(look, "duration_ns");
    let rows = look.picture.collections.pauses_of(look.id).count() as u64;
    let subject = Some(format!("gc_id {}", pause.gc_id));
    Figure { value, rows, subject, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (1..=40).for_each(|n| made.pause(n, if n == 9 { ns(3 * S) } else { 0 }, 0));
    }
}
