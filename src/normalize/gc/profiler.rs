//! ETWClrProfiler, the profiler that comes with PerfView: its events are calls of ICorProfilerCallback, of all processes
//! that it is loaded into. Each process has a normalizer of its own, the same as for recordings of callbacks.
//!
//! The events carry the first versions of the callbacks (32-bit lengths), and neither bounds nor suspensions: without
//! the runtime's own events the generation of a range stays unknown. The profiler numbers the collections, which shows
//! when one of them is missing. Facts: `ETWClrProfiler.man` and `CorProfilerTracer.cpp` of PerfView.
//!
//! Mostly the runtime's own events are recorded, too, and tell of the same collections. Then both tell of one:
//! ```text
//!   GCStart (profiler)   GCStart   bounds   ranges of both   GCStop (profiler)   bounds   GCEnd
//! ```
//! (So it is on .NET Core 3.1 and .NET 10.) The one that starts second takes the number of the first; the bounds of the
//! runtime hold for the ranges of the profiler, and these are left out when the runtime tells of ranges itself.

use std::collections::BTreeMap;

use super::ranges::Ranges;
use crate::error::{Problem, Severity};
use crate::event::Event;
use crate::event::rows::Rows;
use crate::normalize::callbacks::CallbackNormalizer;
use crate::normalize::callbacks::call::Call;
use crate::normalize::code::types::Types;
use crate::normalize::fact::{CallsiteId, Fact, FactSink, Gc, GcId};
use crate::normalize::scalars::Scalars;
use crate::reader::callback::format::NOT_ASKED;
use crate::reader::callback::{Body, Bounds};
use crate::reader::{Layout, ProcessKey};

/// Name of the provider.
pub const PROVIDER: &str = "ETWClrProfiler";
/// Processes with a profiler; no machine runs so many. What further ones say is counted and left out.
const MAX_PROCESSES: usize = 4096;

/// What an event of the profiler tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerEvent {
    Class,
    Allocated,
    Finalizeable,
    HandleCreated,
    HandleDestroyed,
    Roots,
    Object,
    GcStart,
    GcStop,
    Moved,
    Survived,
    Error,
    Shutdown,
}

impl ProfilerEvent {
    /// By the event's id.
    pub fn new(id: u32) -> Option<ProfilerEvent> {
        Some(match id {
            1 => ProfilerEvent::Class,
            10 => ProfilerEvent::Allocated,
            11 => ProfilerEvent::Finalizeable,
            12 => ProfilerEvent::HandleCreated,
            13 => ProfilerEvent::HandleDestroyed,
            15 => ProfilerEvent::Roots,
            16 => ProfilerEvent::Object,
            20 => ProfilerEvent::GcStart,
            21 => ProfilerEvent::GcStop,
            22 => ProfilerEvent::Moved,
            23 => ProfilerEvent::Survived,
            26 => ProfilerEvent::Error,
            27 => ProfilerEvent::Shutdown,
            _ => return None,
        })
    }

    /// Whether the collection in which this is told is past its start.
    pub fn is_past_start(self) -> bool {
        matches!(
            self,
            ProfilerEvent::Finalizeable
                | ProfilerEvent::Moved
                | ProfilerEvent::Survived
                | ProfilerEvent::Roots
                | ProfilerEvent::Object
                | ProfilerEvent::GcStop
        )
    }

    /// The columns of its rows.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            ProfilerEvent::Roots => &["ObjectIDs", "GCRootKinds", "GCRootFlags", "RootIDs"],
            ProfilerEvent::Object => &["ObjectRefs"],
            ProfilerEvent::Moved => &["RangeBases", "TargetBases", "Lengths"],
            ProfilerEvent::Survived => &["RangeBases", "Lengths"],
            _ => &[],
        }
    }
}

/// An event of the profiler, read.
pub struct ProfilerInput<'a> {
    /// What it tells.
    pub told: ProfilerEvent,
    /// Its fields.
    pub scalars: &'a Scalars,
    /// Its rows.
    pub rows: Option<Rows<'a>>,
    /// The event.
    pub event: &'a Event<'a>,
    /// Its stack.
    pub callsite_id: CallsiteId,
    /// The collection that is open by the runtime's own events.
    pub open: Option<GcId>,
}

/// The profiler in one process.
struct Profiler {
    calls: CallbackNormalizer,
    /// The profiler's number of the collection that it told of last.
    number: Option<u32>,
    /// The last collection of which the runtime tells, too.
    joined: GcId,
}

