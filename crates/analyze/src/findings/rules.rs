//! The rules. Each is a file with its limits, what it needs, and what it makes of the sums of a process.

mod blocked_workers;
mod blocking_full;
mod boxing;
mod exceptions;
mod finalizers;
mod gen2_free_on_entry;
mod growing_live_set;
mod high_memory_load;
mod induced;
mod jit_time;
mod large_object_triggers;
mod lock_convoy;
mod long_pause;
mod lost_events;
mod many_gen2;
mod n_plus_one;
mod pause_share;
mod pinned_survivors;
mod queue_delay;
mod requests_in_pauses;
mod slow_queries;
mod slow_suspension;
mod starvation;
mod string_churn;
mod unnamed_frames;

#[cfg(test)]
mod tests;

use super::judge::{Look, Rule};

/// All rules. Of two with the same score the first one is shown first: what a person can mend in the code before what it does to the collector.
pub(super) const RULES: &[&Rule] = &[
    &growing_live_set::RULE,
    &blocked_workers::RULE,
    &starvation::RULE,
    &queue_delay::RULE,
    &lock_convoy::RULE,
    &exceptions::RULE,
    &n_plus_one::RULE,
    &slow_queries::RULE,
    &large_object_triggers::RULE,
    &boxing::RULE,
    &string_churn::RULE,
    &induced::RULE,
    &pause_share::RULE,
    &long_pause::RULE,
    &slow_suspension::RULE,
    &blocking_full::RULE,
    &many_gen2::RULE,
    &gen2_free_on_entry::RULE,
    &high_memory_load::RULE,
    &finalizers::RULE,
    &pinned_survivors::RULE,
    &jit_time::RULE,
    &requests_in_pauses::RULE,
    &lost_events::RULE,
    &unnamed_frames::RULE,
];

/// With fewer collections or pauses there is no verdict, as in JDK Mission Control.
const LEAST_COLLECTIONS: u64 = 10;

/// The same for samples of allocations.
const LEAST_SAMPLES: u64 = 100;

/// The collections for which a condition of SQL holds.
fn collections(look: &Look<'_>, condition: &str) -> String {
    format!(
        "SELECT gc_id, start_ts, generation, reason, kind, pause_ns / 1e6 AS pause_ms FROM gc WHERE {} AND {condition} \
         ORDER BY pause_ns DESC LIMIT 20",
        look.of_process
    )
}

/// The largest pauses by a column.
fn pauses(look: &Look<'_>, column: &str) -> String {
    format!(
        "SELECT p.gc_id, p.start_ts, p.duration_ns / 1e6 AS pause_ms, p.suspend_ns / 1e6 AS suspend_ms, g.generation, g.reason, \
         g.promoted_bytes FROM gc_pause p LEFT JOIN gc g ON g.trace_id = p.trace_id AND g.gc_id = p.gc_id \
         WHERE {} AND p.kind = 'gc' ORDER BY p.{column} DESC LIMIT 20",
        look.of("p")
    )
}
