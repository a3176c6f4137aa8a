//! What was allocated between two collections: objects at the start of one less objects at the end of the one before.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::normalize::fact::{Gc, GcHeapGeneration, GcId};

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
    pub fn enter(&mut self, row: &Gc) {
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
    pub fn add(&mut self, row: &mut Gc, generation: &GcHeapGeneration) {
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
