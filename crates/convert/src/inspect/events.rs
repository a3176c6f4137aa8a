//! Counts the events of a recording, and decodes the few about collections and the process.

use crate::prelude::*;

use tracequet_facts::{ProblemSummary, SourceFaults};
use tracequet_trace::event::{Decoding, Event, EventInfo, EventVisitor, Resolver};
use tracequet_trace::reader::etl::{Describes, EventManifests};
use tracequet_trace::reader::{self, End, Order, Process, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId};
use tracequet_trace::source::Input;

use super::gc_list::{EventShape, GcMarks};
use super::process::{self, ProcessInfo};
use super::report::{DecodedBy, EventTypeCount, Inspection, ProviderCount, ThreadCount, processes};

/// Reads a recording of events and counts what is in it.
pub(super) fn inspect(
    path: &Path,
    input: Input,
    manifests: &EventManifests,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Inspection> {
    let mut counter = Counter {
        total: input.size(),
        info: None,
        kinds: Vec::new(),
        details: Vec::new(),
        named: Vec::new(),
        threads: Vec::new(),
        thread_events: Vec::new(),
        first: i64::MAX,
        last: i64::MIN,
        process: ProcessInfo::default(),
        marks: GcMarks::default(),
        problems: Vec::new(),
        faults: SourceFaults::default(),
        progress,
    };
    let end = reader::read(input, Order::File, &mut Resolver::new(&mut counter).with_manifests(manifests))?;
    counter.finish(path, end)
}

/// Counts of the events of a kind.
struct Kind {
    events: u64,
    payload_bytes: u64,
    /// Whether payloads are looked into.
    watched: bool,
}

/// Facts about a kind that are known beforehand.
struct Details {
    count: EventTypeCount,
    /// The description in the recording has no fields: right only as long as payloads are empty.
    no_fields: bool,
    watch: Option<Watch>,
}

/// A kind of event whose payloads are looked into.
enum Watch {
    Collection(EventShape),
    Process,
    SourceFault,
}

struct Counter<'p> {
    info: Option<TraceInfo>,
    kinds: Vec<Kind>,
    details: Vec<Details>,
    /// Processes that the recording names (.etl).
    named: Vec<Process>,
    threads: Vec<Thread>,
    thread_events: Vec<u64>,
    first: i64,
    last: i64,
    process: ProcessInfo,
    marks: GcMarks,
    problems: Vec<ProblemSummary>,
    faults: SourceFaults,
    progress: &'p mut dyn FnMut(u64, Option<u64>),
    total: Option<u64>,
}

impl EventVisitor for Counter<'_> {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, _: TypeId, info: &EventInfo) -> bool {
        let event_type = &info.event_type;
        let decoded_by = match &info.decoding {
            Decoding::Described(_) => match info.described_by {
                Describes::Recording => DecodedBy::Recording,
                Describes::Manifest => DecodedBy::Manifest,
                Describes::Shipped => DecodedBy::Catalogue(info.event_type.version),
            },
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
        let watch = match EventShape::new(info) {
            Some(shape) => Some(Watch::Collection(shape)),
            None if process::describes_process(info) => Some(Watch::Process),
            None => SourceFaults::are_in(info).then_some(Watch::SourceFault),
        };
        self.kinds.push(Kind { events: 0, payload_bytes: 0, watched: watch.is_some() });
        self.details.push(Details { count, no_fields, watch });
        true
    }

    fn process(&mut self, process: &Process) {
        self.named.push(process.clone());
    }

    fn thread(&mut self, _: ThreadIndex, thread: &Thread) {
        self.threads.push(thread.clone());
        self.thread_events.push(0);
    }

    #[inline]
    fn wants(&mut self, event: &RawEvent<'_>) -> bool {
        if let Some(count) = self.thread_events.get_mut(event.thread as usize) {
            *count += 1;
        }
        self.first = self.first.min(event.ticks);
        self.last = self.last.max(event.ticks);
        let Some(kind) = self.kinds.get_mut(event.event_type.0 as usize) else { return false };
        kind.events += 1;
        kind.payload_bytes += event.payload.len() as u64;
        kind.watched
    }

    #[cold]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match self.details.get(event.raw.event_type.0 as usize).and_then(|d| d.watch.as_ref()) {
            Some(Watch::Collection(shape)) => self.marks.add(shape, event.raw, event.thread.process()),
            Some(Watch::Process) => self.process.learn(event),
            Some(Watch::SourceFault) => self.faults.add(event),
            None => {}
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
    fn finish(self, path: &Path, end: End) -> Result<Inspection> {
        let Some(info) = self.info else {
            return Err(Error::Internal("a recording was read without its header".into()));
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
        let processes = processes(&threads, &self.named);
        // Stable: equal counts stay in the order of first sight.
        providers.sort_by_key(|p| std::cmp::Reverse(p.events));
        event_types.sort_by_key(|e| std::cmp::Reverse(e.events));
        threads.sort_by_key(|t| std::cmp::Reverse(t.events));
        let mut problems = self.problems;
        self.faults.problems().for_each(|problem| ProblemSummary::note(&mut problems, &(&problem).into()));
        problems.sort_by_key(|p| p.code);
        let time = |ticks| if events > 0 { info.clock.since_start(ticks) } else { None };
        Ok(Inspection {
            path: path.to_owned(),
            first_ns: time(self.first),
            last_ns: time(self.last),
            payload_bytes: providers.iter().map(|p| p.payload_bytes).sum(),
            collections: self.marks.into_list(&info.clock),
            heap: None,
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
