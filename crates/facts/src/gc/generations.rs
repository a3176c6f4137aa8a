//! Records of the collector about each heap and its generations at the end of a collection.

use super::event_collections::EventGcTracker;
use crate::fact::{Gc, GcHeap, GcHeapGeneration};
use crate::prelude::*;

/// Heaps and their generations at the end of a collection.
#[derive(Debug, Default)]
pub struct Generations;

impl Tracker for Generations {
    type Action = ();
    const EVENTS: Events<()> = &[(RUNTIME, "GCPerHeapHistory", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        if let Some((_, runtime)) = shared.runtimes.runtime_of(input) {
            event(input, runtime, sink);
        }
    }
}

/// GCPerHeapHistory.
fn event(input: &Input<'_>, collections: &mut EventGcTracker, sink: &mut impl FactSink) {
    let heap_index = input.number("HeapIndex") as u32;
    let Some((row, sizes)) = collections.current_with_sizes() else { return };
    sizes.enter(row);
    let mut rows = Vec::with_capacity(5);
    for (generation, value) in (0u8..8).zip(input.fields.get("Values").as_list()) {
        let Value::Struct(fields) = value else { continue };
        let number = |index: usize| fields.get(index).and_then(Value::as_u64).unwrap_or_default();
        let objects = |size: usize| number(size).saturating_sub(number(size + 1)).saturating_sub(number(size + 2));
        let free = number(4).saturating_add(number(5));
        let mut found = GcHeapGeneration {
            gc_id: row.gc_id,
            heap_index,
            generation,
            size_before_bytes: number(0),
            free_list_before_bytes: number(1),
            free_object_before_bytes: number(2),
            object_before_bytes: objects(0),
            size_after_bytes: number(3),
            free_list_after_bytes: number(4),
            free_object_after_bytes: number(5),
            object_after_bytes: objects(3),
            in_bytes: number(6),
            pinned_survived_bytes: number(7),
            other_survived_bytes: number(8),
            budget_bytes: number(9),
            fragmentation_after_percent: percent(free, number(3)),
            survival_percent: None,
        };
        if is_collected(row, generation) {
            found.survival_percent = percent(number(7).saturating_add(number(8)), found.object_before_bytes);
        }
        sizes.add(row, &found);
        rows.push(found);
    }
    let reasons = input.number("CondemnReasons0");
    // Two bits for each of four reasons, which are generations (gcrecord.h).
    let condemned = |reason: u32| Some((reasons >> (2 * reason) & 3) as u8);
    sink.add(&GcHeap {
        gc_id: row.gc_id,
        heap_index,
        condemned_initial: condemned(0),
        condemned_final: condemned(1),
        condemned_by_budget: condemned(2),
        condemned_by_time: condemned(3),
        condemn_conditions: input.number("CondemnReasons1") as u32,
        condemn_conditions_text: &input.words_of("GCCondemnConditions", "CondemnReasons1"),
        compact_reason: mechanism(input, "GCCompactReason", "CompactMechanisms"),
        expand_mechanism: mechanism(input, "GCExpandMechanism", "ExpandMechanisms"),
        free_list_allocated_bytes: input.number("FreeListAllocated"),
        free_list_rejected_bytes: input.number("FreeListRejected"),
        end_of_segment_allocated_bytes: input.number("EndOfSegAllocated"),
        condemned_allocated_bytes: input.number("CondemnedAllocated"),
        pinned_allocated_bytes: input.number("PinnedAllocated"),
        pinned_allocated_advance_bytes: input.number("PinnedAllocatedAdvance"),
        free_list_efficiency_percent: input.number("RunningFreeListEfficiency") as u32,
        extra_gen0_commit_bytes: input.number("ExtraGen0Commit"),
    });
    sink.add(rows.as_slice());
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// Whether a generation is among those that the collection condemned.
fn is_collected(row: &Gc, generation: u8) -> bool {
    match row.generation {
        Some(2) => generation >= 2 || row.kind != Some("background"),
        Some(condemned) => generation <= condemned,
        None => false,
    }
}

/// The top bit says that it happened, the highest other one why.
fn mechanism(input: &Input<'_>, map: &str, field: &str) -> Option<&'static str> {
    let value = input.number(field) as u32;
    let happened = value >> 31 == 1;
    let why = (value & !(1 << 31)).checked_ilog2();
    why.filter(|_| happened).and_then(|bit| input.name_in(map, u64::from(bit)))
}
