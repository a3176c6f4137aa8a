//! Sizes of the heap: what the runtime sums up at the end of each collection.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{Gc, GcHeapStats};
use crate::prelude::*;

/// The part of the heap that an event sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapStatsAction {
    /// The generations of all heaps.
    HeapStats,
    /// The decisions for all heaps.
    GlobalHistory,
    /// The generations of one heap.
    PerHeapHistory,
}

/// GCGlobalMechanisms: the collection ran while threads did.
const CONCURRENT: u32 = 1;

/// Sums of the collector at the end of a collection.
#[derive(Debug, Default)]
pub struct HeapStats;

impl Tracker for HeapStats {
    type Action = HeapStatsAction;
    const EVENTS: Events<HeapStatsAction> = &[
        (RUNTIME, "GCHeapStats", HeapStatsAction::HeapStats),
        (RUNTIME, "GCGlobalHeapHistory", HeapStatsAction::GlobalHistory),
        (RUNTIME, "GCPerHeapHistory", HeapStatsAction::PerHeapHistory),
        // .NET Framework up to 4.5.2, which has no such events in its other provider.
        (PRIVATE, "GCGlobalHeapHistory", HeapStatsAction::GlobalHistory),
        (PRIVATE, "GCPerHeapHistory", HeapStatsAction::PerHeapHistory),
    ];

    fn event(&mut self, action: HeapStatsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| event(action, input, runtime, sink));
    }
}

/// An event about the collection that is open or ended last.
fn event(action: HeapStatsAction, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
    match action {
        HeapStatsAction::HeapStats => heap_stats(input, runtime, sink),
        HeapStatsAction::GlobalHistory => {
            if let Some(row) = runtime.collections.current() {
                row.heap_count = input.fields.small("NumHeaps").unwrap_or_default();
                row.memory_load_percent = input.fields.small("MemoryPressure").or(row.memory_load_percent);
                row.mechanisms = input.fields.small("GlobalMechanisms");
                row.mechanisms_text = row.mechanisms.map(enum_names::mechanisms);
                // A collection that was to run in the background stops all threads after all where it cannot: the first
                // one of a process may. Its start does not say so.
                if row.kind == Some("background") && row.mechanisms.is_some_and(|bits| bits & CONCURRENT == 0) {
                    row.kind = Some("blocking");
                }
                row.pause_mode = input.name_of("GCPauseMode", "PauseMode");
                row.gen0_budget_bytes = input.fields.number("FinalYoungestDesired");
                phases(input, row);
            }
        }
        HeapStatsAction::PerHeapHistory => {
            let heap_index = input.fields.small("HeapIndex");
            if let Some((row, sizes)) = runtime.collections.current_with_sizes()
                && heap_index.is_none_or(|heap_index| sizes.is_new(row.gc_id, heap_index))
            {
                let before = row.size_before_bytes.unwrap_or_default();
                row.size_before_bytes = Some(before.saturating_add(size_before(input)));
                // In the private provider it is here.
                row.memory_load_percent = row.memory_load_percent.or(input.fields.small("MemoryPressure"));
            }
        }
    }
}

/// Size and promoted bytes of each generation.
const GENERATIONS: [(&str, &str); 5] = [
    ("GenerationSize0", "TotalPromotedSize0"),
    ("GenerationSize1", "TotalPromotedSize1"),
    ("GenerationSize2", "TotalPromotedSize2"),
    ("GenerationSize3", "TotalPromotedSize3"),
    ("GenerationSize4", "TotalPromotedSize4"),
];

fn heap_stats(input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
    let fields = input.fields;
    let mut stats = Vec::with_capacity(GENERATIONS.len());
    for (generation, (size, promoted)) in (0u8..).zip(GENERATIONS) {
        if let (Some(size_bytes), Some(promoted_bytes)) = (fields.number(size), fields.number(promoted)) {
            stats.push(GcHeapStats { gc_id: 0, generation, size_bytes, promoted_bytes });
        }
    }
    if let Some(row) = runtime.collections.ended() {
        row.promoted_bytes = Some(stats.iter().fold(0, |sum, s| sum.saturating_add(s.promoted_bytes)));
        row.size_after_bytes = Some(stats.iter().fold(0, |sum, s| sum.saturating_add(s.size_bytes)));
        row.finalization_promoted_count = fields.number("FinalizationPromotedCount");
        row.pinned_object_count = fields.small("PinnedObjectCount");
        row.handle_count = fields.small("GCHandleCount");
        stats.iter_mut().for_each(|s| s.gc_id = row.gc_id);
    }
    sink.add(stats.as_slice());
}

/// The times of the phases, in microseconds: five parts of marking; then, unless it is a background collection,
/// planning; then sweeping, or relocating and compacting.
fn phases(input: &Input<'_>, row: &mut Gc) {
    let times: Vec<Option<i64>> = input.fields.get("Values").as_list().iter().map(time).collect();
    // .NET 8 writes the time of day for compacting: no phase takes longer than its collection.
    let elapsed = input.ts_ns().saturating_sub(row.start_ts_ns).saturating_add(1_000_000);
    let of = |place: usize| times.get(place).copied().flatten().filter(|time| *time <= elapsed);
    let mark = (0..MARKING).try_fold(0, |sum, place| Some(sum + of(place)?));
    let (plan, third, last) = (of(MARKING), of(MARKING + 1), of(MARKING + 2));
    match times.len().checked_sub(MARKING) {
        Some(0) => row.mark_ns = mark,
        Some(2) => (row.mark_ns, row.plan_ns, row.sweep_ns) = (mark, plan, third),
        Some(3) => (row.mark_ns, row.plan_ns, row.relocate_ns, row.compact_ns) = (mark, plan, third, last),
        // Other numbers were not seen: what they would mean is not known.
        _ => {}
    }
}

/// Sized references, other roots, short weak references, finalization, long weak references.
const MARKING: usize = 5;

/// Nanoseconds; the runtime writes 32 bits of ones for no time.
fn time(value: &Value) -> Option<i64> {
    let Value::Struct(fields) = value else { return None };
    let micros = u32::try_from(fields.first()?.as_u64()?).ok().filter(|micros| *micros != u32::MAX)?;
    Some(i64::from(micros) * 1000)
}

/// Bytes in the generations of one heap before the collection: the first field of each.
fn size_before(input: &Input<'_>) -> u64 {
    let generations = ["Values", "Generations"].map(|name| input.fields.get(name).as_list());
    let sizes = generations.into_iter().flatten().filter_map(|value| match value {
        Value::Struct(fields) => fields.first().and_then(Value::as_u64),
        _ => None,
    });
    sizes.fold(0, u64::saturating_add)
}
