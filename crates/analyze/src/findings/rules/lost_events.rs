//! Events were lost: what the other rules count is less than what there was.

use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::verdict::Verdict;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "lost_events",
    title: "Events were lost",
    about: "Events were lost: what the other rules count is less than what there was.",
    measure: "Lost events, divided by all; what is known of them is the least.",
    unit: "share",
    info: 0.0,
    warning: 0.01,
    source: "JDK Mission Control: 1 %.",
    needs: &[],
    record: "all --buffer-size 1024",
    advice: "Record fewer kinds of events, or with a larger buffer (`--buffer-size`): the other figures are too low.",
    closer: closer::INSPECT,
    of_recording: true,
    evidence: Evidence { sections: &["losses"], sort: None },
    example: Example { unrecorded: None, ..Example::of("habits/noise", "habits/noise-clean", Verdict::Warning) },
    #[cfg(test)]
    story,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (dropped, events) = (look.picture.dropped, look.picture.events);
    let value = dropped as f64 / (dropped.saturating_add(events)).max(1) as f64;
    let sentence = match dropped {
        0 => "No event was lost.".to_owned(),
        _ => format!("At least {dropped} events were lost, {} of all.", words::percent(value)),
    };
    let evidence = format!("SELECT * FROM losses WHERE {} LIMIT 20", look.of_trace);
    Figure { value, rows: events, sentence, evidence, ..Figure::default() }.into()
}

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    made.trace.dropped_event_count = (x * 50_000.0) as u64;
}
