//! The collector's story: events in the order of time become facts about collections, ranges, roots, the heap, types,
//! allocations and call stacks. Knows no Arrow.

pub mod callbacks;
pub mod code;
mod enum_names;
pub mod fact;
mod gc;
mod processes;
mod scalars;
mod threads;
mod tracker;

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::error::{Problem, Severity};
use crate::event::rows::{RowLayout, Rows};
use crate::event::{Event, EventInfo};
use crate::reader::{self, ProcessKey, TypeId};
use crate::time::Clock;
use code::modules::Modules;
use code::types::Types;
use fact::{Allocation, CallsiteId, FactSink, GcFinalizable, GcGenerationRange, GcHandle, GcHeapStats, GcId};
use fact::{GcRoot, GcWeakElement, HeapObject, range_time};
use gc::event_collections::{EventGcTracker, Start};
use gc::heap_walk::Heap;
use gc::profiler::{ProfilerEvent, ProfilerInput, Profilers};
use gc::ranges;
use processes::Processes;
use threads::samples;
pub use tracker::Totals;
use tracker::{Handler, Kind};

/// Finds the facts in the events of one recording.
#[derive(Default)]
pub struct Normalizer {
    handlers: Vec<Option<Handler>>,
    runtimes: Vec<EventGcTracker>,
    /// Walks of the heap, by the place of their runtime in `runtimes`.
    heaps: HashMap<usize, Heap, FixedState>,
    types: Types,
    processes: Processes,
    modules: Modules,
    profilers: Profilers,
    last_gc_id: GcId,
    short_rows: u64,
    short_at: u64,
}

impl Normalizer {
    /// For recordings whose header names this process (0: none).
    pub fn new() -> Normalizer {
        Normalizer::default()
    }

    /// A process that the recording tells of.
    pub fn process(&mut self, process: &reader::Process, clock: &Clock) {
        self.processes.told(process, clock);
    }

    /// So many events of a process, from the first to the last; told before the end.
    pub fn counted(&mut self, process: ProcessKey, events: u64, first_ns: i64, last_ns: i64) {
        self.processes.counted(process, events, first_ns, last_ns);
    }

