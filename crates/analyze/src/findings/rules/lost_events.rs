//! Events were lost: what the other rules count is less than what there was.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "lost_events",
    unit: "share",
    info: 0.0,
    warning: 0.01,
    needs: &[],
    record: "all --buffer-size 1024",
    next: "tracequet inspect IN",
    causes: &[],
    of_recording: true,
    judge,
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
