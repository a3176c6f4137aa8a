//! Rows of tables of ranges. They have millions of rows.

tracequet_dataset::row! {
    /// Memory of a generation at the start or the end of a collection.
    pub(crate) struct Bounds of gc_generation_range { gc_id, phase, generation, range_start, range_length }
}

tracequet_dataset::row! {
    /// A range that survived where it was.
    pub(crate) struct Stayed of gc_surviving_range {
        gc_id, range_start, range_length, generation_before, generation_after, length_kind
    }
}

tracequet_dataset::row! {
    /// A range that survived, and was moved.
    pub(crate) struct Moved of gc_moved_range {
        gc_id, old_range_start, new_range_start, range_length, generation_before, generation_after, length_kind
    }
}

/// Whether the length of a range is only a lower bound.
pub(crate) fn is_clamped(length_kind: &str) -> bool {
    length_kind == "clamped"
}
