//! The facts that normalisation finds: what the collector did, free of how a recording said it.

use crate::error::Problem;
use crate::guid::Guid;

/// Number of a collection within one recording, from 1 in the order of starts. 0 stands for none.
pub type GcId = u32;

/// Number of a call site within one recording; 0 stands for no stack.
pub type CallsiteId = u32;

/// One fact. Bulk facts come as slices that are valid for the call.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "documented where each fact is")]
pub enum Fact<'a> {
    Collection(&'a Collection),
    Pause(&'a Pause),
    GenerationRanges(GcId, &'a [GenerationRange]),
    SurvivingRanges(GcId, &'a [SurvivingRange]),
    MovedRanges(GcId, &'a [MovedRange]),
    HeapStats(GcId, &'a [GenerationStats]),
    Root(GcId, &'a Root<'a>),
    WeakElement(GcId, &'a WeakElement),
    HeapObject(GcId, &'a HeapObject),
    HeapReference(GcId, &'a HeapReference),
    Handle(&'a Handle<'a>),
    Finalizable(&'a Finalizable),
    Type(&'a Type<'a>),
    Method(&'a Method<'a>),
    Allocation(&'a Allocation<'a>),
    Callsite(&'a Callsite),
    Process(&'a Process),
    Module(&'a Module),
    CpuSample(&'a CpuSample),
    Problem(&'a Problem),
}

/// Receives facts.
pub trait FactSink {
    /// Takes one fact.
    fn fact(&mut self, fact: Fact<'_>);
}

/// One garbage collection.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// Number within the recording.
    pub gc_id: GcId,
    /// OS process id.
    pub process_id: u64,
    /// Which runtime of the process.
    pub clr_instance_id: u16,
    /// The runtime's own count; 0 when the recording does not tell.
    pub gc_number: u32,
    /// Highest generation that was condemned; `None` when neither start nor end says it.
    pub generation: Option<u8>,
    /// Why it happened (GCReasonMap).
    pub reason: Option<&'static str>,
    /// `blocking`, `background`, or `foreground` (during a background collection).
    pub kind: Option<&'static str>,
    /// Nanoseconds since the recording began.
    pub start_ns: i64,
    /// See `start_ns`; `None` when the end is not in the recording.
    pub end_ns: Option<i64>,
    /// Whether both start and end are in the recording.
    pub complete: bool,
    /// Sum of the pauses for this collection.
    pub pause_ns: i64,
    /// How many.
    pub pause_count: u32,
    /// Heaps that took part; 0 when unknown.
    pub heap_count: u32,
    /// Memory load in percent, as the collector saw it.
    pub memory_load_percent: Option<u32>,
    /// Bits of GCGlobalMechanisms: 1 concurrent, 2 compaction, 4 promotion, 8 demotion, 16 card bundles.
    pub mechanisms: Option<u32>,
    /// Sum over heaps and generations before the collection, in bytes.
    pub size_before_bytes: Option<u64>,
    /// The same after it.
    pub size_after_bytes: Option<u64>,
    /// Bytes promoted, of all generations.
    pub promoted_bytes: Option<u64>,
    /// Objects ready for finalization that were promoted for it.
    pub finalization_promoted_count: Option<u64>,
    /// Pinned objects that the collector met.
    pub pinned_object_count: Option<u32>,
    /// Handles in use.
    pub handle_count: Option<u32>,
    /// Rows in `gc_surviving_range`.
    pub surviving_range_count: u64,
    /// Sum of their lengths.
    pub surviving_bytes: u64,
    /// Rows in `gc_moved_range`.
    pub moved_range_count: u64,
    /// Sum of their lengths.
    pub moved_bytes: u64,
    /// Rows in `gc_root`.
    pub root_count: u64,
    /// Rows in `heap_object`.
    pub heap_object_count: u64,
}

/// A time in which all managed threads stood still.
#[derive(Clone, Debug, Default)]
pub struct Pause {
    /// The collection it was for; 0 when for none.
    pub gc_id: GcId,
    /// OS process id.
    pub process_id: u64,
    /// Why threads were stopped (GCSuspendEEReasonMap).
    pub reason: Option<&'static str>,
    /// When stopping began.
    pub start_ns: i64,
    /// From the beginning of stopping to the end of restarting.
    pub duration_ns: i64,
    /// How long stopping took.
    pub suspend_ns: i64,
}

/// Number in the tables of the non-GC (frozen) heap of .NET 8 and later, which is never collected and never moves. The
/// runtime has no such generation: GetGenerationBounds and GCGenerationRange number 0 to 4.
pub const NON_GC_HEAP: u8 = 5;

/// A part of the heap and the generation it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerationRange {
    /// Whether this is the state at the end of the collection (else at its start).
    pub at_end: bool,
    /// 0, 1, 2; 3 large objects; 4 pinned objects; [`NON_GC_HEAP`].
    pub generation: u8,
    /// First byte.
    pub start: u64,
    /// Bytes in use.
    pub length: u64,
    /// Bytes reserved.
    pub reserved: u64,
}

/// How the length of a range is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthKind {
    /// The recording carries the true length.
    #[default]
    Exact,
    /// The recording carries the true length (SurvivingReferences2) and, agreeing with it, the 32-bit one.
    Paired,
    /// The recording carries only a 32-bit length that stands for 4 GiB or more: this is the least it can be.
    Clamped,
    /// The same, and the bounds of its generation at the end of the collection prove how long it is.
    Narrowed,
}

impl LengthKind {
    /// The word in the tables.
    pub fn as_str(self) -> &'static str {
        match self {
            LengthKind::Exact => "exact",
            LengthKind::Paired => "paired",
            LengthKind::Clamped => "clamped",
            LengthKind::Narrowed => "narrowed",
        }
    }
}

/// A run of objects that survived where they were. It holds many objects, from `start` up to, not including,
/// `start + length`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivingRange {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// How the length is known.
    pub length_kind: LengthKind,
    /// Generation by the bounds at the start of the collection.
    pub generation_before: Option<u8>,
    /// Generation by the bounds at its end.
    pub generation_after: Option<u8>,
}

/// A run of objects that survived a compaction (old and new start are equal when it stayed in place).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedRange {
    /// First byte before.
    pub old_start: u64,
    /// First byte after.
    pub new_start: u64,
    /// Bytes.
    pub length: u64,
    /// How the length is known.
    pub length_kind: LengthKind,
    /// Generation of the old address by the bounds at the start of the collection.
    pub generation_before: Option<u8>,
    /// Generation of the new address by the bounds at its end.
    pub generation_after: Option<u8>,
}

/// Sizes of one generation after a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerationStats {
    /// 0, 1, 2; 3 large objects; 4 pinned objects.
    pub generation: u8,
    /// Size after the collection in bytes.
    pub size_bytes: u64,
    /// Bytes promoted out of (0, 1) or found alive in it.
    pub promoted_bytes: u64,
}

/// Something that keeps an object alive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Root<'a> {
    /// The object; 0 for a null root.
    pub object_id: u64,
    /// What kind: `stack`, `finalizer`, `handle`, `older_generation`, `sized_ref`, `overflow`, `static`, `com`, `other`.
    pub kind: &'static str,
    /// Bits: 1 pinned, 2 weak, 4 interior, 8 reference counted.
    pub flags: u32,
    /// Handle address, function or field id; 0 when there is none.
    pub root_id: u64,
    /// Name of the field (static roots).
    pub name: Option<&'a str>,
}

/// A key that keeps a value alive (ConditionalWeakTable, dependent handle).
#[derive(Clone, Copy, Debug, Default)]
pub struct WeakElement {
    /// Object that has to be alive.
    pub key_object_id: u64,
    /// Object that it keeps alive.
    pub value_object_id: u64,
    /// The dependent handle.
    pub root_id: u64,
}

/// An object met on a walk of the heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapObject {
    /// Address.
    pub object_id: u64,
    /// Type.
    pub type_id: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// References it holds.
    pub reference_count: u64,
}

/// A reference from one object to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapReference {
    /// The object that holds it.
    pub object_id: u64,
    /// The object it leads to.
    pub target_object_id: u64,
    /// The field, when the runtime says; else 0.
    pub field_id: u64,
}

/// A handle was made or destroyed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handle<'a> {
    /// When.
    pub ts_ns: i64,
    /// OS process id.
    pub process_id: u64,
    /// OS thread id.
    pub thread_id: u64,
    /// `created` or `destroyed`.
    pub action: &'static str,
    /// Address of the handle.
    pub handle_id: u64,
    /// Object it held when made.
    pub object_id: u64,
    /// Kind (GCHandleKind).
    pub kind: Option<&'a str>,
    /// Generation of the object when it was made.
    pub generation: Option<u8>,
    /// Where.
    pub callsite_id: CallsiteId,
}

/// An object was finalized, or queued for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finalizable {
    /// The last collection that began before; 0 when none did.
    pub gc_id: GcId,
    /// When.
    pub ts_ns: i64,
    /// OS process id.
    pub process_id: u64,
    /// `finalized`, `queued` (newly waiting for its finalizer) or `waiting` (still).
    pub action: &'static str,
    /// The object.
    pub object_id: u64,
    /// Its type.
    pub type_id: u64,
    /// COR_PRF_FINALIZER_FLAGS: 1 a critical finalizer; 0 also when not said.
    pub flags: u32,
}

/// A type, once.
#[derive(Clone, Debug, Default)]
pub struct Type<'a> {
    /// OS process id.
    pub process_id: u64,
    /// Address of its method table.
    pub type_id: u64,
    /// Module; 0 when not known.
    pub module_id: u64,
    /// Full name; empty when not known.
    pub name: &'a str,
    /// Bits of TypeFlagsMap.
    pub flags: u32,
    /// CorElementType; 0 when not known.
    pub element_type: u8,
    /// Type arguments, or the element type of an array.
    pub type_parameters: &'a [u64],
}

/// A method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method<'a> {
    /// OS process id.
    pub process_id: u64,
    /// Its FunctionID, the address of its method descriptor.
    pub method_id: u64,
    /// Its type with namespaces; empty when not said.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Signature; empty when not said.
    pub signature: &'a str,
    /// First byte of its code; 0 when not said.
    pub start_address: u64,
    /// Bytes of its code; 0 when not said.
    pub size_bytes: u64,
    /// Module; 0 when not said.
    pub module_id: u64,
}

/// A sampled allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocation<'a> {
    /// When.
    pub ts_ns: i64,
    /// OS process id.
    pub process_id: u64,
    /// OS thread id.
    pub thread_id: u64,
    /// Where.
    pub callsite_id: CallsiteId,
    /// `tick` (each about 100 KB), `sampled` (random, .NET 10), `object_high` or `object_low` (rate-limited by type).
    pub source: &'static str,
    /// Bytes that this sample stands for.
    pub allocation_bytes: u64,
    /// Objects that this sample stands for; 0 when not said.
    pub object_count: u64,
    /// `small`, `large` or `pinned`.
    pub heap_kind: Option<&'static str>,
    /// Type of the object that hit the sample.
    pub type_id: u64,
    /// Its type's name.
    pub type_name: Option<&'a str>,
    /// Its address; 0 when not said.
    pub object_id: u64,
    /// Its size in bytes; 0 when not said.
    pub object_size_bytes: u64,
    /// Heap number; `None` when not said.
    pub heap_index: Option<u32>,
    /// Offset of the sampled byte in its object, for unbiased weights (`sampled`).
    pub sampled_byte_offset: Option<u64>,
}

