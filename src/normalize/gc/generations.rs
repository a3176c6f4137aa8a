//! What the collector records of each heap and its generations at the end of a collection, and what was allocated since
//! the one before.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::event_collections::EventGcTracker;
use crate::event::value::Value;
use crate::normalize::fact::{FactSink, Gc, GcHeap, GcHeapGeneration, GcId};
use crate::normalize::tracker::{self, Hears, Input, RUNTIME};

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The generations of one heap.
    Heap,
}

/// The event, of .NET Framework 4.6 and later.
pub const HEARS: &[Hears<Action>] = &[Hears { provider: RUNTIME, events: &[("GCPerHeapHistory", Action::Heap)] }];

impl tracker::Action for Action {}

/// Generations in which programs allocate.
const ALLOCATED_IN: [u8; 3] = [0, 3, 4];

/// Heaps and generations that are remembered of one collection, at most: no machine has more than 1,024 heaps.
const MAX_REMEMBERED: usize = 8 * 1024;

/// Bytes in objects at the end of a collection, by heap and generation.
type ObjectBytes = HashMap<(u32, u8), u64, RandomState>;

/// The collection that told of its heaps last, and the one before.
#[derive(Debug, Default)]
pub struct LastSizes {
    gc_id: GcId,
    /// Whether what was there before the collection is known.
    is_known: bool,
    now: ObjectBytes,
    before: ObjectBytes,
}

impl LastSizes {
    /// Events were lost: those of a whole collection may be among them.
    pub fn forget(&mut self) {
        *self = LastSizes::default();
    }

    /// A heap of a collection is told of.
    fn enter(&mut self, row: &Gc) {
        if self.gc_id == row.gc_id {
            return;
        }
        self.is_known = self.gc_id != 0 || row.gc_number == 1;
        self.gc_id = row.gc_id;
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        // With another number of heaps, objects have changed their heap.
        let heaps = self.before.keys().filter(|(_, generation)| *generation == 0).count();
        self.is_known &= row.gc_number == 1 || row.heap_count == 0 || heaps == row.heap_count as usize;
    }

    /// Adds what was allocated in a generation since the collection before.
    fn add(&mut self, row: &mut Gc, generation: &GcHeapGeneration) {
        let key = (generation.heap_index, generation.generation);
        if self.now.len() < MAX_REMEMBERED {
            self.now.insert(key, generation.object_after_bytes);
        }
        // A background collection records its start and its end together, which are far apart.
        if !ALLOCATED_IN.contains(&key.1) || !self.is_known || row.kind == Some("background") {
            return;
        }
        let before = self.before.get(&key).copied().unwrap_or_default();
        let allocated = generation.object_before_bytes.saturating_sub(before);
        row.allocated_bytes = Some(row.allocated_bytes.unwrap_or_default().saturating_add(allocated));
    }
}

/// GCPerHeapHistory.
pub fn event(Action::Heap: Action, input: &Input<'_>, collections: &mut EventGcTracker, sink: &mut impl FactSink) {
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