    /// A new kind of event. Returns whether facts come from it.
    pub fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        let index = id.0 as usize;
        if self.handlers.len() <= index {
            self.handlers.resize_with(index + 1, || None);
        }
        let handler = Handler::new(info);
        let wanted = handler.is_some();
        if let Some(place) = self.handlers.get_mut(index) {
            *place = handler;
        }
        wanted
    }

    /// One event, in the order of time.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, callsite_id: CallsiteId, sink: &mut impl FactSink) {
        let index = event.raw.event_type.0 as usize;
        // The handler is taken out for the call, so that it may be read while the rest of the state changes.
        let Some(mut handler) = self.handlers.get_mut(index).and_then(Option::take) else { return };
        self.handle(&mut handler, event, callsite_id, sink);
        if let Some(place) = self.handlers.get_mut(index) {
            *place = Some(handler);
        }
    }

    fn runtime(runtimes: &mut Vec<EventGcTracker>, process: ProcessKey, clr: u16) -> usize {
        match runtimes.iter().position(|r| r.is_of(process, clr)) {
            Some(index) => index,
            // No machine runs so many; a made-up recording shares the last one.
            None if runtimes.len() >= 1024 => runtimes.len() - 1,
            None => {
                runtimes.push(EventGcTracker::new(process, clr));
                runtimes.len() - 1
            }
        }
    }

    fn handle(&mut self, handler: &mut Handler, event: &Event<'_>, callsite: CallsiteId, sink: &mut impl FactSink) {
        handler.read(event);
        match handler.kind {
            Kind::Profiler(told) => return self.told(told, handler, event, callsite, sink),
            Kind::Sample(sampler) => return samples::sample(sampler, handler, event, callsite, sink),
            Kind::Image(change) => return self.modules.image(change, event, &handler.scalars),
            Kind::Symbols => return self.modules.symbols(event.ts_ns, &handler.scalars),
            Kind::Method => return self.types.method(event.thread.process(), &handler.scalars, sink),
            _ => {}
        }
        let process = event.thread.process();
        let process_id = process.id;
        let thread = event.raw.capture_thread;
        let clr = handler.clr_instance_id(event.raw.payload);
        let index = Normalizer::runtime(&mut self.runtimes, process, clr);
        self.meet_profiler(handler, event, index, sink);
        // A collection that a profiler tells of, too, has its number already.
        let joined = self.profilers.alone(process);
        let mut last_gc_id = joined.map_or(self.last_gc_id, |id| id.saturating_sub(1));
        let Some(gc) = self.runtimes.get_mut(index) else { return };
        if handler.kind != Kind::GenerationRange && handler.kind != Kind::GcStart {
            gc.end_start_phase(thread);
        }
        let ts_ns = event.ts_ns;
        let next = &mut last_gc_id;
        let scalars = &handler.scalars;
        match handler.kind {
            Kind::GcStart => {
                let start = Start {
                    number: scalars.small("Count").unwrap_or_default(),
                    generation: scalars.small("Depth"),
                    reason: handler.map("GCReasonMap", scalars.number("Reason")),
                    kind: scalars.number("Type").and_then(enum_names::collection_kind),
                };
                gc.start(start, ts_ns, thread, next, sink);
            }
            Kind::GcEnd => {
                let number = scalars.small("Count").unwrap_or_default();
                gc.end(number, scalars.small("Depth"), ts_ns, next, sink);
            }
            Kind::SuspendBegin => {
                let reason = handler.map("GCSuspendEEReasonMap", scalars.number("Reason"));
                gc.suspend_begin(reason, ts_ns, thread, sink);
            }
            Kind::SuspendEnd => gc.suspend_end(ts_ns, thread),
            Kind::RestartEnd => gc.restart_end(ts_ns, thread, sink),
            Kind::HeapStats => heap_stats(gc, scalars, sink),
            Kind::GlobalHeapHistory => {
                if let Some(row) = gc.current() {
                    row.heap_count = scalars.small("NumHeaps").unwrap_or_default();
                    row.memory_load_percent = scalars.small("MemoryPressure");
                    row.mechanisms = scalars.small("GlobalMechanisms");
                }
            }
            Kind::PerHeapHistory => {
                if let Some(row) = gc.current() {
                    per_heap_history(row, scalars);
                }
            }
            Kind::GenerationRange => {
                let at = range_time(!gc.is_starting(thread));
                let bound = GcGenerationRange {
                    gc_id: 0,
                    at,
                    generation: scalars.small("Generation").unwrap_or(u8::MAX),
                    range_start: scalars.number("RangeStart").unwrap_or_default(),
                    range_length: scalars.number("RangeUsedLength").unwrap_or_default(),
                    range_length_reserved: scalars.number("RangeReservedLength").unwrap_or_default(),
                };
                gc.innermost(ts_ns, next).ranges.bound(bound);
            }
            Kind::Handle(action) => {
                let handle = GcHandle {
                    ts_ns,
                    process_id,
                    thread_id: event.thread.thread_id,
                    action,
                    handle_id: scalars.number("HandleID").unwrap_or_default(),
                    object_id: scalars.number("ObjectID").unwrap_or_default(),
                    handle_kind: handler.map("GCHandleKindMap", scalars.number("Kind")),
                    generation: scalars.small("Generation"),
                    callsite_id: callsite,
                };
                sink.add(&handle);
            }
            Kind::Finalize => {
                let finalizable = GcFinalizable {
                    gc_id: gc.latest_id(),
                    ts_ns,
                    process_id,
                    action: "finalized",
                    object_id: scalars.number("ObjectID").unwrap_or_default(),
                    type_id: scalars.number("TypeID").unwrap_or_default(),
                    finalizer_flags: 0,
                };
                sink.add(&finalizable);
            }
            Kind::Allocation(source) => {
                let allocation = allocation(handler, event, callsite, source);
                if let Some(name) = allocation.type_name {
                    self.types.named(process, allocation.type_id, name, sink);
                }
                sink.add(&allocation);
            }
            Kind::BulkType => self.types.bulk(process, scalars, sink),
            Kind::ProcessInfo | Kind::RuntimeInformation => self.processes.described(process, handler),
            Kind::StaticRoots => {
                let open = gc.innermost(ts_ns, next);
                for value in scalars.get("Values").as_list() {
                    open.row.root_count += 1;
                    sink.add(&tracker::static_root(open.row.gc_id, value));
                }
            }
            Kind::Method | Kind::Other => {}
            _ => self.bulk(handler, event, index, next, sink),
        }
        match joined {
            Some(id) if id == last_gc_id => self.profilers.join(process, id),
            Some(_) => {}
            None => self.last_gc_id = last_gc_id,
        }
        if let Some(gc) = self.runtimes.get_mut(index)
            && let Some(error) = gc.failed.take()
        {
            let message = format!("ranges are missing, the temporary file failed: {error}");
            sink.problem(&Problem::new(Severity::DataLoss, "spill_failed", event.raw.offset, message));
        }
    }

    /// What a profiler tells of.
    fn told(
        &mut self,
        told: ProfilerEvent,
        handler: &Handler,
        event: &Event<'_>,
        callsite_id: CallsiteId,
        sink: &mut impl FactSink,
    ) {
        let rows = handler.rows.as_ref().map(|layout| self.rows(layout, event));
        if rows.is_some_and(|rows| rows.is_none()) {
            return; // Not even the fields before the rows are there.
        }
        if told.is_past_start() {
            self.runtimes.iter_mut().for_each(|runtime| runtime.end_start_phase(event.raw.capture_thread));
        }
        let open = self.runtimes.iter().find_map(|runtime| runtime.open_of(event.thread.process()));
        if let (ProfilerEvent::GcStart, Some(last)) = (told, open) {
            // If it is joined already, its end is lost.
            self.profilers.runtime_ends(event.thread.process(), last, event.raw.offset, sink);
        }
        let open = open.map(|(gc_id, _)| gc_id);
        let input = ProfilerInput { told, scalars: &handler.scalars, rows: rows.flatten(), event, callsite_id, open };
        self.profilers.event(&input, &mut self.types, &mut self.last_gc_id, sink);
        self.add_joined(sink);
    }

    /// Where the runtime's own events of a collection end, or another begins, what a profiler tells of it is over, too.
    fn meet_profiler(&mut self, handler: &Handler, event: &Event<'_>, runtime: usize, sink: &mut impl FactSink) {
        let (process, offset) = (event.thread.process(), event.raw.offset);
        let number = handler.scalars.small("Count").unwrap_or_default();
        let Some(gc) = self.runtimes.get(runtime) else { return };
        let over = match handler.kind {
            Kind::GcEnd => gc.ending(number),
            Kind::GcStart => gc.given_up(number),
            Kind::SuspendBegin => None,
            _ => return,
        };
        if let Some(over) = over {
            self.profilers.runtime_ends(process, over, offset, sink);
        }
        if handler.kind != Kind::GcEnd {
            let open = gc.open_of(process).filter(|_| over.is_none()).map(|(gc_id, _)| gc_id);
            self.profilers.runtime_goes_on(process, open, offset, sink);
        }
        self.add_joined(sink);
    }

    /// Puts together what a profiler and the runtime tell of a collection.
    fn add_joined(&mut self, sink: &mut impl FactSink) {
        for told in self.profilers.joined.drain(..) {
            if !self.runtimes.iter_mut().any(|runtime| runtime.add(&told)) {
                sink.add(&told);
            }
        }
    }

    /// The rows of an event; those that are missing are counted.
    fn rows<'a>(&mut self, layout: &'a RowLayout, event: &Event<'a>) -> Option<Rows<'a>> {
        let rows = layout.rows(event.raw.payload);
        let missing = rows.map_or(1, |rows| rows.announced - rows.len() as u64);
        if missing > 0 {
            self.short_rows += missing;
            self.short_at = event.raw.offset;
        }
        rows
    }

    /// Events that are rows and little else.
    fn bulk(
        &mut self,
        handler: &Handler,
        event: &Event<'_>,
        runtime: usize,
        next: &mut GcId,
        sink: &mut impl FactSink,
    ) {
        let rows = handler.rows.as_ref().and_then(|layout| self.rows(layout, event));
        let (Some(rows), Some(gc)) = (rows, self.runtimes.get_mut(runtime)) else { return };
        let open = gc.innermost(event.ts_ns, next);
        let gc_id = open.row.gc_id;
        let index = handler.index(event.raw.payload);
        match handler.kind {
            Kind::Surviving => open.ranges.survived(rows.values()),
            Kind::Moved => open.ranges.moved(rows.values()),
            Kind::Nodes => {
                let heap = walk(&mut self.heaps, runtime);
                heap.node_event(index);
                open.row.heap_object_count += rows.len() as u64;
                for [object_id, size_bytes, type_id, reference_count] in rows.values() {
                    heap.object(&HeapObject { gc_id, object_id, size_bytes, type_id, reference_count }, sink);
                }
            }
            Kind::Edges => {
                let heap = walk(&mut self.heaps, runtime);
                heap.edge_event(index);
                for [target, field] in rows.values() {
                    heap.target(gc_id, target, field, sink);
                }
            }
            Kind::Roots => {
                open.row.root_count += rows.len() as u64;
                for [object_id, kind, flags, root_id] in rows.values() {
                    let (root_kind, root_flags) = (enum_names::event_root_kind(kind), flags as u32);
                    sink.add(&GcRoot { gc_id, object_id, root_kind, root_flags, root_id, name: None });
                }
            }
            Kind::ComRoots => {
                open.row.root_count += rows.len() as u64;
                for [root_id, object_id] in rows.values() {
                    sink.add(&GcRoot { gc_id, object_id, root_kind: "com", root_id, ..GcRoot::default() });
                }
            }
            Kind::WeakElements => {
                for [key_object_id, value_object_id, root_id] in rows.values() {
                    sink.add(&GcWeakElement { gc_id, key_object_id, value_object_id, root_id });
                }
            }
            _ => {}
        }
    }

    /// The end of the recording: open collections are incomplete, and what was only counted is reported.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) -> Totals {
        self.profilers.finish(position, sink);
        self.add_joined(sink);
        let (mut abandoned, mut left_out) = (0, 0);
        for runtime in &mut self.runtimes {
            runtime.finish(sink);
            abandoned += runtime.abandoned;
            left_out += runtime.bounds_left_out;
        }
        let mut report = |code, count: u64, offset, message: &str| {
            if count > 0 {
                let problem = Problem::new(Severity::DataLoss, code, offset, message).count(count);
                sink.problem(&problem);
            }
        };
        report("too_many_bounds", left_out, position, ranges::TOO_MANY_BOUNDS);
        report("open_collection", abandoned, position, "collections whose end is not in the recording");
        let message = "rows of bulk events are missing: the payload is shorter than its count says";
        report("short_bulk_event", self.short_rows, self.short_at, message);
        let message = "references of heap objects could not be attributed: a part of the walk is missing";
        let lost = self.heaps.values_mut().map(Heap::finish).fold(0, u64::saturating_add);
        report("lost_references", lost, position, message);
        report("too_many_modules", self.modules.lost, position, "more modules than are remembered");
        self.processes.finish(sink);
        self.modules.finish(sink);
        Totals { collections: u64::from(self.last_gc_id) }
    }
}

