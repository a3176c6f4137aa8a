//! The second walk over all events: hands each to the visitor, with its kind, its thread and its stack.

use std::ops::RangeInclusive;

use super::header::{self, Head, NO_ID};
use super::items::{self, Items};
use super::prescan::Prescan;
use super::process_table::{Owner, ProcessTable};
use super::stacks::{self, Sources, Turn};
use super::subject::{self, Subject};
use super::tdh_types::Description;
use super::tracelogging;
use crate::error::ProblemLog;
use crate::prelude::*;
use crate::reader::text::text_of;
use crate::reader::{
    EtwForm, EtwLayout, EventType, Field, FieldType, Labels, Layout, RawEvent, Stack, Thread, ThreadIndex, TypeId,
    Visitor,
};
use crate::source::MappedFile;
use crate::time::Clock;

/// Bounds on what a file can make the reader remember.
const MAX_TYPES: usize = 1 << 16;
const MAX_THREADS: usize = 1 << 18;
const MAX_SCHEMA_BYTES: usize = 64 << 20;
/// More than any machine has.
const MAX_PROCESSORS: usize = 1 << 12;
/// Opcodes of the scheduler's events.
const CONTEXT_SWITCH: u8 = 36;
const READY_THREAD: u8 = 50;
/// Fields of all kinds of events together, members of structures too.
const MAX_FIELDS: usize = 1 << 19;
/// Fields that are made at most, of kinds of events that do not fit, too.
const MAX_COUNTED: usize = 4 * MAX_FIELDS;

/// The class of "events were lost" in recordings of live sessions. Source: `evntrace.h`, `RT_LostEvent`.
const LOST_EVENT: Guid = Guid::constant("6a399ae0-4bc6-4de9-870b-3657f8947e7e");

/// The identity of a kind of event.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    guid: Guid,
    id: u32,
    version: u16,
    opcode: u8,
    pointer_size: u8,
    form: EtwForm,
    /// Number of the TraceLogging schema, or which manifest of the provider holds for the process.
    schema: u32,
}

/// The state of a reader.
pub struct EtlState<'v> {
    pub visitor: &'v mut dyn Visitor,
    /// The facts that the first walk found.
    pub known: Prescan,
    file: Option<&'v MappedFile>,
    types: Map<Key, TypeId>,
    wanted: Vec<bool>,
    trace_logging: Map<Vec<u8>, u32>,
    schema_bytes: usize,
    fields: usize,
    threads: Map<Owner, ThreadIndex>,
    /// Threads whose names were left out.
    nameless: u64,
    /// The ticks that have a time, and how many events have none.
    times: RangeInclusive<i64>,
    clamped: u64,
    problems: ProblemLog,
    stack: Vec<u8>,
    labels: Labels,
    /// The thread that runs on each processor, as far as it is known from context switches.
    running: Vec<u32>,
    /// The time of the event before this one.
    before: i64,
}

