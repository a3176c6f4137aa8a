//! Rows of Mono's profiler: collections, walks of the heap, roots, allocations, handles and the types of all of them.
//!
//! MonoVM (Android, iOS, WebAssembly) has `Microsoft-DotNETRuntimeMonoProfiler`. What it notes while the threads are stopped it writes when they run
//! again, so that the time of PostStopWorld in the recording is the end of the stop (ep-rt-mono-profiler-provider.c of .NET 10):
//!
//! ```text
//!  PreStopWorldLocked  GCHeapDumpStart | PostStopWorld  Start  GCRoots  GCMoves  End  objects  PreStartWorld  types  GCHeapDumpStop
//!  |------------ threads stop ---------| threads run; this is written now
//! ```
//! An object with more than 128 references is several events one behind the other, all but the first of size 0 (sgen-mono.c).

use tracequet_trace::error::beginning;

use super::event_collections::Start;
use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{Allocation, GcHandle, GcRoot, HeapObject, HeapReference, Type};
use crate::generic_names::as_in_runtime;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonoAction {
    /// A step of a collection.
    Collection,
    /// The collection that follows walks the heap.
    DumpStart,
    /// An object with its references, or more references of the last one.
    Object,
    /// Places that hold objects.
    Roots,
    /// A range of such places, and what it is.
    RootRange,
    /// The range is no more.
    RootRangeEnd,
    /// The type of objects with a table of virtual methods.
    Type,
    /// A class was loaded.
    Class,
    /// A class has a table of virtual methods.
    ClassTable,
    /// An object was allocated.
    Allocation,
    /// A handle was created.
    HandleCreated,
    /// A handle was destroyed.
    HandleDestroyed,
}

/// Ranges of roots, and classes, that are remembered; bytes of the name of each.
const MAX_RANGES: usize = 1 << 16;
const MAX_CLASSES: usize = 1 << 16;
const MAX_NAME: usize = 256;

/// The number that each collection has: Mono counts none.
const NO_NUMBER: u32 = 0;

/// The state that events of Mono's profiler leave behind.
#[derive(Debug, Default)]
pub struct Mono {
    /// By the place of the runtime.
    runtimes: Map<usize, State>,
    ranges: usize,
    classes: usize,
    ranges_left_out: u64,
    classes_left_out: u64,
}

/// A runtime, as far as the next events need it.
#[derive(Debug, Default)]
struct State {
    /// When threads began to stop, and when they ran again.
    stopping_ns: Option<i64>,
    resumed_ns: Option<i64>,
    is_dump: bool,
    /// The last object, of which more references may come.
    object: Option<HeapObject>,
    references: Vec<HeapReference>,
    ranges: BTreeMap<u64, Range>,
    /// Module and name of classes.
    classes: Map<u64, (u64, Box<str>)>,
}

/// Memory in which roots lie.
#[derive(Debug)]
struct Range {
    size: u64,
    kind: u64,
    /// For what it was registered: of handles not 0 where they pin.
    key: u64,
    name: Box<str>,
}

const MONO: &str = "Microsoft-DotNETRuntimeMonoProfiler";

impl Tracker for Mono {
    type Action = MonoAction;
    const EVENTS: Events<MonoAction> = &[
        (MONO, "MonoProfilerGCEvent", MonoAction::Collection),
        (MONO, "MonoProfilerGCHeapDumpStart", MonoAction::DumpStart),
        (MONO, "MonoProfilerGCHeapDumpObjectReference", MonoAction::Object),
        (MONO, "MonoProfilerGCRoots", MonoAction::Roots),
        (MONO, "MonoProfilerGCRootRegister", MonoAction::RootRange),
        (MONO, "MonoProfilerGCRootUnregister", MonoAction::RootRangeEnd),
        (MONO, "MonoProfilerGCHeapDumpVTableClassReference", MonoAction::Type),
        (MONO, "MonoProfilerClassLoaded", MonoAction::Class),
        (MONO, "MonoProfilerVTableLoaded", MonoAction::ClassTable),
        (MONO, "MonoProfilerGCAllocation", MonoAction::Allocation),
        (MONO, "MonoProfilerGCHandleCreated", MonoAction::HandleCreated),
        (MONO, "MonoProfilerGCHandleDeleted", MonoAction::HandleDestroyed),
    ];

    fn needs(action: MonoAction) -> Needs {
        match action {
            MonoAction::Object => Needs::FieldsAndRows(&["ReferenceOffset", "ObjectID"]),
            MonoAction::Roots => Needs::Rows(&["ObjectID", "AddressID"]),
            _ => Needs::Fields,
        }
    }

    fn is_reference(action: MonoAction) -> bool {
        use MonoAction::{Class, ClassTable, RootRange, RootRangeEnd, Type};
        matches!(action, RootRange | RootRangeEnd | Type | Class | ClassTable)
    }

