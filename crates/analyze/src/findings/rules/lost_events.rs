//! Events were lost: what the other rules count is less than what there was.

use crate::findings::prelude::*;

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
    query: "SELECT * FROM losses WHERE {recording} LIMIT 20",
    example: Example { unrecorded: None, ..Example::of("habits/noise", "habits/noise-clean", Verdict::Warning) },
    #[cfg(test)]
    story: story::make,
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
    Figure { value, rows: events, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        made.trace.dropped_event_count = (x * 50_000.0) as u64;
    }
}