impl<'v> EtlState<'v> {
    pub fn new(
        visitor: &'v mut dyn Visitor,
        known: Prescan,
        clock: &Clock,
        file: Option<&'v MappedFile>,
    ) -> EtlState<'v> {
        EtlState {
            visitor,
            known,
            file,
            types: Map::default(),
            wanted: Vec::new(),
            trace_logging: Map::default(),
            schema_bytes: 0,
            fields: 0,
            threads: Map::default(),
            nameless: 0,
            times: clock.range(),
            clamped: 0,
            problems: ProblemLog::default(),
            stack: Vec::new(),
            labels: Labels::default(),
            running: Vec::new(),
            before: *clock.range().start(),
        }
    }

    /// Reports a problem, folding the flood of a kind that repeats.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.report(problem, |problem| self.visitor.problem(problem));
    }

    /// Reports a total, unless it is 0.
    pub fn total(&mut self, severity: Severity, code: &'static str, count: u64, offset: u64, message: &str) {
        Problem::new(severity, code, offset, message).counted(count).into_iter().for_each(|total| self.problem(total));
    }

    /// Reports what was counted and what was folded.
    pub fn finish(&mut self, offset: u64) {
        let message = "times of events beyond 64 bits of nanoseconds were clamped to 64 bits";
        self.total(Severity::Error, "time_out_of_range", self.clamped, offset, message);
        let ProcessTable { texts, unkept: (processes, threads), .. } = &self.known.processes;
        let (processes, threads, unkept) = (*processes, *threads, texts.unkept + self.nameless);
        if unkept > 0 {
            let problem =
                texts.budget.exceeded("processes, threads and kinds of events; the others have no name", offset);
            self.problem(problem.count(unkept));
        }
        let message = "too many processes; descriptions of the others are ignored";
        self.total(Severity::DataLoss, "too_many_processes", processes, offset, message);
        let message = "too many threads; descriptions of the others are ignored";
        self.total(Severity::DataLoss, "too_many_threads", threads, offset, message);
        self.problems.finish(|problem| self.visitor.problem(problem));
    }

    /// Hands the processes to the visitor.
    pub fn announce_processes(&mut self) {
        for process in &self.known.processes.processes {
            self.visitor.process(process);
        }
    }

    /// Delivers the event at the start of `bytes`. `place` is its offset in the file, `None` in a compressed buffer;
    /// `offset` is that of the event or of its compressed buffer, for messages.
    pub fn event(
        &mut self,
        bytes: &[u8],
        ticks: i64,
        processor: u32,
        place: Option<u64>,
        offset: u64,
    ) -> ControlFlow<()> {
        let Ok(head) = header::parse(bytes) else { return ControlFlow::Continue(()) };
        let body = bytes.get(head.body..head.size).unwrap_or_default();
        let (mut found, payload) = if head.has_items { items::parse(body) } else { (Items::default(), body) };
        if head.counters > 0 {
            let counters = head.body.saturating_sub(8 * usize::from(head.counters));
            found.counters = bytes.get(counters..head.body).unwrap_or_default();
        }
        if found.damaged {
            self.problem(Problem::error("damaged_items", offset, "the extended items of an event reach beyond it"));
        }
        let turn = self.known.stacks.as_mut().map(|stacks| stacks.turn(&head, payload, ticks));
        let event_type = self.type_of(&head, &found, offset);
        if !self.wanted.get(event_type.0 as usize).copied().unwrap_or(true) {
            return ControlFlow::Continue(());
        }
        if head.guid == Some(LOST_EVENT) {
            let message = "the session reports that events or buffers were lost before this event";
            self.problem(Problem::loss("dropped_events", offset, message));
            self.gap(self.before, ticks);
            self.events_lost(self.before);
        }
        let mut writer = Subject { process_id: head.process_id, thread_id: head.thread_id };
        if head.is_kernel && head.group == subject::THREAD {
            self.schedules(&head, payload, processor, &mut writer);
        }
        let about = match subject::is_of_running_thread(&head) {
            true => {
                writer.thread_id = self.running.get(processor as usize).copied().unwrap_or(NO_ID);
                writer
            }
            false => subject::subject_of(&head, payload),
        };
        let capture_thread = self.thread_of(writer, ticks);
        let thread = if about == writer { capture_thread } else { self.thread_of(about, ticks) };
        self.labels.activity_id = head.activity_id;
        self.labels.related_activity_id = found.related_activity_id;
        self.labels.json = found.labels();
        let (mut taken, mut addresses) = (false, found.stack);
        if found.stack_width == 4 {
            self.stack.clear();
            stacks::widen(found.stack, true, &mut self.stack);
            addresses = &self.stack;
        } else if found.stack.is_empty()
            && let (Some(stacks), Some(turn)) = (&mut self.known.stacks, turn)
        {
            let sources = Sources { bytes, place, file: self.file };
            match turn {
                Turn::Event(ordinal) => {
                    let threads = [writer.thread_id, about.thread_id];
                    addresses = stacks.of_event(&head, ordinal, (ticks, processor), threads, &sources);
                }
                Turn::Carrier(number) => {
                    (taken, addresses) = stacks.of_carrier(number, &head, payload, processor, &sources);
                }
            }
        }
        let in_range = ticks.clamp(*self.times.start(), *self.times.end());
        self.clamped += u64::from(ticks != in_range);
        self.before = in_range;
        let event = RawEvent {
            event_type,
            ticks: in_range,
            thread,
            capture_thread,
            processor,
            stack: Stack { addresses, key: None },
            labels: &self.labels,
            counters: found.counters,
            payload,
            offset: offset + (head.size - payload.len()) as u64,
        };
        if taken { self.visitor.stack_event(&event) } else { self.visitor.event(&event) }
    }

    /// Events were lost, all of them later than `since`.
    pub fn events_lost(&mut self, since: i64) {
        self.running.clear();
        self.visitor.events_lost(None, since.clamp(*self.times.start(), *self.times.end()));
    }

    /// Such events are missing between two times.
    pub fn gap(&mut self, since: i64, until: i64) {
        let [since, until] = [since, until].map(|ticks| ticks.clamp(*self.times.start(), *self.times.end()));
        self.visitor.gap(None, since, until);
    }

    /// Takes note of context switches. The header of an event that makes a thread ready may name no thread: it was
    /// written by the one that runs on the processor, which also has its stack.
    fn schedules(&mut self, head: &Head, payload: &[u8], processor: u32, writer: &mut Subject) {
        let index = processor as usize;
        match head.opcode {
            CONTEXT_SWITCH => {
                if self.running.len() <= index && index < MAX_PROCESSORS {
                    self.running.resize(index + 1, NO_ID);
                }
                let new = payload.first_chunk().map_or(NO_ID, |bytes| u32::from_le_bytes(*bytes));
                if let Some(running) = self.running.get_mut(index) {
                    *running = new;
                }
            }
            READY_THREAD if writer.thread_id == NO_ID => {
                writer.thread_id = self.running.get(index).copied().unwrap_or(NO_ID);
            }
            _ => {}
        }
    }

    fn thread_of(&mut self, subject: Subject, ticks: i64) -> ThreadIndex {
        let owner = self.known.processes.owner_of(subject, ticks);
        if let Some(index) = self.threads.get(&owner) {
            return *index;
        }
        let index = self.threads.len() as ThreadIndex;
        if self.threads.len() > MAX_THREADS {
            return index - 1;
        }
        let mut thread = self.known.processes.describe(owner);
        if self.threads.len() == MAX_THREADS {
            let message = format!("more than {MAX_THREADS} threads; the others are shown as one without an id");
            self.problem(Problem::loss("too_many_threads", 0, message));
            thread = Thread { name: Some("other threads".to_owned()), ..Thread::default() };
        }
        // A thread has a row for each process that had its id.
        if let Some(name) = &thread.name
            && !self.known.processes.texts.budget.take(name.len())
        {
            self.nameless += 1;
            thread.name = None;
        }
        self.visitor.thread(index, &thread);
        self.threads.insert(owner, index);
        index
    }

    fn type_of(&mut self, head: &Head, items: &Items<'_>, offset: u64) -> TypeId {
        let mut form = head.form;
        let mut schema = 0;
        // Kernel events of a group without a known class go by their group.
        let mut guid = head.guid.unwrap_or(Guid([head.group; 16]));
        if let Some(blob) = items.schema {
            let known = self.trace_logging.get(blob).copied();
            // Past the bound on schemas events are kept raw.
            match known.or_else(|| self.add_schema(blob)) {
                Some(number) => (form, schema) = (EtwForm::SelfDescribed, number),
                None => schema = u32::MAX,
            }
        } else if form == EtwForm::Manifest {
            schema = self.known.schemas.manifest_of(guid, head.process_id);
        } else if head.is_kernel && head.guid.is_none() {
            guid = Guid([head.group; 16]);
        }
        let (id, version, opcode, pointer_size) = (head.id, head.version, head.opcode, head.pointer_size);
        let key = Key { guid, id, version, opcode, pointer_size, form, schema };
        if let Some(id) = self.types.get(&key) { *id } else { self.add_type(key, head, items, offset) }
    }

    fn add_schema(&mut self, blob: &[u8]) -> Option<u32> {
        let number = self.trace_logging.len() as u32;
        let bytes = self.schema_bytes + blob.len();
        if bytes > MAX_SCHEMA_BYTES {
            return None;
        }
        self.schema_bytes = bytes;
        self.trace_logging.insert(blob.to_vec(), number);
        Some(number)
    }

    #[cold]
    fn add_type(&mut self, key: Key, head: &Head, items: &Items<'_>, offset: u64) -> TypeId {
        let id = TypeId(self.wanted.len() as u32);
        if self.wanted.len() > MAX_TYPES {
            // The last one made is the stand-in for all that do not fit.
            return TypeId(id.0 - 1);
        }
        let is_spent = self.fields > MAX_COUNTED || self.known.processes.texts.budget.is_spent();
        let event_type = if self.wanted.len() == MAX_TYPES {
            let message = "too many kinds of events; further ones are kept raw";
            self.problem(Problem::loss("too_many_event_types", offset, message));
            stand_in()
        } else {
            self.types.insert(key, id);
            let mut event_type = if is_spent { bare(key, head) } else { self.describe(key, head, items) };
            if let Layout::Etw(EtwLayout { fields: Some(fields), .. }) = &event_type.layout {
                self.fields += count(fields);
                if self.fields > MAX_FIELDS {
                    event_type.layout = Layout::Unreadable("too many described fields");
                }
            }
            let fits = is_spent || self.known.processes.texts.budget.take(text_of(&event_type, 0));
            self.nameless += u64::from(is_spent || !fits);
            if fits { event_type } else { bare(key, head) }
        };
        self.wanted.push(self.visitor.event_type(id, &event_type));
        id
    }

    fn describe(&self, key: Key, head: &Head, items: &Items<'_>) -> EventType {
        let description = match (key.form, items.schema) {
            (EtwForm::SelfDescribed, Some(blob)) => match tracelogging::parse(blob, key.pointer_size) {
                Ok(description) => Some(description),
                Err(why) => Some(Description { fields: Some(Err(why)), ..Description::default() }),
            },
            _ => self.known.schemas.describe(&key.guid, key.id, key.version, key.form, key.schema, key.pointer_size),
        };
        let mut description = description.unwrap_or_default();
        let layout = description.layout(key.pointer_size, key.form);
        let described_by = Some(description.provider).filter(|name| !name.is_empty());
        let named = items.provider_name().or(self.known.schemas.provider_name(&key.guid)).map(str::to_owned);
        let named = named.or(described_by).or_else(|| header::kernel_provider(head));
        let provider = named.unwrap_or_default();
        EventType { provider, name: description.name, layout, message: description.message, ..bare(key, head) }
    }
}

/// Fields, with those of structures in them.
fn count(fields: &[Field]) -> usize {
    let inside = |kind: &FieldType| {
        let mut kind = kind;
        while let FieldType::Array(of) | FieldType::FixedArray(of, _) | FieldType::Counted(of, _) = kind {
            kind = of;
        }
        if let FieldType::Object(members) = kind { count(members) } else { 0 }
    };
    fields.iter().fold(fields.len(), |sum, field| sum.saturating_add(inside(&field.kind)))
}

fn stand_in() -> EventType {
    EventType { name: "too_many_event_types".into(), level: 0, ..EventType::new("", 0, 0, Layout::NoMetadata) }
}

/// The kind of an event, as far as its header says.
fn bare(key: Key, head: &Head) -> EventType {
    EventType {
        provider_guid: head.guid,
        opcode: Some(key.opcode),
        level: u32::from(head.level),
        keywords: head.keyword,
        ..EventType::new("", key.id, u32::from(key.version), Layout::NoMetadata)
    }
}
