//! What EventSources report of themselves: that they cannot be enabled, or cannot write an event. Nothing else in a recording says that
//! their events are missing. Source: dotnet/runtime, `EventSource.ReportOutOfBandMessage` and `DiagnosticSourceEventSource`.

use tracequet_trace::error::beginning;
use tracequet_trace::event::{Event, EventInfo};
use tracequet_trace::utf16;

use crate::prelude::*;

/// The code of their problems.
pub const SOURCE_FAULT: &str = "event_source_fault";

/// The EventSource that says in a message which specifications of events it leaves aside: `Ignoring filterAndPayloadSpec '[AS]...' because ...`,
/// `Ignoring wildcard activity source filterAndPayloadSpec rule because ...`.
const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const IGNORED: [&str; 2] = ["Ignoring ", "filterAndPayloadSpec"];

/// Different reports that are kept, and bytes of one.
const MOST: usize = 256;
const MAX_TEXT: usize = 1 << 10;

/// The reports of a recording, each text once.
#[derive(Debug, Default)]
pub struct SourceFaults {
    /// How often each was reported, and where first.
    known: BTreeMap<String, (u64, u64)>,
    /// Count and first place of reports beyond the ones that are kept.
    more: (u64, u64),
}

impl SourceFaults {
    /// Whether events of a type are such reports.
    pub fn are_in(info: &EventInfo) -> bool {
        info.name == "EventSourceMessage" || (info.provider == DIAGNOSTIC_SOURCE && info.name == "Message")
    }

    /// Takes an event of such a type.
    pub fn add(&mut self, event: &Event<'_>) {
        let fields = event.fields().map(|(fields, _)| fields).unwrap_or_default();
        let described = fields.iter().find_map(|(_, value)| Value::as_str(value)).map(str::to_owned);
        // .NET Core 3.1 does not describe the one field.
        let text = described.unwrap_or_else(|| {
            let payload = event.raw.payload;
            utf16::string(utf16::end(payload).and_then(|end| payload.get(..end)).unwrap_or(payload))
        });
        let provider = &event.info.provider;
        if text.is_empty() || (provider == DIAGNOSTIC_SOURCE && !IGNORED.iter().all(|words| text.contains(words))) {
            return;
        }
        let text = format!("{}: {}", beginning(provider, MAX_TEXT), beginning(&text, MAX_TEXT));
        let is_kept = self.known.len() < MOST || self.known.contains_key(&text);
        let first = (0, event.raw.offset);
        let (count, _) = if is_kept { self.known.entry(text).or_insert(first) } else { &mut self.more };
        *count += 1;
    }

    /// A problem for each different report.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let of = |text: &str, (count, offset): (u64, u64)| Problem::info(SOURCE_FAULT, offset, text).count(count);
        let more =
            Some(of("more reports of EventSources of themselves", self.more)).filter(|problem| problem.count > 0);
        self.known.iter().map(move |(text, seen)| of(text, *seen)).chain(more)
    }
}

/// An event with a report.
#[derive(Clone, Copy, Debug)]
pub struct Report;

impl Tracker for SourceFaults {
    type Action = Report;
    // Each EventSource may write it.
    const EVENTS: Events<Report> = &[];

    fn needs(_: Report) -> Needs {
        Needs::Header
    }

    fn action(info: &EventInfo) -> Option<Report> {
        SourceFaults::are_in(info).then_some(Report)
    }

    fn event(&mut self, _: Report, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        self.add(input.event);
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        self.problems().for_each(|problem| sink.problem(&problem));
    }
}
