//! EventSources report that they cannot be enabled, or cannot write an event.

use crate::findings::prelude::*;

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
    query: "SELECT message, count FROM diagnostic WHERE {recording} AND code = 'event_source_fault' LIMIT 20",
    example: Example { unrecorded: None, ..Example::of("habits/parcels", "habits/parcels-clean", Verdict::Warning) },
    #[cfg(test)]
    story: story::make,
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
    Figure { value: faults.len() as f64, rows, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::SOURCE_FAULT;
    use tracequet_facts::fact::{Diagnostic, FactSink};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
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
}
