//! Most of the time of pauses goes by until all threads have stopped.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared;
use crate::findings::windows::Windows;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "suspension_dominates",
    unit: "share",
    info: 0.30,
    warning: 0.50,
    needs: &["pauses"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut windows, mut suspend, mut rows) = (Windows::default(), 0.0, 0u64);
    for pause in look.picture.collections.pauses_of(look.id) {
        windows.span(pause.start_ns, pause.duration_ns);
        suspend += pause.suspend_ns as f64;
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || windows.total <= 0.0 {
        return Judged::too_little(format!("{rows} pauses are too few."));
    }
    let value = (suspend / windows.total).clamp(0.0, 1.0);
    let share = windows.worst(look.recording_ns());
    let sentence = format!(
        "{} of the time of pauses went by until all threads had stopped; pauses took {} of the worst half minute.",
        words::percent(value),
        words::percent(share)
    );
    let evidence = shared::pauses(look, "suspend_ns");
    // The limits of `pause_share`: short pauses are no matter, whatever they are made of.
    let at_most = Some(score(share, 0.05, 0.10));
    Figure { value, rows, at_most, sentence, evidence, ..Figure::default() }.into()
}
