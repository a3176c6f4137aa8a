//! Reports starts whose ends were not looked for any more, because too many were open at a time.

use tracequet_trace::error::{Problem, Severity};

use super::fact::FactSink;

/// How many of each kind were given up.
pub(super) struct Unended {
    pub(super) exceptions: u64,
    pub(super) waits: u64,
    pub(super) compilations: u64,
    pub(super) loads: u64,
    pub(super) joins: u64,
    pub(super) work_items: u64,
    /// Activities, and those whose kind has no name.
    pub(super) activities: (u64, u64),
}

/// A row of `diagnostic` for each kind of which something was given up.
pub(super) fn report(unended: &Unended, position: u64, sink: &mut impl FactSink) {
    let (work, unnamed) = unended.activities;
    for (code, count, message) in [
        (
            "too_many_exceptions",
            unended.exceptions,
            "too many concurrent exceptions; handlers missing in the table exception",
        ),
        ("too_many_waits", unended.waits, "too many concurrent waits; ends missing in the tables contention and wait"),
        (
            "too_many_compilations",
            unended.compilations,
            "too many concurrent compilations; ends missing in the table method_compilation",
        ),
        (
            "too_many_loads",
            unended.loads,
            "too many concurrent loads of assemblies; ends missing in the table assembly_load",
        ),
        (
            "too_many_joins",
            unended.joins,
            "too many concurrent waits of the collector's threads; ends missing in the table gc_join",
        ),
        (
            "too_many_work_items",
            unended.work_items,
            "too many queued work items; their starts are missing in the table thread_pool_work",
        ),
        ("too_many_activities", work, "too many concurrent activities; ends missing in the table activity"),
        ("too_many_kinds_of_work", unnamed, "too many kinds of activities; names missing in the table activity"),
    ] {
        if count > 0 {
            sink.problem(&Problem::new(Severity::DataLoss, code, position, message).count(count));
        }
    }
}
