//! What is told of starts whose ends were not looked for any more, because more went on at a time than is remembered.

use super::Trackers;
use super::fact::FactSink;
use crate::error::{Problem, Severity};

/// A row of `diagnostic` for each kind of which something was given up.
pub(super) fn report(trackers: &Trackers, position: u64, sink: &mut impl FactSink) {
    let (work, unnamed) = trackers.activities.given_up();
    for (code, count, message) in [
        (
            "too_many_exceptions",
            trackers.exceptions.given_up(),
            "more exceptions went on at a time than are remembered; exception lacks the handlers of these",
        ),
        (
            "too_many_waits",
            trackers.waits.given_up(),
            "more waits went on at a time than are remembered; contention and wait lack the ends of these",
        ),
        (
            "too_many_compilations",
            trackers.compilations.given_up(),
            "more compilations went on at a time than are remembered; method_compilation lacks the ends of these",
        ),
        (
            "too_many_loads",
            trackers.assembly_loads.given_up(),
            "more loads of assemblies went on at a time than are remembered; assembly_load lacks the ends of these",
        ),
        (
            "too_many_joins",
            trackers.joins.given_up(),
            "more threads of the collector waited at a time than are remembered; gc_join lacks the ends of these",
        ),
        (
            "too_many_work_items",
            trackers.pool.given_up,
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