/// The profilers of all processes.
#[derive(Default)]
pub struct Profilers {
    /// By process id.
    processes: BTreeMap<ProcessKey, Profiler>,
    scratch: Scratch,
    /// Collections that are over and that the runtime tells of, too.
    pub joined: Vec<Gc>,
    missing: u64,
    left_out_processes: u64,
    lacking: u64,
    last_offset: u64,
}

/// Memory for the rows of the event at hand.
#[derive(Default)]
struct Scratch {
    one: Vec<[u64; 1]>,
    two: Vec<[u64; 2]>,
    three: Vec<[u64; 3]>,
    four: Vec<[u64; 4]>,
}

fn fill<'s, const N: usize>(place: &'s mut Vec<[u64; N]>, rows: Option<Rows<'_>>) -> &'s [[u64; N]] {
    place.clear();
    place.extend(rows.into_iter().flat_map(Rows::values));
    place
}

/// What the profiler's classes become where the runtime's own events tell of types, too: each once.
struct Once<'t, S> {
    process: ProcessKey,
    types: &'t mut Types,
    sink: &'t mut S,
}

impl<S: FactSink> FactSink for Once<'_, S> {
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Type(rows) => rows.iter().for_each(|found| self.types.profiled(self.process, found, self.sink)),
            other => self.sink.fact(other),
        }
    }
}

impl Profilers {
    /// One event, in the order of time.
    pub fn event(
        &mut self,
        input: &ProfilerInput<'_>,
        types: &mut Types,
        last_gc_id: &mut GcId,
        sink: &mut impl FactSink,
    ) {
        let (event, scalars) = (input.event, input.scalars);
        let process = event.thread.process();
        self.last_offset = event.raw.offset;
        if !self.processes.contains_key(&process) {
            if self.processes.len() >= MAX_PROCESSES {
                self.left_out_processes += 1;
                return;
            }
            let calls = CallbackNormalizer::of_process(process.id);
            self.processes.insert(process, Profiler { calls, number: None, joined: 0 });
        }
        let Some(profiler) = self.processes.get_mut(&process) else { return };
        let wide = !matches!(&event.info.event_type.layout, Layout::Etw(etw) if etw.pointer_size == 4);
        let number = |name| scalars.number(name).unwrap_or_default();
        let nothing = Bounds { hresult: NOT_ASKED, rows: &[], non_gc_hresult: NOT_ASKED, non_gc: &[] };
        let sink = &mut Once { process, types, sink };
        let scratch = &mut self.scratch;
        let body = match input.told {
            ProfilerEvent::GcStart => {
                self.missing += profiler.starts(scalars.small("GCID"));
                let generation = scalars.small::<u32>("Generation").filter(|g| *g <= 2);
                // Bits of the generations; of those above 2 the profiler does not tell.
                let collected = generation.map_or(0, |g| (2 << g) - 1);
                Body::Started { generations: 3, collected, reason: number("Induced") as u32, bounds: nothing }
            }
            ProfilerEvent::GcStop => {
                self.missing += profiler.stops(scalars.small("GCID"), event.raw.offset, sink);
                Body::Finished { bounds: nothing }
            }
            ProfilerEvent::Survived => Body::Surviving { version: 1, rows: fill(&mut scratch.two, input.rows) },
            ProfilerEvent::Moved => Body::Moved { version: 1, rows: fill(&mut scratch.three, input.rows) },
            ProfilerEvent::Roots => Body::Roots2 { rows: fill(&mut scratch.four, input.rows) },
            ProfilerEvent::Object => Body::Object {
                object_id: number("ObjectID"),
                class_id: number("ClassID"),
                size: number("Size"),
                references: fill(&mut scratch.one, input.rows),
            },
            ProfilerEvent::HandleCreated => {
                Body::HandleCreated { handle_id: number("HandleID"), object_id: number("InitialObjectID") }
            }
            ProfilerEvent::HandleDestroyed => Body::HandleDestroyed { handle_id: number("HandleID") },
            ProfilerEvent::Finalizeable => {
                Body::Finalizeable { flags: 0, object_id: number("ObjectID"), class_id: number("ClassID") }
            }
            ProfilerEvent::Allocated => Body::Allocated {
                object_id: number("ObjectID"),
                class_id: number("ClassID"),
                size: number("Size"),
                represented: number("RepresentativeSize"),
            },
            ProfilerEvent::Class => {
                let class_id = number("ClassID");
                if class_id == u64::MAX || !wide && class_id == u64::from(u32::MAX) {
                    // It stands for all classes of which the profiler could not find out what they are.
                    return;
                }
                Body::Class {
                    class_id,
                    module_id: number("ModuleID"),
                    token: number("Token") as u32,
                    element_type: 0,
                    rank: 0,
                    element_class_id: 0,
                    name: scalars.text("Name").unwrap_or_default(),
                }
            }
            ProfilerEvent::Error => {
                let (what, code) = (scalars.text("Message").unwrap_or_default(), number("ErrorCode"));
                let message = format!("the profiler of process {} says: {what} ({code:#010x})", process.id);
                let problem = Problem::new(Severity::DataLoss, "profiler_error", event.raw.offset, message);
                return sink.problem(&problem.thread(event.thread.thread_id));
            }
            ProfilerEvent::Shutdown => {
                profiler.calls.end(event.raw.offset, sink);
                self.joined.append(&mut profiler.calls.collections.joined);
                self.processes.remove(&process);
                return;
            }
        };
        let call = Call {
            ts_ns: event.ts_ns,
            thread: event.raw.capture_thread,
            thread_id: event.thread.thread_id,
            callsite_id: input.callsite_id,
            wide,
            alone: true,
            continues: false,
            offset: event.raw.offset,
            body,
        };
        let collections = &mut profiler.calls.collections;
        collections.holds = input.open == Some(profiler.joined);
        match input.open.filter(|open| *open != profiler.joined) {
            Some(open) => {
                collections.joins = true;
                let mut last = open.saturating_sub(1);
                profiler.calls.call(&call, &mut last, sink);
                if last == open {
                    profiler.joined = open;
                }
            }
            None => {
                collections.joins = false;
                profiler.calls.call(&call, last_gc_id, sink);
            }
        }
        if input.told == ProfilerEvent::GcStop {
            profiler.calls.collections.report(sink);
        }
        self.joined.append(&mut profiler.calls.collections.joined);
    }

