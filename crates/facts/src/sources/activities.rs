//! Work with a start and a stop: requests, queries, and other work of event sources.

use std::borrow::Borrow;

use tracequet_trace::error::beginning;
use tracequet_trace::event::{Decoding, EventInfo};
use tracequet_trace::time::{file_time_to_utc_us, format_utc};
use tracequet_trace::utf16;

use super::diagnostic_source::{self, PairKey, PairName};
use super::open_work::{Ids, Key, OpenWork, Work, first_characters};
use super::outcome::{FIELDS as OUTCOMES, Said};
use super::spans::Span;
use super::tasks::{self, TaskEvent};
use super::work_event::{ID_ENDS, Step, WorkEvent, is_id, number};
use crate::fact::Activity;
use crate::prelude::*;

/// The step of work that an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivitiesAction {
    /// A step of work, by its type.
    Work(WorkEvent),
    /// An event of a DiagnosticSource, which has its own name in the payload.
    DiagnosticSource,
    /// A DiagnosticSource event that whoever recorded it declared to be a start or stop, whatever it is called.
    Command(Step),
    /// A start or stop of an ActivitySource, likewise.
    ActivitySource(Step),
    /// A step of a task.
    Task(TaskEvent),
}

const DIAGNOSTIC_SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";

/// Other fields of a DiagnosticSource event that are worth keeping.
const KEPT: &[&str] = &[
    "Method", "Path", "Request", "RequestUri", "Url", "CommandText", "DataSource", "Database", "OperationName",
    "DisplayName",
];

/// Pairs that hold the tags of an activity as text, by the names that its properties have.
const TAGS: &[&str] = &["Tags", "TagObjects", "ActivityTags"];

/// Bytes of the fields of a start as JSON, at most, and of a name in a message.
const MAX_JSON: usize = 4096;
const MAX_NAME: usize = 200;

/// The open work.
#[derive(Debug, Default)]
pub struct Activities {
    open: OpenWork,
    without_ids: WithoutIds,
}

/// Starts that are no rows, since nothing says which stop is theirs.
#[derive(Debug, Default)]
struct WithoutIds {
    count: u64,
    /// Provider and work of the first one, and its place.
    first: Option<(String, u64)>,
    /// Whether other starts have activity ids: then these were recorded, and some work has none.
    others_have: bool,
}

impl WithoutIds {
    fn add(&mut self, event: WorkEvent, input: &Input<'_>) {
        let info = input.event.info;
        // Starts of Windows itself have no activity ids, whatever is recorded.
        if info.provider.starts_with("Microsoft-Windows-") {
            return;
        }
        self.count += 1;
        let name =
            || format!("{}/{}", beginning(&info.provider, MAX_NAME), beginning(event.work_name(&info.name), MAX_NAME));
        self.first.get_or_insert_with(|| (name(), input.offset()));
    }

    fn report(&self, sink: &mut impl FactSink) {
        let Some((name, offset)) = self.first.as_ref().filter(|_| !self.others_have) else { return };
        let message = format!(
            "Start events without an activity id are not in the table activity, the first of {name}: activity ids are recorded \
             with System.Threading.Tasks.TplEventSource:0x80"
        );
        sink.problem(&Problem::info("starts_without_ids", *offset, message).count(self.count));
    }
}

