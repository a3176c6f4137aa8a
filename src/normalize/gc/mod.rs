//! The collector: collections and their pauses, ranges, the heap walk, roots, handles, finalizers.

pub mod callback_collections;
pub mod event_collections;
pub mod heap_walk;
pub mod pauses;
pub mod profiler;
pub mod ranges;
pub mod report_queue;
pub mod sorted_runs;
pub mod version_pairs;
