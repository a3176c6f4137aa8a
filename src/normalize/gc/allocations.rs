//! Sampled allocations.

use crate::normalize::code::types::Types;
use crate::normalize::enum_names;
use crate::normalize::fact::{Allocation, FactSink};
use crate::normalize::tracker::{self, Hears, Input, RUNTIME};

/// How the runtime chose an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// About every 100 KB.
    Tick,
    /// At random, by a Poisson process (.NET 10).
    Sampled,
    /// By type, at a high rate.
    ObjectHigh,
    /// By type, at a low rate.
    ObjectLow,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[Hears {
    provider: RUNTIME,
    events: &[
        ("GCAllocationTick", Action::Tick),
        ("AllocationSampled", Action::Sampled),
        ("GCSampledObjectAllocationHigh", Action::ObjectHigh),
        ("GCSampledObjectAllocationLow", Action::ObjectLow),
    ],
}];

impl tracker::Action for Action {}

/// An allocation; its type may become known by it.
pub fn event(action: Action, input: &Input<'_>, types: &mut Types, sink: &mut impl FactSink) {
    let fields = input.fields;
    let (source, is_by_type) = match action {
        Action::Tick => ("tick", false),
        Action::Sampled => ("sampled", false),
        Action::ObjectHigh => ("object_high", true),
        Action::ObjectLow => ("object_low", true),
    };
    let amount = fields.number("AllocationAmount64").or(fields.number("AllocationAmount"));
    let amount = amount.or(fields.number("TotalSizeForTypeSample")).or(fields.number("ObjectSize"));
    let allocation = Allocation {
        ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        thread_id: input.thread_id(),
        callsite_id: input.callsite_id,
        source,
        allocation_bytes: amount.unwrap_or_default(),
        object_count: if is_by_type { input.number("ObjectCountForTypeSample") } else { 0 },
        heap_kind: fields.number("AllocationKind").and_then(enum_names::heap_kind),
        type_id: input.number("TypeID"),
        type_name: fields.text("TypeName"),
        object_id: input.number("Address"),
        object_size_bytes: input.number("ObjectSize"),
        heap_index: fields.small("HeapIndex"),
        sampled_byte_offset: fields.number("SampledByteOffset"),
    };
    if let Some(name) = allocation.type_name {
        types.named(input.process(), allocation.type_id, name, sink);
    }
    sink.add(&allocation);
}
