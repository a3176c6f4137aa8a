//! The program stands still for the collector.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::windows::Windows;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "pause_share",
    unit: "share",
    info: 0.05,
    warning: 0.10,
    needs: &["pauses"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[
        "suspension_dominates",
        "large_object_triggers",
        "induced",
        "leak",
        "growing_live_set",
        "boxing",
        "string_churn",
    ],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let mut windows = Windows::default();
    let mut rows = 0;
    for pause in look.picture.collections.pauses_of(look.id) {
        windows.span(pause.start_ns, pause.duration_ns);
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || look.seconds() < 1.0 {
        return Judged::too_little(format!(
            "{rows} pauses in {} are too few.",
            words::time(look.recording_ns() as f64)
        ));
    }
    let value = windows.worst(look.recording_ns());
    let sentence =
        format!("Threads stood still for collections {} of the time, in the worst half minute.", words::percent(value));
    let evidence = shared::pauses(look, "duration_ns");
    Figure { value, rows, sentence, evidence, ..Figure::default() }.into()
}
