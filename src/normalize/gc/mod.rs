//! The collector: collections and their pauses, ranges, the walk of the heap, roots, handles, finalizers, allocations.

pub mod allocations;
pub mod bounds;
pub mod callback_collections;
pub mod callback_ranges;
pub mod collections;
pub mod contradictions;
pub mod event_collections;
pub mod finalizers;
pub mod handles;
pub mod heap_stats;
pub mod heap_walk;
pub mod join;
pub mod large_objects;
pub mod lengths;
pub mod pauses;
pub mod profiler;
pub mod ranges;
pub mod report_queue;
pub mod roots;
pub mod runtimes;
pub mod sorted_runs;
pub mod spill_queue;
pub mod survival;
pub mod version_pairs;
