//! Most of the time of pauses goes by until all threads have stopped.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "suspension_dominates",
    title: "GC pauses are mostly spent waiting for threads to stop",
    about: "Pauses are long because threads stop late, not because there is much to collect.",
    measure: "Time until all threads had stopped, divided by the time of pauses for GCs. At least ten pauses. Where \
        pauses take less than 5 % of the worst half minute it is fine, from 10 % on a warning is possible.",
    unit: "share",
    info: 0.30,
    warning: 0.50,
    needs: &["pauses"],
    record: "gc",
    advice: "Run fewer busy threads than there are processors, and split long loops and copies that the runtime cannot \
        stop.",
    evidence: Evidence { sections: &["collections"], sort: Some("suspend") },
    example: Example::of("habits/unstoppable", "habits/unstoppable-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut windows, mut suspend, mut rows) = (Windows::default(), 0.0, 0u64);
    for pause in look.picture.collections.pauses_of(look.id) {
        windows.span(pause.start_ns, pause.duration_ns);
        suspend += pause.suspend_ns as f64;
        rows += 1;
    }
    let value = (suspend / windows.total.max(1.0)).clamp(0.0, 1.0);
    let few = Few::share(value, rows, shared::LEAST_COLLECTIONS, "pauses");
    let share = windows.worst(look.recording_ns());
    let sentence = format!(
        "{} of the time in pauses was suspension; pauses took {} of {}.",
        words::percent(value),
        words::percent(share),
        look.worst()
    );
    let evidence = shared::pauses(look, "suspend_ns");
    // The limits of `pause_share`: short pauses are no matter, whatever they are made of.
    let at_most = Some(score(share, 0.05, 0.10));
    Figure { value, rows, at_most, few, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (1..=40).for_each(|n| made.pause(n, S / 4, ns(S / 5)));
    }
}