/// A moment at which a thread was found running.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuSample {
    /// When.
    pub ts_ns: i64,
    /// OS process id.
    pub process_id: u64,
    /// OS thread id.
    pub thread_id: u64,
    /// Processor.
    pub processor: Option<u32>,
    /// Where.
    pub callsite_id: CallsiteId,
    /// `thread`, `idle`, `dpc` or `isr` (kernel); `managed`, `external` or `error` (runtime).
    pub kind: Option<&'static str>,
    /// Where the processor was; 0 when not said.
    pub instruction_pointer: u64,
    /// Samples that this one stands for.
    pub sample_count: u32,
    /// Priority of the thread.
    pub priority: Option<u8>,
}

/// A module in a process.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// OS process id; 0 the kernel.
    pub process_id: u64,
    /// Base address.
    pub module_id: u64,
    /// `native`.
    pub kind: &'static str,
    /// Path, as the system writes it.
    pub path: String,
    /// First byte.
    pub base_address: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// Seconds since 1970 at which it was linked, or a hash of it; 0 when not said.
    pub time_date_stamp: u32,
    /// When it was loaded, nanoseconds since the recording began; `None` when that was before.
    pub load_ns: Option<i64>,
    /// When it was unloaded; `None` when that was after the recording.
    pub unload_ns: Option<i64>,
    /// Identity of its symbols; all zero when not said.
    pub pdb_guid: Guid,
    /// See `pdb_guid`.
    pub pdb_age: Option<u32>,
    /// File of its symbols.
    pub pdb_path: Option<String>,
}

