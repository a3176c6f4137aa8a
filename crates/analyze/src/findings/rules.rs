//! The rules. Each is a file with all that is its own: what it says, its limits, what it needs, what it makes of the
//! sums of a process, and the story that tests it.

mod assemblies_again;
mod awaiting_tasks;
mod blocked_finalizer;
mod blocked_workers;
mod blocking_full;
mod boxing;
mod code_made_again;
mod connections;
mod datas_cost;
mod dies_in_gen2;
mod event_source_faults;
mod exceptions;
mod finalizers;
mod gen1_survival;
mod gen2_free_on_entry;
mod growing_handles;
mod growing_live_set;
mod high_memory_load;
mod hot_method;
mod idle_wakeups;
mod induced;
mod jit_time;
mod large_object_triggers;
mod leak;
mod lock_convoy;
mod logging;
mod loh_alloc_waits;
mod loh_free;
mod long_pause;
mod lost_events;
mod many_gen0;
mod many_gen2;
mod n_plus_one;
mod n_plus_one_calls;
mod odd_pause;
mod pause_share;
mod pinned_survivors;
mod queue_delay;
mod rented_buffers;
mod requests_in_pauses;
mod slow_queries;
mod slow_start;
mod slow_suspension;
mod starvation;
mod string_churn;
mod suspension_dominates;
mod threads_started;
mod type_dominates;
mod unnamed_frames;
mod waits_in_a_loop;
mod young_held_by_old;

#[cfg(test)]
mod tests;

use super::rule::Rule;

/// All rules. Of two with the same score the first one is shown first: what a person can mend in the code before what
/// it does to the GC.
pub(super) const RULES: &[&Rule] = &[
    &leak::RULE,
    &growing_live_set::RULE,
    &growing_handles::RULE,
    &blocked_workers::RULE,
    &hot_method::RULE,
    &starvation::RULE,
    &queue_delay::RULE,
    &lock_convoy::RULE,
    &awaiting_tasks::RULE,
    &exceptions::RULE,
    &threads_started::RULE,
    &connections::RULE,
    &assemblies_again::RULE,
    &blocked_finalizer::RULE,
    &n_plus_one::RULE,
    &n_plus_one_calls::RULE,
    &waits_in_a_loop::RULE,
    &slow_queries::RULE,
    &dies_in_gen2::RULE,
    &large_object_triggers::RULE,
    &rented_buffers::RULE,
    &boxing::RULE,
    &string_churn::RULE,
    &logging::RULE,
    &idle_wakeups::RULE,
    &slow_start::RULE,
    &induced::RULE,
    &pause_share::RULE,
    &long_pause::RULE,
    &odd_pause::RULE,
    &suspension_dominates::RULE,
    &slow_suspension::RULE,
    &loh_alloc_waits::RULE,
    &blocking_full::RULE,
    &many_gen0::RULE,
    &many_gen2::RULE,
    &gen1_survival::RULE,
    &young_held_by_old::RULE,
    &gen2_free_on_entry::RULE,
    &datas_cost::RULE,
    &loh_free::RULE,
    &high_memory_load::RULE,
    &finalizers::RULE,
    &pinned_survivors::RULE,
    &type_dominates::RULE,
    &code_made_again::RULE,
    &jit_time::RULE,
    &requests_in_pauses::RULE,
    &lost_events::RULE,
    &event_source_faults::RULE,
    &unnamed_frames::RULE,
];

/// The rule of a name; `None` for one that another version had.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.name == name)
}

/// The title of a rule; the name of one that this version does not have.
pub fn title_of(name: &str) -> &str {
    rule(name).map_or(name, |rule| rule.title)
}
