//! Work with a start and a stop: requests, queries, and whatever else event sources tell of.

use std::borrow::Borrow;

use super::diagnostic_source::{self, PairKey, PairName};
use super::open_work::{Ids, Key, OpenWork, Work, first_characters};
use super::tasks::{self, TaskEvent};
use super::work_event::{ID_ENDS, Step, WorkEvent, is_id, number};
use crate::event::value::Value;
use crate::event::{Decoding, EventInfo};
use crate::normalize::fact::{Activity, FactSink};
use crate::normalize::tracker::{self, Hears, Input, Needs};
use crate::reader::ProcessKey;
use crate::time::{file_time_to_utc_us, format_utc};
use crate::utf16;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A step of work, by its type.
    Work(WorkEvent),
    /// An event of a DiagnosticSource, which has its own name in the payload.
    DiagnosticSource,
    /// A start or stop of an ActivitySource, likewise.
    ActivitySource(Step),
    /// A step of a task.
    Task(TaskEvent),
}

/// No events by their names: the types are looked at one by one.
pub const HEARS: &[Hears<Action>] = &[];

impl tracker::Action for Action {
    fn needs(self) -> Needs {
        if matches!(self, Action::Work(_) | Action::Task(_)) { Needs::Fields } else { Needs::Header }
    }
}

const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";

/// What events of a type are, if they are steps of work. The events of the runtime itself have tables of their own.
pub fn action(info: &EventInfo) -> Option<Action> {
    if info.provider == DIAGNOSTIC_SOURCE {
        return match info.name.as_str() {
            "ActivityStart" => Some(Action::ActivitySource(Step::Start)),
            "ActivityStop" => Some(Action::ActivitySource(Step::Stop)),
            "Event" => Some(Action::DiagnosticSource),
            name if name.contains("Activity") => Some(Action::DiagnosticSource),
            _ => None,
        };
    }
    if let Some(task) = TaskEvent::of(info) {
        return Some(Action::Task(task));
    }
    let is_described = info.catalogue.is_none() && matches!(info.decoding, Decoding::Described(_));
    is_described.then(|| WorkEvent::of(info)).flatten().map(Action::Work)
}

/// Fields of a stop that tell of success, the first one that is there.
const OUTCOMES: &[&str] = &[
    "statusCode",
    "StatusCode",
    "http.response.status_code",
    "RequestTaskStatus",
    "success",
    "Success",
    "sqlExceptionNumber",
    "IsExceptional",
    "exceptionMessage",
    "Status",
    "status",
];

/// Other fields of a DiagnosticSource event that are worth keeping.
const KEPT: &[&str] =
    &["Method", "Path", "Request", "RequestUri", "Url", "CommandText", "OperationName", "DisplayName"];

/// The fields of a start as JSON have so many bytes, at most, and one text so many characters.
const MAX_JSON: usize = 4096;

/// The work that goes on.
#[derive(Debug, Default)]
pub struct Activities {
    open: OpenWork,
}

impl Activities {
    /// Work whose end was not looked for any more, because too much went on, and work whose kind has no name.
    pub fn given_up(&self) -> (u64, u64) {
        self.open.given_up()
    }

    /// A step of work.
    pub fn event(&mut self, action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
        match action {
            Action::Work(work) => self.work_event(work, input, sink),
            Action::Task(event) => self.task_event(event, input, sink),
            Action::DiagnosticSource => {
                // Most events are neither, and are left alone.
                if let Some(head) = diagnostic_source::head(input.event.raw.payload)
                    && let Some((work, step)) = head.work()
                {
                    self.diagnostic(step, &head, work, input, sink);
                }
            }
            Action::ActivitySource(step) => {
                if let Some(head) = diagnostic_source::head(input.event.raw.payload) {
                    self.diagnostic(step, &head, head.name, input, sink);
                }
            }
        }
    }

    fn work_event(&mut self, event: WorkEvent, input: &Input<'_>, sink: &mut impl FactSink) {
        let (mut ids, mut text) = (Ids::default(), String::new());
        for (name, value) in input.fields.iter().filter(|(name, _)| is_id(name)) {
            text.clear();
            // As much as a GUID takes.
            text.reserve(36);
            if plain_text(value, &mut text) {
                ids.add(name, &text);
            }
        }
        let key = key(input, event.kind);
        match event.step {
            // No stop can be known to be its own: an event of some thing, not work.
            Step::Start if key.2.is_none() && ids.is_empty() => {}
            Step::Start => {
                let info = input.event.info;
                let names = || (info.provider.clone(), event.work_name(&info.name).to_owned());
                self.open.names.add(event.kind, names);
                let work =
                    Work { row: about(input), kind: event.kind, fields: json(input.fields.iter()), ids, failed: false };
                self.open.begin(key, work, sink);
            }
            Step::Stop => {
                let mut outcome = None;
                if let Some(value) = OUTCOMES.iter().map(|name| input.fields.get(name)).find(|v| **v != Value::Null) {
                    let mut text = String::new();
                    outcome = (plain_text(value, &mut text) && !text.is_empty()).then_some(text);
                }
                self.end(&key, &ids, outcome.as_deref(), input, sink);
            }
            Step::Failed => {
                if let Some(work) = self.open.get(&key, &ids) {
                    work.failed = true;
                }
            }
        }
    }

