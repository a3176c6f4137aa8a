//! Collections: their kind, what asked for them, and what is known of their pauses.

use tracequet_dataset::row;

row! {
    /// A collection.
    pub struct Collection of gc {
        gc_id, process_id, clr_instance_id, gc_number, generation, reason, kind, pause_mode, start_ts_ns, end_ts_ns, pause_ns,
        pause_count, complete, touches_gap, trigger_callsite_id, memory_load_percent, finalization_promoted_count,
        handle_count, allocated_bytes, promoted_bytes, size_before_bytes, size_after_bytes, surviving_range_count,
        moved_range_count, heap_object_count
    }
}

/// A condition of SQL on `gc`: the collections that were not induced.
pub const NOT_INDUCED: &str = "coalesce(reason, '') NOT LIKE 'Induced%'";

/// A condition of SQL on `gc`: the collections that the recorder did not ask for to list the heap.
pub const NOT_DUMP: &str = "heap_object_count = 0";

/// A condition of SQL on `gc`: the collections that stopped all threads from start to end, as far as known.
pub const NOT_BACKGROUND: &str = "kind IS DISTINCT FROM 'background'";

impl Collection<'_> {
    /// Whether the program asked for it: by GC.Collect, or by memory pressure that it reported.
    pub fn is_induced(&self) -> bool {
        self.reason.is_some_and(|reason| reason.starts_with("Induced"))
    }

    /// Whether it ran beside the program.
    pub fn is_background(&self) -> bool {
        self.kind == Some("background")
    }

    /// Whether the recorder asked for it, to list the heap.
    pub fn is_dump(&self) -> bool {
        self.heap_object_count > 0
    }

    /// Nanoseconds in which threads stood still for it. `None` where no pause of it is in the recording: each
    /// collection stops threads.
    pub fn paused_ns(&self) -> Option<i64> {
        (self.pause_count > 0).then_some(self.pause_ns)
    }

    /// Whether ranges of what it left alive were recorded.
    pub fn has_ranges(&self) -> bool {
        self.surviving_range_count > 0 || self.moved_range_count > 0
    }
}
