//! A collection stopped the program for long.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;
use crate::subjects::pauses::Pauses;

pub(super) const RULE: Rule = Rule {
    name: "long_pause",
    unit: "ns",
    info: 2e8,
    warning: 1e9,
    needs: &["pauses"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &["slow_suspension", "large_object_triggers", "induced", "leak", "growing_live_set"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let longest = Pauses::longest(look.picture.collections.pauses_of(look.id));
    let Some(pause) = longest else { return Judged::too_little("There are no pauses.") };
    let value = pause.duration_ns as f64;
    let suspend = pause.suspend_ns as f64;
    let why = if suspend * 2.0 > value {
        format!(", {} of it until all threads had stopped", words::time(suspend))
    } else {
        String::new()
    };
    let sentence = format!("The longest pause was {}, for collection {}{why}.", words::time(value), pause.gc_id);
    let evidence = shared::pauses(look, "duration_ns");
    let rows = look.picture.collections.pauses_of(look.id).count() as u64;
    let subject = Some(format!("gc_id {}", pause.gc_id));
    Figure { value, rows, subject, sentence, evidence, ..Figure::default() }.into()
}