/// The walk of the heap of a runtime.
fn walk(heaps: &mut HashMap<usize, Heap, FixedState>, runtime: usize) -> &mut Heap {
    let sharers = heaps.len();
    let heap = heaps.entry(runtime).or_default();
    heap.sharers = sharers;
    heap
}

fn heap_stats(gc: &mut EventGcTracker, scalars: &scalars::Scalars, sink: &mut impl FactSink) {
    const NAMES: [(&str, &str); 5] = [
        ("GenerationSize0", "TotalPromotedSize0"),
        ("GenerationSize1", "TotalPromotedSize1"),
        ("GenerationSize2", "TotalPromotedSize2"),
        ("GenerationSize3", "TotalPromotedSize3"),
        ("GenerationSize4", "TotalPromotedSize4"),
    ];
    let mut stats = Vec::with_capacity(NAMES.len());
    for (generation, (size, promoted)) in (0u8..).zip(NAMES) {
        if let (Some(size_bytes), Some(promoted_bytes)) = (scalars.number(size), scalars.number(promoted)) {
            stats.push(GcHeapStats { gc_id: 0, generation, size_bytes, promoted_bytes });
        }
    }
    let gc_id = gc.ended().map_or(0, |row| {
        row.promoted_bytes = Some(stats.iter().fold(0, |sum, s| sum.saturating_add(s.promoted_bytes)));
        row.size_after_bytes = Some(stats.iter().fold(0, |sum, s| sum.saturating_add(s.size_bytes)));
        row.finalization_promoted_count = scalars.number("FinalizationPromotedCount");
        row.pinned_object_count = scalars.small("PinnedObjectCount");
        row.handle_count = scalars.small("GCHandleCount");
        row.gc_id
    });
    stats.iter_mut().for_each(|row| row.gc_id = gc_id);
    sink.add(stats.as_slice());
}