    fn event(&mut self, action: MonoAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, types, callsites, .. } = shared;
        let process = input.process();
        // A heap dump of the runtime's own provider is reported by its own events, too: as one collection.
        let mut others = runtimes.all().iter().filter(|known| known.is_in(process) && !known.is_of(process, 0));
        let is_reported = others.any(|known| known.is_collecting());
        let mut found = None;
        runtimes.event(input, action.moment(input), profiled, sink, |runtime, sink| match action {
            MonoAction::Collection => self.state(runtime).collection(is_reported, input, runtime, sink),
            MonoAction::DumpStart => self.state(runtime).is_dump = true,
            MonoAction::Object => self.state(runtime).object(input, runtime, sink),
            MonoAction::Roots => self.state(runtime).roots(input, runtime, sink),
            MonoAction::RootRange => self.root_range(input, runtime),
            MonoAction::RootRangeEnd => {
                let known = self.state(runtime).ranges.remove(&input.number("RootID"));
                self.ranges -= usize::from(known.is_some());
            }
            MonoAction::Class => self.class(input, runtime),
            MonoAction::Type => found = Some((input.number("ModuleID"), as_in_runtime(input.text("ClassName")))),
            MonoAction::ClassTable => {
                let class = self.state(runtime).classes.get(&input.number("ClassID"));
                found = class.map(|(module, name)| (*module, as_in_runtime(name)));
            }
            MonoAction::Allocation => {
                callsites.allocates((input.callsite_id, input.process_id(), input.number("VTableID")));
                allocation(input, sink);
            }
            MonoAction::HandleCreated => handle("created", input, sink),
            MonoAction::HandleDestroyed => handle("destroyed", input, sink),
        });
        if let Some((module_id, name)) = found {
            let (process_id, type_id) = (process.id, input.number("VTableID"));
            types.found(process, &Type { process_id, type_id, module_id, name: &name, ..Type::default() }, sink);
        }
    }

    fn cut(&mut self, _cut: &Cut, sink: &mut impl FactSink) {
        self.runtimes.values_mut().for_each(|state| state.object_ends(sink));
    }

    fn dropped(&self) -> Vec<Dropped> {
        let left_out = |code, count, message| Dropped { code, count, message };
        vec![
            left_out(
                "too_many_root_ranges",
                self.ranges_left_out,
                "too many ranges of roots: roots in them have no kind",
            ),
            left_out("too_many_classes", self.classes_left_out, "too many classes: their objects have no type name"),
        ]
    }
}

impl MonoAction {
    fn moment(self, input: &Input<'_>) -> Moment {
        match (self, input.number("GCEventType")) {
            (MonoAction::Collection, 0) => Moment::Start(NO_NUMBER),
            (MonoAction::Collection, 8) => Moment::End(NO_NUMBER),
            (MonoAction::Collection, 10) => Moment::Suspend,
            _ => Moment::Within,
        }
    }
}

impl Mono {
    fn state(&mut self, runtime: &Runtime<'_>) -> &mut State {
        self.runtimes.entry(runtime.index).or_default()
    }

    fn root_range(&mut self, input: &Input<'_>, runtime: &Runtime<'_>) {
        if self.ranges >= MAX_RANGES {
            return self.ranges_left_out += 1;
        }
        let range = Range {
            size: input.number("RootSize"),
            kind: input.number("RootType"),
            key: input.number("RootKeyID"),
            name: beginning(input.text("RootKeyName"), MAX_NAME).into(),
        };
        let known = self.state(runtime).ranges.insert(input.number("RootID"), range);
        self.ranges += usize::from(known.is_none());
    }

    fn class(&mut self, input: &Input<'_>, runtime: &Runtime<'_>) {
        if self.classes >= MAX_CLASSES {
            return self.classes_left_out += 1;
        }
        let class = (input.number("ModuleID"), beginning(input.text("ClassName"), MAX_NAME).into());
        let known = self.state(runtime).classes.insert(input.number("ClassID"), class);
        self.classes += usize::from(known.is_none());
    }
}

impl State {
    /// GCEventTypeMap: Start 0, PostStopWorld 7, PreStartWorld 8, PreStopWorldLocked 10.
    fn collection(
        &mut self,
        is_reported: bool,
        input: &Input<'_>,
        runtime: &mut Runtime<'_>,
        sink: &mut impl FactSink,
    ) {
        let (ts_ns, thread) = (input.ts_ns(), input.capture_thread());
        let Runtime { collections, last_gc_id, .. } = runtime;
        match input.fields.number("GCEventType") {
            Some(10) => {
                (self.stopping_ns, self.resumed_ns) = (Some(ts_ns), None);
                collections.suspend_begin(Some("SuspendForGC"), ts_ns, thread, sink);
            }
            Some(7) => self.resumed_ns = Some(ts_ns),
            Some(0) if !is_reported => {
                // A stop may hold a minor collection and a major one.
                if collections.is_collecting() {
                    self.object_ends(sink);
                    collections.end(NO_NUMBER, None, self.resumed_ns.unwrap_or(ts_ns), last_gc_id, sink);
                }
                let start = Start {
                    number: NO_NUMBER,
                    // Mono has a nursery and one older generation, which its events for CLR tools call 2.
                    generation: input.fields.number("GCGeneration").map(|of| if of == 0 { 0 } else { 2 }),
                    reason: self.is_dump.then_some("Induced"),
                    kind: None,
                };
                collections.start(start, self.stopping_ns.unwrap_or(ts_ns), thread, last_gc_id, sink);
            }
            Some(8) => {
                let end_ns = self.resumed_ns.unwrap_or(ts_ns);
                self.object_ends(sink);
                if collections.is_collecting() {
                    collections.end(NO_NUMBER, None, end_ns, last_gc_id, sink);
                }
                collections.all.resumed(thread, end_ns, sink);
                (self.stopping_ns, self.resumed_ns, self.is_dump) = (None, None, false);
            }
            _ => {}
        }
    }