    /// A task has a number of its own, whatever activity it runs in: its starts and stops need nothing else.
    fn task_event(&mut self, event: TaskEvent, input: &Input<'_>, sink: &mut impl FactSink) {
        let key = (input.process(), event.kind, tasks::id(input.number("TaskID")));
        if event.step == Step::Start {
            self.open.names.add(event.kind, || (tasks::PROVIDER.to_owned(), event.name.to_owned()));
            let fields = json(input.fields.iter());
            let work = Work { row: about(input), kind: event.kind, fields, ids: Ids::default(), failed: false };
            return self.open.begin(key, work, sink);
        }
        if let Some(mut work) = self.open.end(&key, &Ids::default()) {
            work.row.end_ts_ns = Some(input.ts_ns());
            work.row.end_thread_id = input.thread_id();
            work.row.paired_by = Some("fields");
            work.report(&self.open.names, event.outcome(input.fields), sink);
        }
    }

    fn diagnostic(
        &mut self,
        step: Step,
        head: &diagnostic_source::Head<'_>,
        work: &[u8],
        input: &Input<'_>,
        sink: &mut impl FactSink,
    ) {
        let known = |key: PairKey<'_>| key.one_of(KEPT).or_else(|| key.one_of(OUTCOMES)).map(PairName::Borrowed);
        let id = |key: PairKey<'_>| key.ends_in(ID_ENDS).then(|| key.text()).filter(|key| is_id(key));
        let pairs = head.pairs(|key| known(key).or_else(|| id(key).map(PairName::Owned)));
        let mut ids = Ids::default();
        pairs.iter().filter(|(key, _)| is_id(key)).for_each(|(key, value)| ids.add(key, value));
        let kind = number((head.source, work));
        let key = key(input, kind);
        if step == Step::Start {
            self.open.names.add(kind, || (utf16::string(head.source), utf16::string(work)));
            let fields = pairs.into_iter().map(|(key, value)| (key, Value::Text(utf16::string(value))));
            let work = Work { row: about(input), kind, fields: json(fields), ids, failed: false };
            return self.open.begin(key, work, sink);
        }
        let outcome = OUTCOMES.iter().find_map(|name| pairs.iter().find(|(key, _)| key == name));
        self.end(&key, &ids, outcome.map(|(_, value)| utf16::string(value)).as_deref(), input, sink);
    }

    fn end(&mut self, key: &Key, ids: &Ids, outcome: Option<&str>, input: &Input<'_>, sink: &mut impl FactSink) {
        if let Some(mut work) = self.open.end(key, ids) {
            work.row.end_ts_ns = Some(input.ts_ns());
            work.row.end_thread_id = input.thread_id();
            work.report(&self.open.names, outcome, sink);
        }
    }

    /// Events of a process (`None`: of any) were lost, or the recording ends.
    pub fn events_lost(&mut self, process: Option<ProcessKey>, sink: &mut impl FactSink) {
        self.open.forget(process, sink);
    }
}

fn key(input: &Input<'_>, kind: u64) -> Key {
    (input.process(), kind, input.event.raw.labels.activity_id)
}

fn about(input: &Input<'_>) -> Activity<'static> {
    let labels = input.event.raw.labels;
    Activity {
        start_ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        thread_id: input.thread_id(),
        callsite_id: input.callsite_id,
        activity_id: labels.activity_id,
        parent_activity_id: labels.related_activity_id,
        ..Activity::default()
    }
}

/// A simple value as text; false when it is none.
fn plain_text(value: &Value, out: &mut String) -> bool {
    use std::fmt::Write;
    match value {
        Value::Bool(value) => write!(out, "{value}").is_ok(),
        Value::Uint(value) => write!(out, "{value}").is_ok(),
        Value::Int(value) => write!(out, "{value}").is_ok(),
        Value::Guid(value) => write!(out, "{value}").is_ok(),
        Value::Text(value) => {
            out.push_str(first_characters(value));
            true
        }
        _ => false,
    }
}

/// Simple fields as a JSON object; `None` when there are none.
fn json(fields: impl Iterator<Item = (impl AsRef<str>, impl Borrow<Value>)>) -> Option<String> {
    let mut out = Vec::with_capacity(128);
    for (name, value) in fields {
        let before = out.len();
        out.push(if before == 0 { b'{' } else { b',' });
        let written = serde_json::to_writer(&mut out, name.as_ref()).and_then(|()| {
            out.push(b':');
            match value.borrow() {
                Value::Bool(value) => serde_json::to_writer(&mut out, value),
                Value::Uint(value) => serde_json::to_writer(&mut out, value),
                Value::Int(value) => serde_json::to_writer(&mut out, value),
                Value::Float(value) => serde_json::to_writer(&mut out, value),
                Value::Guid(value) => serde_json::to_writer(&mut out, &value.to_string()),
                Value::FileTime(value) => serde_json::to_writer(&mut out, &utc(*value)),
                Value::Text(value) => serde_json::to_writer(&mut out, first_characters(value)),
                _ => serde_json::to_writer(&mut out, &()),
            }
        });
        if written.is_err() || out.len() > MAX_JSON {
            out.truncate(before);
            break;
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push(b'}');
    String::from_utf8(out).ok()
}

/// A time as text; `None` beyond the years that have nanoseconds in 64 bits.
fn utc(file_time: u64) -> Option<String> {
    file_time_to_utc_us(file_time)?.checked_mul(1000).map(format_utc)
}
