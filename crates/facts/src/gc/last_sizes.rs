//! Bytes allocated between two collections: objects at the start of one less objects at the end of the one before.

use tracequet_trace::map::{Map, Set};

use crate::fact::{Gc, GcHeapGeneration, GcId};

/// Generations in which programs allocate.
const ALLOCATED_IN: [u8; 3] = [0, 3, 4];

/// Heaps and generations that are remembered of one collection, at most: no machine has more than 1,024 heaps.
const MAX_REMEMBERED: usize = 8 * 1024;

/// Bytes in objects at the end of a collection, by heap and generation.
type ObjectBytes = Map<(u32, u8), u64>;

/// The collection that reported its heaps last, and the one before.
#[derive(Debug, Default)]
pub struct LastSizes {
    gc_id: GcId,
    /// Whether what was there before the collection is known.
    is_known: bool,
    now: ObjectBytes,
    before: ObjectBytes,
    /// The heaps that a collection reported, and which collection.
    heaps: (GcId, Set<u32>),
}

impl LastSizes {
    /// Events were lost: those of a whole collection may be among them.
    pub fn forget(&mut self) {
        *self = LastSizes::default();
    }

    /// Whether a collection reports a heap for the first time: blocks of a damaged recording may come twice.
    pub fn is_new(&mut self, gc_id: GcId, heap_index: u32) -> bool {
        let (of, heaps) = &mut self.heaps;
        if *of != gc_id {
            heaps.clear();
        }
        *of = gc_id;
        heaps.len() >= MAX_REMEMBERED || heaps.insert(heap_index)
    }

    /// A heap of a collection was reported.
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
        let is_told_again = match self.now.get(&key) {
            Some(_) => true,
            None if self.now.len() >= MAX_REMEMBERED => false,
            None => self.now.insert(key, generation.object_after_bytes).is_some(),
        };
        if is_told_again {
            return;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_that_is_told_of_twice_counts_once() {
        let (mut sizes, mut row) = (LastSizes::default(), Gc { gc_id: 1, gc_number: 1, ..Gc::default() });
        let reported = GcHeapGeneration {
            gc_id: 1,
            heap_index: u32::MAX,
            object_before_bytes: 100,
            ..GcHeapGeneration::default()
        };
        for is_new in [true, false, false] {
            assert_eq!(sizes.is_new(1, u32::MAX), is_new);
            sizes.enter(&row);
            sizes.add(&mut row, &reported);
        }
        assert_eq!(row.allocated_bytes, Some(100));
        assert!(sizes.is_new(2, u32::MAX) && sizes.is_new(2, 0));
        assert!((0..3 * MAX_REMEMBERED as u32).filter(|heap| sizes.is_new(3, *heap)).count() == 3 * MAX_REMEMBERED);
        assert!(sizes.heaps.1.len() == MAX_REMEMBERED);
    }
}