/// Adds the sizes of one heap's generations to those of the collection.
fn per_heap_history(row: &mut fact::Gc, scalars: &scalars::Scalars) {
    let mut before = row.size_before_bytes.unwrap_or_default();
    for value in scalars.get("Values").as_list() {
        if let crate::event::value::Value::Struct(fields) = value {
            let size_before = fields.first().and_then(crate::event::value::Value::as_u64);
            before = before.saturating_add(size_before.unwrap_or_default());
        }
    }
    row.size_before_bytes = Some(before);
}

fn allocation<'s>(
    handler: &'s Handler,
    event: &Event<'_>,
    callsite_id: CallsiteId,
    source: &'static str,
) -> Allocation<'s> {
    let scalars = &handler.scalars;
    let number = |name| scalars.number(name).unwrap_or_default();
    let size = scalars.number("AllocationAmount64").or(scalars.number("AllocationAmount"));
    let amount = size.or(scalars.number("TotalSizeForTypeSample")).or(scalars.number("ObjectSize"));
    let is_object = matches!(source, "object_high" | "object_low");
    Allocation {
        ts_ns: event.ts_ns,
        process_id: event.thread.process_id,
        thread_id: event.thread.thread_id,
        callsite_id,
        source,
        allocation_bytes: amount.unwrap_or_default(),
        object_count: if is_object { number("ObjectCountForTypeSample") } else { 0 },
        heap_kind: scalars.number("AllocationKind").and_then(enum_names::heap_kind),
        type_id: number("TypeID"),
        type_name: scalars.text("TypeName"),
        object_id: number("Address"),
        object_size_bytes: number("ObjectSize"),
        heap_index: scalars.small("HeapIndex"),
        sampled_byte_offset: scalars.number("SampledByteOffset"),
    }
}
