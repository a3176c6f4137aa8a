//! What is in a recording, without decoding it: one pass that counts, and looks only into the few payloads that tell
//! of collections and of the process.
//!
//! Events come in the order of the file, nothing is held back or sorted, and an event costs a few additions into arrays
//! indexed by kind and by thread.

mod callbacks;
mod collections;
mod process;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use collections::{Collection, CollectionKind, Collections};
pub use process::ProcessInfo;

use crate::error::{Problem, Result, Severity};
use crate::event::plan::{Plan, PlanField};
use crate::event::{Decoding, EventInfo};
use crate::pipeline::ProblemSummary;
use crate::reader::etl::Manifests;
use crate::reader::{self, End, EventType, Order, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId, Visitor};
use crate::source::Input;
use collections::{Marks, Shape};

/// What is in a recording.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The recording.
    pub path: PathBuf,
    /// Its header.
    pub info: TraceInfo,
    /// How it ended.
    pub end: End,
    /// What it says about the process.
    pub process: ProcessInfo,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Time of the oldest event, nanoseconds since the recording began; `None` without events.
    pub first_ns: Option<i64>,
    /// Time of the newest event.
    pub last_ns: Option<i64>,
    /// Providers, those with most events first.
    pub providers: Vec<ProviderCount>,
    /// Kinds of events, those with most events first.
    pub event_types: Vec<EventTypeCount>,
    /// Processes, those with most events first.
    pub processes: Vec<ProcessCount>,
    /// Threads, those with most events first.
    pub threads: Vec<ThreadCount>,
    /// Collections.
    pub collections: Collections,
    /// What was lost, damaged or not understood, by code.
    pub problems: Vec<ProblemSummary>,
}

/// Events of one provider.
#[derive(Clone, Debug)]
pub struct ProviderCount {
    /// Name.
    pub name: String,
    /// Kinds of events.
    pub event_types: u64,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Events of one kind.
#[derive(Clone, Debug)]
pub struct EventTypeCount {
    /// Provider name.
    pub provider: String,
    /// Event id.
    pub event_id: u32,
    /// Event version.
    pub version: u32,
    /// Name: the recording's, else the catalogue's, else `event_<id>`.
    pub name: String,
    /// Opcode, when known.
    pub opcode: Option<u8>,
    /// Verbosity: 0 log always, 1 critical to 5 verbose.
    pub level: u32,
    /// Keyword mask.
    pub keywords: u64,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Where a conversion would take the fields from.
    pub decoded_by: DecodedBy,
}

/// Where the fields of an event are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedBy {
    /// In the recording.
    Recording,
    /// In a manifest that was given beside it.
    Manifest,
    /// In the catalogue; the version that the layout was made for, which may be below the event's.
    Catalogue(u32),
    /// Nowhere: payloads are kept raw; why.
    Raw(&'static str),
}

/// Events of one process.
#[derive(Clone, Debug)]
pub struct ProcessCount {
    /// OS process id; ids are reused, so that two may have the same.
    pub process_id: u64,
    /// Name of the program; empty when the recording does not tell.
    pub name: String,
    /// Command line; empty when the recording does not tell.
    pub command_line: String,
    /// Threads.
    pub threads: u64,
    /// Events.
    pub events: u64,
}

/// Events of one thread.
#[derive(Clone, Debug)]
pub struct ThreadCount {
    /// The thread.
    pub thread: Thread,
    /// Events that are about it.
    pub events: u64,
}

impl Inspection {
    /// Whether anything of the recording was lost or damaged.
    pub fn has_losses(&self) -> bool {
        !self.end.complete || self.problems.iter().any(|p| p.severity > Severity::Info)
    }

