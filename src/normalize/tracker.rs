//! Which events of the runtime facts come from, and how their fields are read.

use super::code::modules::Change;
use super::fact::{GcId, GcRoot};
use super::gc::profiler::{self, ProfilerEvent};
use super::scalars::Scalars;
use crate::event::catalog::Provider;
use crate::event::rows::RowLayout;
use crate::event::value::Value;
use crate::event::{Decoding, Event, EventInfo};

/// What normalisation counted, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// EventGcTracker.
    pub collections: u64,
}

/// Who took a CPU sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    Kernel,
    Runtime,
    Universal,
}

/// What an event means to the normaliser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    GcStart,
    GcEnd,
    SuspendBegin,
    SuspendEnd,
    RestartEnd,
    HeapStats,
    GlobalHeapHistory,
    PerHeapHistory,
    GenerationRange,
    Surviving,
    Moved,
    Roots,
    ComRoots,
    StaticRoots,
    WeakElements,
    Nodes,
    Edges,
    BulkType,
    Method,
    Handle(&'static str),
    Finalize,
    Allocation(&'static str),
    ProcessInfo,
    RuntimeInformation,
    /// A call that a profiler tells of.
    Profiler(ProfilerEvent),
    /// A CPU sample: of the kernel, of the runtime, of another system's tools.
    Sample(Sampler),
    Image(Change),
    Symbols,
    /// Any other event of the runtime: it only shows that its thread has gone on.
    Other,
}

/// How the events of one type are read.
#[derive(Debug)]
pub struct Handler {
    pub kind: Kind,
    pub scalars: Scalars,
    pub rows: Option<RowLayout>,
    catalogue: Option<&'static Provider>,
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const EVENTPIPE: &str = "Microsoft-DotNETCore-EventPipe";
const SAMPLE_PROFILER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// Events of one-collect's record-trace on Linux.
const UNIVERSAL: &str = "Universal.Events";
const KERNEL_PERF_INFO: &str = "Windows-Kernel-PerfInfo";
const KERNEL_IMAGE: &str = "Windows-Kernel-Image";
const IMAGE_ID: &str = "KernelTraceControl-ImageId";

impl Handler {
    /// `None` when no fact comes from events of this type.
    pub fn new(info: &EventInfo) -> Option<Handler> {
        let kind = kind_of(&info.provider, info.event_type.event_id, &info.name)?;
        let plan = match &info.decoding {
            Decoding::Described(plan) | Decoding::Catalogue { plan, .. } => plan,
            Decoding::Raw(_) => return None,
        };
        let wanted: &[&str] = match kind {
            Kind::Surviving => &["RangeBase", "RangeLength"],
            Kind::Moved => &["OldRangeBase", "NewRangeBase", "RangeLength"],
            Kind::Roots => &["RootedNodeAddress", "GCRootKind", "GCRootFlag", "GCRootID"],
            Kind::ComRoots => &["GCRootID", "ObjectID"],
            Kind::WeakElements => &["GCKeyNodeID", "GCValueNodeID", "GCRootID"],
            Kind::Nodes => &["Address", "Size", "TypeID", "EdgeCount"],
            Kind::Edges => &["Value", "ReferencingFieldID"],
            Kind::Profiler(told) => told.columns(),
            _ => &[],
        };
        let rows = if wanted.is_empty() { None } else { RowLayout::new(plan, wanted) };
        let scalars = match kind {
            Kind::Other => Scalars::default(),
            Kind::Profiler(_) => Scalars::before_rows(plan),
            _ if wanted.is_empty() => Scalars::new(plan),
            _ => Scalars::default(),
        };
        Some(Handler { kind, scalars, rows, catalogue: info.catalogue })
    }

    /// Decodes the fields of an event that are asked for by name.
    pub fn read(&mut self, event: &Event<'_>) {
        if !self.scalars.is_empty() {
            self.scalars.read(event);
        }
    }

    /// Which runtime of the process spoke. Bulk events carry it behind Index (if they have one) and Count.
    pub fn clr_instance_id(&self, payload: &[u8]) -> u16 {
        if self.rows.is_some() {
            let at = if self.kind == Kind::ComRoots { 4 } else { 8 };
            return payload.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_le_bytes(*b));
        }
        self.scalars.small("ClrInstanceID").unwrap_or_default()
    }

    /// Number of a bulk event within its walk.
    pub fn index(&self, payload: &[u8]) -> u64 {
        payload.first_chunk().map_or(0, |b| u64::from(u32::from_le_bytes(*b)))
    }

    /// The name of a value in one of the provider's maps.
    pub fn map(&self, map: &str, value: Option<u64>) -> Option<&'static str> {
        self.catalogue?.maps.get(map)?.name(value?)
    }
}