impl Activities {
    fn work_event(&mut self, event: WorkEvent, input: &Input<'_>, sink: &mut impl FactSink) {
        let (mut ids, mut span, mut text) = (Ids::default(), Span::default(), String::new());
        for (name, value) in input.fields.iter().filter(|(name, _)| is_id(name)) {
            text.clear();
            // As much as a GUID takes.
            text.reserve(36);
            if plain_text(value, &mut text) {
                ids.add(name, &text);
                span.add(name, &text);
            }
        }
        let key = key(input, event.kind);
        match event.step {
            // No stop can be known to be its own: an event of some thing, not work.
            Step::Start if key.2.is_none() && ids.is_empty() => self.without_ids.add(event, input),
            Step::Start => {
                self.without_ids.others_have |= !key.2.is_none();
                let info = input.event.info;
                let names = || (info.provider.clone(), event.work_name(&info.name).to_owned());
                self.open.names.add(event.kind, names);
                let fields = json(input.fields.iter());
                self.open.begin(key, started(input, event.kind, fields, (ids, span)), sink);
            }
            Step::Stop => {
                let mut said = None;
                let mut fields = OUTCOMES.iter().map(|name| (*name, input.fields.get(name)));
                if let Some((field, value)) = fields.find(|(_, value)| **value != Value::Null) {
                    let mut text = String::new();
                    said = (plain_text(value, &mut text) && !text.is_empty()).then_some(Said { field, text });
                }
                self.end(&key, &ids, said, input, sink);
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
            return self.open.begin(key, started(input, event.kind, fields, Default::default()), sink);
        }
        if let Some(mut work) = self.open.end(&key, &Ids::default()) {
            work.row.end_ts_ns = Some(input.ts_ns());
            work.row.end_thread_id = input.thread_id();
            work.row.paired_by = Some("fields");
            work.outcome = event.outcome(input.fields).map(|text| Said { field: "", text: text.to_owned() });
            self.open.report(work, sink);
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
        let known = |key: PairKey<'_>| {
            let name = key.one_of(KEPT).or_else(|| key.one_of(OUTCOMES)).or_else(|| key.one_of(TAGS));
            name.map(PairName::Borrowed)
        };
        let id = |key: PairKey<'_>| key.ends_in(ID_ENDS).then(|| key.text()).filter(|key| is_id(key));
        let pairs = head.pairs(|key| known(key).or_else(|| id(key).map(PairName::Owned)));
        let mut ids = Ids::default();
        pairs.iter().filter(|(key, _)| is_id(key)).for_each(|(key, value)| ids.add(key, value));
        let kind = number((head.source, work));
        let key = key(input, kind);
        if step == Step::Start {
            self.open.names.add(kind, || (utf16::string(head.source), utf16::string(work)));
            let fields = diagnostic_json(&pairs);
            let mut span = Span::default();
            pairs.iter().filter(|(key, _)| is_id(key)).for_each(|(key, value)| span.add(key, &utf16::string(value)));
            return self.open.begin(key, started(input, kind, fields, (ids, span)), sink);
        }
        let found =
            OUTCOMES.iter().find_map(|name| pairs.iter().find(|(key, _)| key == name).map(|pair| (*name, pair)));
        let outcome = found.map(|(field, (_, value))| Said { field, text: utf16::string(value) });
        if let Some(mut work) = self.ended(&key, &ids, input) {
            work.outcome = outcome;
            work.end_fields = diagnostic_json(&pairs);
            self.open.report(work, sink);
        }
    }

    fn end(&mut self, key: &Key, ids: &Ids, outcome: Option<Said>, input: &Input<'_>, sink: &mut impl FactSink) {
        if let Some(mut work) = self.ended(key, ids, input) {
            work.outcome = outcome;
            self.open.report(work, sink);
        }
    }

    /// The work that a stop ends.
    fn ended(&mut self, key: &Key, ids: &Ids, input: &Input<'_>) -> Option<Work> {
        let mut work = self.open.end(key, ids)?;
        work.row.end_ts_ns = Some(input.ts_ns());
        work.row.end_thread_id = input.thread_id();
        Some(work)
    }

    /// Gaps show after later events: work that has ended waits until those of its time are known.
    pub fn gaps_are_late(&mut self) {
        self.open.gaps_are_late = true;
    }

    /// Hands on work that ended before a time.
    pub fn release(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        self.open.release(ended_before_ns, sink);
    }

    /// The latest end of work that was handed on though a gap of its time may still show.
    pub fn unsettled(&self) -> Option<i64> {
        self.open.unsettled
    }
}

impl Tracker for Activities {
    type Action = ActivitiesAction;
    // Types are looked at one by one.
    const EVENTS: Events<ActivitiesAction> = &[];

    fn needs(action: ActivitiesAction) -> Needs {
        if matches!(action, ActivitiesAction::Work(_) | ActivitiesAction::Task(_)) {
            Needs::Fields
        } else {
            Needs::Header
        }
    }