    /// Nanoseconds from the oldest to the newest event.
    pub fn duration_ns(&self) -> i64 {
        self.last_ns.unwrap_or_default().saturating_sub(self.first_ns.unwrap_or_default())
    }
}

/// Reads a recording (`-`: standard input) and tells what is in it. `progress` is called with the bytes of the
/// (unpacked) recording that are done, and with how many there are, when that is known.
pub fn inspect(path: &Path, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Inspection> {
    inspect_with(path, &Manifests::default(), progress)
}

/// The same, with manifests of providers whose events an .etl does not describe itself.
pub fn inspect_with(
    path: &Path,
    manifests: &Manifests,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Inspection> {
    let input = Input::open(path)?;
    let total = input.size();
    if reader::Format::detect(input.head()) == Some(reader::Format::Callbacks) {
        return callbacks::inspect(path, input, total, progress);
    }
    let mut counter = Counter {
        manifests,
        info: None,
        kinds: Vec::new(),
        details: Vec::new(),
        told: Vec::new(),
        threads: Vec::new(),
        thread_events: Vec::new(),
        first: i64::MAX,
        last: i64::MIN,
        process: ProcessInfo::default(),
        marks: Marks::default(),
        problems: Vec::new(),
        progress,
        total,
    };
    let end = reader::read(input, Order::File, &mut counter)?;
    counter.finish(path, end)
}

/// What is counted for every event of a kind.
struct Kind {
    events: u64,
    payload_bytes: u64,
    /// Whether payloads are looked into.
    watched: bool,
}

/// What is known of a kind beforehand.
struct Details {
    count: EventTypeCount,
    /// The description in the recording has no fields: right only as long as payloads are empty.
    no_fields: bool,
    watch: Option<Watch>,
}

/// A kind of event whose payloads are looked into.
enum Watch {
    Collection(Shape),
    Process(EventInfo),
}

struct Counter<'p> {
    manifests: &'p Manifests,
    info: Option<TraceInfo>,
    kinds: Vec<Kind>,
    details: Vec<Details>,
    told: Vec<reader::Process>,
    threads: Vec<Thread>,
    thread_events: Vec<u64>,
    first: i64,
    last: i64,
    process: ProcessInfo,
    marks: Marks,
    problems: Vec<ProblemSummary>,
    progress: &'p mut dyn FnMut(u64, Option<u64>),
    total: Option<u64>,
}

impl Visitor for Counter<'_> {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, _: TypeId, event_type: &EventType) -> bool {
        let pointer_size = self.info.as_ref().map_or(8, |i| i.pointer_size);
        let completed = self.manifests.complete(event_type);
        let info = EventInfo::resolve(&completed, pointer_size);
        let decoded_by = match &info.decoding {
            Decoding::Described(_) if completed.layout != event_type.layout => DecodedBy::Manifest,
            Decoding::Described(_) => DecodedBy::Recording,
            Decoding::Catalogue { version, .. } => DecodedBy::Catalogue(*version),
            Decoding::Raw(why) => DecodedBy::Raw(why),
        };
        let no_fields = matches!(&info.decoding, Decoding::Described(plan) if plan.fields.is_empty());
        let count = EventTypeCount {
            provider: info.provider.clone(),
            event_id: event_type.event_id,
            version: event_type.version,
            name: info.name.clone(),
            opcode: info.opcode,
            level: event_type.level,
            keywords: event_type.keywords,
            events: 0,
            payload_bytes: 0,
            decoded_by,
        };
        let watch = match Shape::new(&info) {
            Some(shape) => Some(Watch::Collection(shape)),
            None => process::tells_of_process(&info).then_some(Watch::Process(info)),
        };
        self.kinds.push(Kind { events: 0, payload_bytes: 0, watched: watch.is_some() });
        self.details.push(Details { count, no_fields, watch });
        true
    }

    fn process(&mut self, process: &reader::Process) {
        self.told.push(process.clone());
    }

    fn thread(&mut self, _: ThreadIndex, thread: &Thread) {
        self.threads.push(thread.clone());
        self.thread_events.push(0);
    }

    #[inline]
    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        if let Some(count) = self.thread_events.get_mut(event.thread as usize) {
            *count += 1;
        }
        self.first = self.first.min(event.ticks);
        self.last = self.last.max(event.ticks);
        if let Some(kind) = self.kinds.get_mut(event.event_type.0 as usize) {
            kind.events += 1;
            kind.payload_bytes += event.payload.len() as u64;
            if kind.watched {
                self.look_into(event);
            }
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        ProblemSummary::note(&mut self.problems, &(&problem).into());
    }

    fn progress(&mut self, position: u64) {
        (self.progress)(position, self.total);
    }
}