    fn object(&mut self, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
        let Some(rows) = input.rows else { return };
        let row = &mut runtime.open_collection().row;
        row.touches_gap |= rows.is_short();
        let (gc_id, object_id, size_bytes) = (row.gc_id, input.number("ObjectID"), input.number("ObjectSize"));
        let reference_count = rows.len() as u64;
        let is_same = |last: &&mut HeapObject| (last.gc_id, last.object_id, size_bytes) == (gc_id, object_id, 0);
        match self.object.as_mut().filter(is_same) {
            Some(last) => last.reference_count = last.reference_count.saturating_add(reference_count),
            None => {
                row.heap_object_count += 1;
                self.object_ends(sink);
                let type_id = input.number("VTableID");
                self.object = Some(HeapObject { gc_id, object_id, type_id, size_bytes, reference_count });
            }
        }
        // Each offset counts from the one before.
        let mut field_id = 0u64;
        self.references.extend(rows.values().map(|[offset, target_object_id]| {
            field_id = field_id.saturating_add(offset);
            HeapReference { gc_id, object_id, target_object_id, field_id }
        }));
        sink.add(self.references.as_slice());
        self.references.clear();
    }

    fn object_ends(&mut self, sink: &mut impl FactSink) {
        if let Some(object) = self.object.take() {
            sink.add(&object);
        }
    }

    fn roots(&self, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
        let Some(rows) = input.rows else { return };
        let row = &mut runtime.open_collection().row;
        row.touches_gap |= rows.is_short();
        row.root_count += rows.len() as u64;
        for [object_id, address] in rows.values() {
            let before = self.ranges.range(..=address).next_back();
            let range = before.filter(|(start, range)| address - **start < range.size).map(|(_, range)| range);
            let (root_kind, root_flags) = range.map_or(("other", 0), Range::kind);
            sink.add(&GcRoot {
                gc_id: row.gc_id,
                object_id,
                root_kind,
                root_flags,
                root_flags_text: enum_names::root_flags(root_kind, root_flags),
                // Of roots on a stack it is the method, which Mono does not say.
                root_id: if root_kind == "stack" { 0 } else { address },
                name: range.map(|range| &*range.name).filter(|name| !name.is_empty()),
            });
        }
    }
}

impl Range {
    /// Kind and flags of its roots, of MonoGCRootSource as Mono's own GCBulkRootEdge has them.
    fn kind(&self) -> (&'static str, u32) {
        const PINNED: u32 = 1;
        const REFERENCE_COUNTED: u32 = 8;
        const THREAD_LOCAL: u32 = 1;
        match self.kind {
            1 => ("stack", 0),
            2 => ("finalizer", 0),
            3 | 5 => ("static", 0),
            4 => ("static", THREAD_LOCAL),
            6 if self.key != 0 => ("handle", PINNED),
            6 | 14 => ("handle", 0),
            15 => ("dependent_handle", 0),
            16 => ("handle", REFERENCE_COUNTED),
            _ => ("other", 0),
        }
    }
}

fn allocation(input: &Input<'_>, sink: &mut impl FactSink) {
    let size = input.fields.number("ObjectSize");
    sink.add(&Allocation {
        activity_id: input.event.raw.labels.activity_id,
        source: "object",
        allocation_bytes: size,
        object_count: Some(1.0),
        type_id: input.number("VTableID"),
        object_id: input.number("ObjectID"),
        object_size_bytes: size,
        ..input.row()
    });
}

fn handle(action: &'static str, input: &Input<'_>, sink: &mut impl FactSink) {
    let kinds = ["WeakShort", "WeakLong", "Strong", "Pinned"];
    let kind = input.fields.small::<usize>("HandleType").and_then(|kind| kinds.get(kind).copied());
    sink.add(&GcHandle {
        action,
        handle_id: input.number("HandleID"),
        object_id: input.number("ObjectID"),
        handle_kind: kind.filter(|_| action == "created"),
        ..input.row()
    });
}
