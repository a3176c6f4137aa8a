//! EventSources report that they cannot be enabled, or cannot write an event.

use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::verdict::Verdict;
use crate::findings::words;
use tracequet_facts::SOURCE_FAULT;

pub(super) const RULE: Rule = Rule {
    name: "event_source_faults",
    title: "EventSources could not write their events",
    about: "An EventSource could not be enabled, or could not write an event: what it would have written is not in the recording.",
    measure: "The different reports of EventSources of themselves: the events `EventSourceMessage`, and those by which \
        DiagnosticSource says that it ignores a specification of events.",
    unit: "count",
    info: 0.0,
    warning: 1.0,
    source: "limits tracequet's own: each report stands for events that are missing.",
    needs: &[],
    record: "all",
    advice: "Give each event of an `EventSource` a number of its own, hand the arguments of its method to `WriteEvent` in their \
        order and with their types, and correct the `FilterAndPayloadSpecs` that is ignored.",
    closer: closer::INSPECT,
    of_recording: true,
    evidence: Evidence { sections: &["losses"], sort: None },
    example: Example { unrecorded: None, ..Example::of("habits/parcels", "habits/parcels-clean", Verdict::Warning) },
    #[cfg(test)]
    story,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (faults, rows) = (&look.picture.source_faults, look.picture.source_fault_events);
    let first = faults.first().map_or(String::new(), |text| words::short(text, 300));
    let sentence = match faults.len() {
        0 => "No EventSource reports that events of its own are missing.".to_owned(),
        1 => format!("An EventSource reports that events of its own are missing. {first}"),
        several => format!("EventSources report in {several} ways that events of their own are missing. {first}"),
    };
    let evidence =
        format!("SELECT message, count FROM diagnostic WHERE {} AND code = '{SOURCE_FAULT}' LIMIT 20", look.of_trace);
    Figure { value: faults.len() as f64, rows, sentence, evidence, ..Figure::default() }.into()
}

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    use tracequet_facts::fact::{Diagnostic, FactSink};

    let texts = ["Shop-Orders: ERROR: Event Packed has ID 3 which is already in use.", "Shop-Orders: Ignoring it"];
    for message in texts.iter().take((x * 2.0) as usize) {
        made.tables.add(&Diagnostic {
            severity: "info",
            code: SOURCE_FAULT,
            message,
            count: 1,
            ..Diagnostic::default()
        });
    }
}