impl Counter<'_> {
    #[cold]
    fn look_into(&mut self, event: &RawEvent<'_>) {
        match self.details.get(event.event_type.0 as usize).and_then(|d| d.watch.as_ref()) {
            Some(Watch::Collection(shape)) => {
                let process = self.threads.get(event.thread as usize).map(Thread::process);
                self.marks.add(shape, event, process.unwrap_or_default());
            }
            Some(Watch::Process(info)) => self.process.learn(info, event.payload),
            None => {}
        }
    }

    fn finish(self, path: &Path, end: End) -> Result<Inspection> {
        let Some(info) = self.info else {
            return Err(crate::error::Error::Internal("a recording was read without its header".into()));
        };
        let mut event_types: Vec<EventTypeCount> = Vec::with_capacity(self.details.len());
        for (details, kind) in self.details.into_iter().zip(self.kinds) {
            let mut count = details.count;
            count.events = kind.events;
            count.payload_bytes = kind.payload_bytes;
            if details.no_fields && kind.payload_bytes > 0 {
                count.decoded_by = DecodedBy::Raw("the recording does not describe the fields of this event");
            }
            event_types.push(count);
        }
        let mut providers: Vec<ProviderCount> = Vec::new();
        for kind in &event_types {
            let known = providers.iter().position(|p| p.name == kind.provider).unwrap_or_else(|| {
                let name = kind.provider.clone();
                providers.push(ProviderCount { name, event_types: 0, events: 0, payload_bytes: 0 });
                providers.len() - 1
            });
            if let Some(provider) = providers.get_mut(known) {
                provider.event_types += 1;
                provider.events += kind.events;
                provider.payload_bytes += kind.payload_bytes;
            }
        }
        let events = providers.iter().map(|p| p.events).sum();
        let threads = self.threads.into_iter().zip(self.thread_events);
        let mut threads: Vec<_> = threads.map(|(thread, events)| ThreadCount { thread, events }).collect();
        let processes = processes(&threads, &self.told);
        // Stable: equal counts stay in the order of first sight.
        providers.sort_by_key(|p| std::cmp::Reverse(p.events));
        event_types.sort_by_key(|e| std::cmp::Reverse(e.events));
        threads.sort_by_key(|t| std::cmp::Reverse(t.events));
        let mut problems = self.problems;
        problems.sort_by_key(|p| p.code);
        let time = |ticks| if events > 0 { info.clock.since_start(ticks) } else { None };
        Ok(Inspection {
            path: path.to_owned(),
            first_ns: time(self.first),
            last_ns: time(self.last),
            payload_bytes: providers.iter().map(|p| p.payload_bytes).sum(),
            collections: self.marks.collections(&info.clock),
            process: self.process,
            info,
            end,
            events,
            providers,
            event_types,
            processes,
            threads,
            problems,
        })
    }
}

/// Counts by process what was counted by thread.
fn processes(threads: &[ThreadCount], told: &[reader::Process]) -> Vec<ProcessCount> {
    let mut by_key: std::collections::BTreeMap<(u64, u32), ProcessCount> = std::collections::BTreeMap::new();
    for thread in threads {
        let reader::ProcessKey { id: process_id, incarnation } = thread.thread.process();
        let (name, command_line) = (String::new(), String::new());
        let fresh = ProcessCount { process_id, name, command_line, threads: 0, events: 0 };
        let process = by_key.entry((process_id, incarnation)).or_insert(fresh);
        process.threads += 1;
        process.events += thread.events;
    }
    for one in told {
        let Some(process) = by_key.get_mut(&(one.process_id, one.incarnation)) else { continue };
        process.name.clone_from(&one.name);
        process.command_line.clone_from(&one.command_line);
    }
    let mut list: Vec<ProcessCount> = by_key.into_values().collect();
    list.sort_by_key(|p| std::cmp::Reverse(p.events));
    list
}

/// Where a field of fixed size lies in the payload, and its width.
#[derive(Clone, Copy, Debug)]
struct Place(usize, usize);

impl Place {
    /// The place of the field with this name, if all fields before it have fixed sizes.
    fn of(plan: &Plan, name: &str) -> Option<Place> {
        let mut at = 0;
        for PlanField { name: found, node, .. } in &plan.fields {
            let width = node.fixed_size()?;
            if found == name {
                return (1..=8).contains(&width).then_some(Place(at, width));
            }
            at += width;
        }
        None
    }

    /// The value there; `None` when the payload is too short.
    fn read(self, payload: &[u8]) -> Option<u64> {
        let bytes = payload.get(self.0..self.0 + self.1)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}
