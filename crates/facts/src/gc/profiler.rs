//! ETWClrProfiler, the profiler that comes with PerfView: its events as calls of ICorProfilerCallback.
//!
//! The events carry the first versions of the callbacks (32-bit lengths), and neither bounds nor suspensions: without
//! the runtime's own events the generation of a range stays unknown. Facts: `ETWClrProfiler.man` and
//! `CorProfilerTracer.cpp` of PerfView. What becomes of the calls is in [`super::profiled`].

use tracequet_trace::error::Problem;
use tracequet_trace::event::rows::Rows;
use tracequet_trace::reader::Layout;
use tracequet_trace::reader::callback::format::NOT_ASKED;
use tracequet_trace::reader::callback::{Body, Bounds};

use crate::callbacks::call::Call;
use crate::input::Input;

/// Name of the provider.
pub const PROVIDER: &str = "ETWClrProfiler";

/// The meaning of an event of the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the callbacks")]
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
    /// Whether the collection in which this comes is past its start.
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
}

/// A translation of an event of the profiler.
pub enum Translated<'a> {
    /// A call.
    Call(Call<'a>),
    /// The profiler could not do something.
    Problem(Problem),
    /// The process ends.
    Shutdown,
    /// Nothing.
    Nothing,
}

/// Memory for the rows of the event at hand.
#[derive(Default)]
pub struct Scratch {
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

const NO_BOUNDS: Bounds<'static> = Bounds { hresult: NOT_ASKED, rows: &[], non_gc_hresult: NOT_ASKED, non_gc: &[] };

/// An event as the call that it records.
pub fn translate<'a>(event: ProfilerEvent, input: &Input<'a>, scratch: &'a mut Scratch) -> Translated<'a> {
    let wide = !matches!(&input.event.info.event_type.layout, Layout::Etw(etw) if etw.pointer_size == 4);
    let number = |name| input.number(name);
    let body = match event {
        ProfilerEvent::GcStart => {
            let generation = input.fields.small::<u32>("Generation").filter(|g| *g <= 2);
            // Bits of the generations; the profiler does not record those above 2.
            let collected = generation.map_or(0, |g| (2 << g) - 1);
            Body::Started { generations: 3, collected, reason: number("Induced") as u32, bounds: NO_BOUNDS }
        }
        ProfilerEvent::GcStop => Body::Finished { bounds: NO_BOUNDS },
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
                // This id stands for all classes that the profiler could not identify.
                return Translated::Nothing;
            }
            Body::Class {
                class_id,
                module_id: number("ModuleID"),
                token: number("Token") as u32,
                element_type: 0,
                rank: 0,
                element_class_id: 0,
                name: input.text("Name"),
            }
        }
        ProfilerEvent::Error => {
            let (process_id, what, code) = (input.process_id(), input.text("Message"), number("ErrorCode"));
            let message = format!("the profiler of process {process_id} says: {what} ({code:#010x})");
            let problem = Problem::loss("profiler_error", input.offset(), message);
            return Translated::Problem(problem.thread(input.thread_id()));
        }
        ProfilerEvent::Shutdown => return Translated::Shutdown,
    };
    Translated::Call(Call {
        ts_ns: input.ts_ns(),
        thread: input.capture_thread(),
        thread_id: input.thread_id(),
        callsite_id: input.callsite_id,
        wide,
        alone: true,
        failed: false,
        continues: false,
        offset: input.offset(),
        body,
    })
}
