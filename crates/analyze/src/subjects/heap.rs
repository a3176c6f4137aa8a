//! The heap: its generations before and after a collection, and what kept their objects alive.

use tracequet_dataset::row;

/// Generations that have sizes: 0, 1, 2, large objects, pinned objects.
pub const GENERATIONS: usize = 5;

row! {
    /// The size of a generation after a collection, of all heaps.
    pub struct Size of gc_heap_stats { gc_id, generation, size_bytes, promoted_bytes }
}

row! {
    /// A generation of one heap in a collection.
    pub struct HeapGeneration of gc_heap_generation {
        gc_id, heap_index, generation, size_before_bytes, free_list_before_bytes, free_object_before_bytes,
        object_before_bytes, size_after_bytes, free_list_after_bytes, free_object_after_bytes, in_bytes,
        pinned_survived_bytes, other_survived_bytes, budget_bytes
    }
}

row! {
    /// The bytes that one heap's marking from a kind of roots kept alive.
    pub struct Mark of gc_mark { gc_id, heap_index, root_kind, promoted_bytes, duration_ns }
}

/// Bytes of generations of heaps together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// At the start, with what is free in it.
    pub before: u64,
    /// The bytes that are free at the start.
    pub free_before: u64,
    /// Objects at the start.
    pub objects_before: u64,
    /// At the end, with what is free in it.
    pub after: u64,
    /// The bytes that are free at the end.
    pub free_after: u64,
    /// From the younger generation.
    pub came_in: u64,
    /// Objects that survived.
    pub survived: u64,
    /// Of these, pinned ones.
    pub pinned: u64,
    /// The bytes that may be allocated until the next collection is due.
    pub budget: u64,
}

impl Bytes {
    /// Adds a generation of a heap.
    pub fn add(&mut self, row: &HeapGeneration<'_>) {
        for (sum, bytes) in [
            (&mut self.before, [row.size_before_bytes, 0]),
            (&mut self.free_before, [row.free_list_before_bytes, row.free_object_before_bytes]),
            (&mut self.objects_before, [row.object_before_bytes, 0]),
            (&mut self.after, [row.size_after_bytes, 0]),
            (&mut self.free_after, [row.free_list_after_bytes, row.free_object_after_bytes]),
            (&mut self.came_in, [row.in_bytes, 0]),
            (&mut self.survived, [row.pinned_survived_bytes, row.other_survived_bytes]),
            (&mut self.pinned, [row.pinned_survived_bytes, 0]),
            (&mut self.budget, [row.budget_bytes, 0]),
        ] {
            *sum = bytes.into_iter().fold(*sum, u64::saturating_add);
        }
    }
}
