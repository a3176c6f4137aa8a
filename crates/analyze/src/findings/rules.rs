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

use super::rule::Rule;

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
