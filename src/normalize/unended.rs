//! What is told of starts whose ends were not looked for any more, because more went on at a time than is remembered.

use super::fact::FactSink;
use crate::error::{Problem, Severity};

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
            "more exceptions went on at a time than are remembered; exception lacks the handlers of these",
        ),
        (
            "too_many_waits",
            unended.waits,
            "more waits went on at a time than are remembered; contention and wait lack the ends of these",
        ),
        (
            "too_many_compilations",
            unended.compilations,
            "more compilations went on at a time than are remembered; method_compilation lacks the ends of these",
        ),
        (
            "too_many_loads",
            unended.loads,
            "more loads of assemblies went on at a time than are remembered; assembly_load lacks the ends of these",
        ),
        (
            "too_many_joins",
            unended.joins,
            "more threads of the collector waited at a time than are remembered; gc_join lacks the ends of these",
        ),
        (
            "too_many_work_items",
            unended.work_items,
            "more work items waited at a time than are remembered; thread_pool_work lacks the starts of these",
        ),
        (
            "too_many_activities",
            work,
            "more activities went on at a time than are remembered; activity lacks the ends of these",
        ),
        (
            "too_many_kinds_of_work",
            unnamed,
            "more kinds of activities than are remembered; activity lacks the names of these",
        ),
    ] {
        if count > 0 {
            sink.problem(&Problem::new(Severity::DataLoss, code, position, message).count(count));
        }
    }
}