fn kind_of(provider: &str, id: u32, name: &str) -> Option<Kind> {
    match provider {
        RUNTIME => Some(match id {
            1 => Kind::GcStart,
            2 => Kind::GcEnd,
            3 => Kind::RestartEnd,
            4 => Kind::HeapStats,
            8 => Kind::SuspendEnd,
            9 => Kind::SuspendBegin,
            10 => Kind::Allocation("tick"),
            15 => Kind::BulkType,
            16 => Kind::Roots,
            17 => Kind::WeakElements,
            18 => Kind::Nodes,
            19 => Kind::Edges,
            20 => Kind::Allocation("object_high"),
            21 => Kind::Surviving,
            22 => Kind::Moved,
            23 => Kind::GenerationRange,
            29 => Kind::Finalize,
            30 => Kind::Handle("created"),
            31 => Kind::Handle("destroyed"),
            32 => Kind::Allocation("object_low"),
            36 => Kind::ComRoots,
            38 => Kind::StaticRoots,
            139 | 140 | 143 => Kind::Method,
            187 => Kind::RuntimeInformation,
            202 | 203 => Kind::Other,
            204 => Kind::PerHeapHistory,
            205 => Kind::GlobalHeapHistory,
            303 => Kind::Allocation("sampled"),
            _ => return None,
        }),
        RUNDOWN if matches!(id, 143 | 144) => Some(Kind::Method),
        RUNDOWN if id == 187 => Some(Kind::RuntimeInformation),
        EVENTPIPE if id == 1 => Some(Kind::ProcessInfo),
        profiler::PROVIDER => ProfilerEvent::new(id).map(Kind::Profiler),
        SAMPLE_PROFILER if id == 0 => Some(Kind::Sample(Sampler::Runtime)),
        UNIVERSAL if name == "cpu" => Some(Kind::Sample(Sampler::Universal)),
        KERNEL_PERF_INFO if id == 46 => Some(Kind::Sample(Sampler::Kernel)),
        KERNEL_IMAGE => match id {
            10 => Some(Kind::Image(Change::Load)),
            2 => Some(Kind::Image(Change::Unload)),
            3 | 4 => Some(Kind::Image(Change::Listed)),
            _ => None,
        },
        IMAGE_ID if id == 36 => Some(Kind::Symbols),
        _ => None,
    }
}

/// A row of GCBulkRootStaticVar: GCRootID, ObjectID, TypeID, Flags, FieldName.
pub fn static_root(gc_id: GcId, value: &Value) -> GcRoot<'_> {
    let Value::Struct(fields) = value else { return GcRoot { gc_id, root_kind: "static", ..GcRoot::default() } };
    let number = |index: usize| fields.get(index).and_then(Value::as_u64).unwrap_or_default();
    GcRoot {
        gc_id,
        object_id: number(1),
        root_kind: "static",
        root_flags: u32::try_from(number(3)).unwrap_or_default(),
        root_id: number(0),
        name: fields.get(4).and_then(Value::as_str),
    }
}