    /// The open collection of a process, if the runtime is not known to tell of it.
    pub fn alone(&self, process: ProcessKey) -> Option<GcId> {
        self.processes.get(&process)?.calls.collections.alone()
    }

    /// The runtime tells of this open collection, too.
    pub fn join(&mut self, process: ProcessKey, gc_id: GcId) {
        if let Some(profiler) = self.processes.get_mut(&process) {
            profiler.joined = gc_id;
            profiler.calls.collections.join();
        }
    }

    /// The runtime's own events of a collection end, which told of these ranges.
    pub fn runtime_ends(
        &mut self,
        process: ProcessKey,
        (gc_id, ranges): (GcId, &Ranges),
        offset: u64,
        sink: &mut impl FactSink,
    ) {
        let Some(profiler) = self.processes.get_mut(&process) else { return };
        self.lacking += profiler.calls.collections.joined_ends(gc_id, ranges, sink);
        profiler.calls.after(offset, sink);
        self.joined.append(&mut profiler.calls.collections.joined);
    }

    /// The runtime goes on to another collection than `open`.
    pub fn runtime_goes_on(&mut self, process: ProcessKey, open: Option<GcId>, offset: u64, sink: &mut impl FactSink) {
        let Some(profiler) = self.processes.get_mut(&process) else { return };
        if open != Some(profiler.joined) && profiler.calls.collections.has_joined() {
            profiler.calls.interrupt(offset, sink);
            self.joined.append(&mut profiler.calls.collections.joined);
        }
    }

    /// The end of the recording.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
        for profiler in self.processes.values_mut() {
            profiler.calls.end(position, sink);
            self.joined.append(&mut profiler.calls.collections.joined);
        }
        let mut report = |code, count: u64, message: &str| {
            if count > 0 {
                let problem = Problem::new(Severity::DataLoss, code, self.last_offset, message).count(count);
                sink.problem(&problem);
            }
        };
        report(
            "lost_collections",
            self.missing,
            "collections are missing: the profiler's numbers of them do not occur",
        );
        let message = "ranges that only the profiler tells of, in collections of which the runtime tells ranges, too";
        report("unpaired_ranges", self.lacking, message);
        report("too_many_processes", self.left_out_processes, "events of more profiled processes than are told apart");
    }
}

impl Profiler {
    /// A collection of this number starts. Returns how many are missing before it.
    fn starts(&mut self, number: Option<u32>) -> u64 {
        let last = std::mem::replace(&mut self.number, number);
        // A smaller number is that of another runtime, or of another process with the same id.
        number.zip(last).map_or(0, |(now, last)| u64::from(now.saturating_sub(last).saturating_sub(1)))
    }

    /// A collection of this number ends. When it is another one than that which started last, both are incomplete.
    fn stops(&mut self, number: Option<u32>, offset: u64, sink: &mut impl FactSink) -> u64 {
        if number == self.number {
            return 0;
        }
        if self.calls.collections.runs() {
            self.calls.interrupt(offset, sink);
        }
        self.starts(number)
    }
}
