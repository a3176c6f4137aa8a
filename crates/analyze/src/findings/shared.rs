//! Parts that several rules share: the least numbers of rows for a verdict, and queries.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{Lack, Look, Rule};
use super::score::score;
use super::windows::Windows;
use super::words;
use crate::subjects::pauses::SQL;
use crate::subjects::sites::Most;

/// With fewer collections or pauses a figure is judged by its lower bound. JDK Mission Control gives no verdict then.
pub(super) const LEAST_COLLECTIONS: u64 = 10;

/// Bytes without which a share of them says nothing.
pub(super) const LEAST_BYTES: f64 = 10e6;

/// There are fewer bytes than these.
pub(super) fn lack_of_bytes(there: f64, what: &str) -> Lack {
    let why = format!("{} {what} are needed, and there are {}.", words::size(LEAST_BYTES), words::size(there));
    Lack { why, times: LEAST_BYTES / there.max(1e5) }
}

/// The figure of a short recording, which may show how the program starts: it counts from the limit of a warning on, and is 0 below.
pub(super) fn at_start(least: f64, rule: &Rule) -> f64 {
    if least >= rule.warning { least } else { 0.0 }
}

/// ` called by Shop.Orders.Load` of a constructor: the method that is no constructor with most of what it made.
pub(super) fn called_by(look: &Look<'_>, method: &str, amounts: &[(u32, f64)]) -> String {
    let sites = &look.picture.sites;
    let mut makers: BTreeMap<&str, f64> = BTreeMap::new();
    for (site, amount) in amounts.iter().filter(|(site, _)| sites.own_method(*site) == Some(method)) {
        *makers.entry(sites.maker(*site).unwrap_or_default()).or_default() += amount;
    }
    let most = makers.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(maker, _)| maker);
    most.filter(|maker| *maker != method && !maker.is_empty())
        .map_or(String::new(), |maker| format!(" called by {maker}"))
}

/// The own method that allocates most of what is pinned. Handles come without call stacks. What they pin is mostly new: where it was sampled,
/// too, its allocation has one.
pub(super) fn pinned_by(look: &Look<'_>) -> Option<Most> {
    let process = look.process;
    let born = process.born.iter().filter(|(object, ..)| process.pinned.contains(object));
    look.picture.sites.most(born.map(|(_, site, bytes)| (*site, *bytes)))
}

/// The collections for which a condition of SQL holds.
pub(super) fn collections(look: &Look<'_>, condition: &str) -> String {
    format!(
        "SELECT gc_id, start_ts, generation, reason, kind, pause_ns / 1e6 AS pause_ms FROM gc WHERE {} AND {condition} \
         ORDER BY pause_ns DESC LIMIT 20",
        look.of_process
    )
}

/// The largest pauses by a column.
pub(super) fn pauses(look: &Look<'_>, column: &str) -> String {
    format!(
        "SELECT p.gc_id, p.start_ts, p.duration_ns / 1e6 AS pause_ms, p.suspend_ns / 1e6 AS suspend_ms, g.generation, g.reason, \
         g.promoted_bytes FROM gc_pause p LEFT JOIN gc g ON g.trace_id = p.trace_id AND g.gc_id = p.gc_id \
         WHERE {} AND p.{SQL} ORDER BY p.{column} DESC LIMIT 20",
        look.of("p")
    )
}

/// The highest score that a rule on young collections may give, by what pauses for those of generations 0 and 1 take of
/// the worst half minute: with 2 % it is worth a look, with 10 % a warning is possible. Without events of pauses
/// nothing is known of it.
pub(super) fn cost_of_young(look: &Look<'_>) -> Option<f64> {
    let all = &look.picture.collections;
    let young: BTreeSet<u32> = all.of(look.id).filter(|gc| gc.generation <= Some(1)).map(|gc| gc.id).collect();
    let (mut windows, mut count) = (Windows::default(), 0u64);
    for pause in all.pauses_of(look.id) {
        count += 1;
        if young.contains(&pause.gc_id) {
            windows.span(pause.start_ns, pause.duration_ns);
        }
    }
    (count > 0).then(|| score(windows.worst(look.recording_ns()), 0.02, 0.10))
}

/// The highest score that a rule on full collections may give, by what these cost: with 1 % of the time, or 100 ms at
/// once, it is worth a look, with 5 % or 500 ms a warning is possible. Without events of pauses nothing is known of it.
pub(super) fn cost_of_full(look: &Look<'_>) -> Option<f64> {
    let all = &look.picture.collections;
    let full: BTreeSet<u32> = all.of(look.id).filter(|gc| gc.generation == Some(2)).map(|gc| gc.id).collect();
    let (mut windows, mut longest, mut count) = (Windows::default(), 0, 0u64);
    for pause in all.pauses_of(look.id) {
        count += 1;
        if full.contains(&pause.gc_id) {
            windows.span(pause.start_ns, pause.duration_ns);
            longest = longest.max(pause.duration_ns);
        }
    }
    let share = windows.worst(look.recording_ns());
    (count > 0).then(|| score(share, 0.01, 0.05).max(score(longest as f64, 100e6, 500e6)))
}