    /// The step of work that events of a type are, if they are one. The events of the runtime itself have tables of
    /// their own.
    fn action(info: &EventInfo) -> Option<ActivitiesAction> {
        if info.provider == DIAGNOSTIC_SOURCE {
            return match info.name.as_str() {
                "ActivityStart" => Some(ActivitiesAction::ActivitySource(Step::Start)),
                "ActivityStop" => Some(ActivitiesAction::ActivitySource(Step::Stop)),
                "Event" => Some(ActivitiesAction::DiagnosticSource),
                name if name.contains("Activity") && name.ends_with("Start") => {
                    Some(ActivitiesAction::Command(Step::Start))
                }
                name if name.contains("Activity") && name.ends_with("Stop") => {
                    Some(ActivitiesAction::Command(Step::Stop))
                }
                _ => None,
            };
        }
        if let Some(task) = TaskEvent::of(info) {
            return Some(ActivitiesAction::Task(task));
        }
        let is_described = info.catalogue.is_none() && matches!(info.decoding, Decoding::Described(_));
        is_described.then(|| WorkEvent::of(info)).flatten().map(ActivitiesAction::Work)
    }

    fn event(&mut self, action: ActivitiesAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        match action {
            ActivitiesAction::Work(work) => self.work_event(work, input, sink),
            ActivitiesAction::Task(event) => self.task_event(event, input, sink),
            ActivitiesAction::DiagnosticSource => {
                // Most events are neither, and are left alone.
                if let Some(head) = diagnostic_source::head(input.event.raw.payload)
                    && let Some((work, step)) = head.work()
                {
                    self.diagnostic(step, &head, work, input, sink);
                }
            }
            ActivitiesAction::Command(step) => {
                if let Some(head) = diagnostic_source::head(input.event.raw.payload) {
                    self.diagnostic(step, &head, head.command(), input, sink);
                }
            }
            ActivitiesAction::ActivitySource(step) => {
                if let Some(head) = diagnostic_source::head(input.event.raw.payload) {
                    self.diagnostic(step, &head, head.name, input, sink);
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.open.forget(cut.process, cut.is_lost(), sink);
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        self.without_ids.report(sink);
    }

    fn dropped(&self) -> Vec<Dropped> {
        let (work, unnamed) = self.open.dropped();
        vec![
            Dropped {
                code: "too_many_activities",
                count: work,
                message: "too many concurrent activities; ends missing in the table activity",
            },
            Dropped {
                code: "too_many_kinds_of_work",
                count: unnamed,
                message: "too many kinds of activities; names missing in the table activity",
            },
        ]
    }
}

/// Whether nothing else ever has the number that a piece of work was paired by: tasks, which may be waited for many
/// times.
pub fn is_numbered_once(row: &Activity<'_>) -> bool {
    row.provider_name == tasks::PROVIDER && row.name != tasks::WAIT
}

fn key(input: &Input<'_>, kind: u64) -> Key {
    (input.process(), kind, input.event.raw.labels.activity_id)
}

/// Work that begins with this event.
fn started(input: &Input<'_>, kind: u64, fields: Option<String>, (ids, span): (Ids, Span)) -> Work {
    Work { row: about(input), kind, fields, ids, span, failed: false, outcome: None, end_fields: None }
}

fn about(input: &Input<'_>) -> Activity<'static> {
    let labels = input.event.raw.labels;
    Activity { activity_id: labels.activity_id, parent_activity_id: labels.related_activity_id, ..input.row() }
}

/// A simple value as text; false when it is not simple.
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

/// The pairs of a DiagnosticSource event as a JSON object, with the tags in an object of their own; `None` when there
/// are none.
fn diagnostic_json(pairs: &[(PairName, &[u8])]) -> Option<String> {
    let (tags, plain): (Vec<_>, Vec<_>) = pairs.iter().partition(|(key, _)| TAGS.contains(&key.as_ref()));
    let texts: Vec<_> = tags.iter().map(|(_, value)| utf16::string(value)).collect();
    let tags = texts.iter().find_map(|text| diagnostic_source::tags(text).filter(|tags| !tags.is_empty()));
    let texts = |(key, value): &(PairName, &[u8])| (key.clone(), Value::Text(utf16::string(value)));
    let plain = json(plain.into_iter().map(texts));
    let tags = json(tags.into_iter().flatten().map(|(key, value)| (key, Value::Text(value.to_owned()))));
    match (plain, tags) {
        (plain, None) => plain,
        (None, Some(tags)) => Some(format!("{{\"tags\":{tags}}}")),
        (Some(plain), Some(tags)) => {
            let open = plain.strip_suffix('}').unwrap_or(&plain);
            Some(format!("{open},\"tags\":{tags}}}"))
        }
    }
}

/// A time as text; `None` beyond the years that have nanoseconds in 64 bits.
fn utc(file_time: u64) -> Option<String> {
    file_time_to_utc_us(file_time)?.checked_mul(1000).map(format_utc)
}
