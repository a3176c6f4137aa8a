//! Sampled allocations.

use super::moment::Moment;
use crate::code::types::Types;
use crate::fact::Allocation;
use crate::prelude::*;

/// The way in which the runtime chose an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationsAction {
    /// About every 100 KB.
    Tick,
    /// At random, by a Poisson process (.NET 10).
    Sampled,
    /// By type, at a high rate.
    ObjectHigh,
    /// By type, at a low rate.
    ObjectLow,
}

/// Of how many bytes the runtime samples one, each with the same chance.
const SAMPLED_BYTES: f64 = 102_400.0;

/// The number of objects and bytes that a sampled object of this size represents. An object is sampled when one of its
/// bytes is, so that large objects are sampled more often than small ones: each counts as often as objects of its size
/// are missed.
fn stands_for(size: u64) -> (f64, u64) {
    // The runtime has no object without bytes; what a damaged event says counts once.
    let size = size.max(1);
    // 1 - (1 - 1/102400)^size, bit by bit of the size from the highest. Functions of a system's library differ in the
    // last digit.
    let mut chance = 0.0;
    for bit in (0..=size.ilog2()).rev() {
        chance *= 2.0 - chance;
        if size >> bit & 1 == 1 {
            chance += (1.0 - chance) / SAMPLED_BYTES;
        }
    }
    (1.0 / chance, (size as f64 / chance).round() as u64)
}

/// Allocations.
#[derive(Debug, Default)]
pub struct Allocations;

impl Tracker for Allocations {
    type Action = AllocationsAction;
    const EVENTS: Events<AllocationsAction> = &[
        (RUNTIME, "GCAllocationTick", AllocationsAction::Tick),
        (RUNTIME, "AllocationSampled", AllocationsAction::Sampled),
        (RUNTIME, "GCSampledObjectAllocationHigh", AllocationsAction::ObjectHigh),
        (RUNTIME, "GCSampledObjectAllocationLow", AllocationsAction::ObjectLow),
    ];

    fn event(&mut self, action: AllocationsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, types, callsites, .. } = shared;
        callsites.allocates((input.callsite_id, input.process_id(), input.number("TypeID")));
        runtimes.event(input, Moment::Within, profiled, sink, |_, sink| event(action, input, types, sink));
    }
}

/// An allocation; its type may become known by it.
fn event(action: AllocationsAction, input: &Input<'_>, types: &mut Types, sink: &mut impl FactSink) {
    let fields = input.fields;
    let object_size_bytes = fields.number("ObjectSize");
    let (source, object_count, allocation_bytes) = match action {
        AllocationsAction::Tick => {
            let amount = fields.number("AllocationAmount64").or(fields.number("AllocationAmount"));
            ("tick", None, amount)
        }
        AllocationsAction::Sampled => {
            let stands_for = object_size_bytes.map(stands_for);
            ("sampled", stands_for.map(|(count, _)| count), stands_for.map(|(_, bytes)| bytes))
        }
        AllocationsAction::ObjectHigh | AllocationsAction::ObjectLow => {
            let source = if action == AllocationsAction::ObjectHigh { "object_high" } else { "object_low" };
            let count = fields.number("ObjectCountForTypeSample").map(|count| count as f64);
            (source, count, fields.number("TotalSizeForTypeSample"))
        }
    };
    let allocation = Allocation {
        activity_id: input.event.raw.labels.activity_id,
        source,
        allocation_bytes,
        object_count,
        heap_kind: fields.number("AllocationKind").and_then(enum_names::heap_kind),
        type_id: input.number("TypeID"),
        type_name: fields.text("TypeName"),
        object_id: input.number("Address"),
        object_size_bytes,
        heap_index: fields.small("HeapIndex"),
        sampled_byte_offset: fields.number("SampledByteOffset"),
        ..input.row()
    };
    if let Some(name) = allocation.type_name {
        types.named(input.process(), allocation.type_id, name, sink);
    }
    sink.add(&allocation);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes are drawn one by one, as the runtime's specification says, and what was sampled is weighed.
    #[test]
    fn what_samples_stand_for_is_what_was_allocated() {
        for (size, objects) in [(24u64, 400_000u64), (1_000, 60_000), (102_400, 2_000), (1_000_000, 1_500)] {
            let (mut state, mut count, mut bytes) = (size, 0.0, 0u64);
            let mut until = 0.0;
            for _ in 0..objects {
                if until < size as f64 {
                    let of_object = stands_for(size);
                    count += of_object.0;
                    bytes += of_object.1;
                }
                // Bytes to the next sampled one, past the object (geometric; what lies in it was sampled once).
                while until < size as f64 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let even = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                    until += (even.ln() / (-1.0f64 / SAMPLED_BYTES).ln_1p()).floor() + 1.0;
                }
                until -= size as f64;
            }
            let (real_count, real_bytes) = (objects as f64, (objects * size) as f64);
            let error = (count / real_count - 1.0).abs().max((bytes as f64 / real_bytes - 1.0).abs());
            // Four deviations of the rarest: 94 samples.
            assert!(
                error < 0.4 && (size < 1_000 || error < 0.17),
                "{size}: {count} of {real_count}, {bytes} of {real_bytes}"
            );
        }
    }

    #[test]
    fn each_size_has_its_weight() {
        // By arbitrary precision: 1 / (1 - (1 - 1/102400)^size).
        for (size, count) in [(24, 4_267.146), (48, 2_133.823), (102_400, 1.581_974), (10_000_000, 1.0)] {
            let (objects, bytes) = stands_for(size);
            assert!((objects / count - 1.0).abs() < 1e-4, "{size}: {objects}");
            assert!((bytes as f64 / (size as f64 * count) - 1.0).abs() < 1e-4, "{size}: {bytes}");
        }
        assert_eq!((stands_for(0).1, stands_for(u64::MAX).1), (102_400, u64::MAX));
    }
}