/// A node of the trie of call stacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Callsite {
    /// Number, from 1.
    pub callsite_id: CallsiteId,
    /// The caller; 0 for the outermost frame.
    pub parent_callsite_id: CallsiteId,
    /// OS process id.
    pub process_id: u64,
    /// Return address.
    pub address: u64,
    /// 0 for the outermost frame.
    pub depth: u32,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// OS process id.
    pub process_id: u64,
    /// File name of the program; empty when not said.
    pub name: String,
    /// Command line; empty when not said.
    pub command_line: String,
    /// OS process id of the parent; 0 when not said.
    pub parent_process_id: u64,
    /// When it began, nanoseconds since the recording began; `None` when that was before, or is not said.
    pub start_ns: Option<i64>,
    /// When it ended; `None` when that was after the recording, or is not said.
    pub end_ns: Option<i64>,
    /// What it returned.
    pub exit_code: Option<i32>,
    /// Operating system; empty when not said.
    pub os: String,
    /// Processor architecture; empty when not said.
    pub arch: String,
    /// Path of the runtime's library; empty when not said.
    pub runtime_path: String,
    /// Runtime flavour (RuntimeSkuMap); `None` when not said.
    pub runtime_sku: Option<&'static str>,
    /// Events.
    pub event_count: u64,
    /// Time of the first and last event.
    pub first_ns: i64,
    /// See `first_ns`.
    pub last_ns: i64,
}
