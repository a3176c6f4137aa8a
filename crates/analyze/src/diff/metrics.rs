//! Metrics of both sides, those that changed first.

use super::measure::Measured;
use crate::check::{MetricChange, compare};
use crate::metrics::{Definition, definition_of};
use crate::samples::{can_tell, median};
use tracequet_dataset::error::Result;

/// A metric on both sides.
#[derive(Clone, Debug)]
pub struct MetricRow {
    /// The values, and what is known of their difference.
    pub change: MetricChange,
    /// Whether it is none, too small to count, what chance may have made though there are enough recordings to tell, or
    /// what another part of the difference has.
    pub is_noise: bool,
}

/// Metrics that other parts of a difference have.
const ELSEWHERE: [&str; 4] = ["finding.score", "cpu.by_method", "cpu.by_assembly", "recording.duration"];

/// Time in a second below which no sum of time has changed, where no test says that it has.
pub(super) const LEAST_NS_PER_SECOND: f64 = 1e6;

/// Metrics of the time for which users wait, and words in the names of counters.
const WAITED_FOR: [&str; 5] = ["request.", "threadpool.queue", "threadpool.starvation", "gc.pause.", "activity.p"];
const WORDS_OF_WAITS: [&str; 6] = ["queue", "duration", "pause", "latency", "time-in-gc", "failed"];

/// Metrics of the work that is done in the time.
const GOT_DONE: [&str; 4] = ["request.server.count", "request.client.count", "activity.count", "allocation.rate"];
const WORDS_OF_THROUGHPUT: [&str; 3] = ["per-second", "completed", "rate"];

/// Metrics by what a change of them means, the worst for a user first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Wait,
    Throughput,
    Whole,
    /// One of several, such as the allocations of a type.
    Part,
}

fn rank(metric: &str) -> Rank {
    let (family, key) = metric.split_once('[').unwrap_or((metric, ""));
    // A counter's name stands behind that of its provider.
    let name = key.split_once('/').map_or(key, |(_, name)| name);
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match family {
        _ if GOT_DONE.contains(&family) => Rank::Throughput,
        _ if WAITED_FOR.iter().any(|start| family.starts_with(start)) && !family.ends_with(".count") => Rank::Wait,
        "threadpool.starvation.count" | "request.server.failed.count" | "request.client.failed.count" => Rank::Wait,
        _ if !family.starts_with("counter.") && !key.is_empty() => Rank::Part,
        _ if has(&WORDS_OF_WAITS) => Rank::Wait,
        _ if has(&WORDS_OF_THROUGHPUT) => Rank::Throughput,
        _ => Rank::Whole,
    }
}

/// The ratio of the larger value to the smaller one. Below some amount of each unit a value counts as that amount: from
/// nothing to next to nothing is no large step.
fn ratio(change: &MetricChange, definition: Option<&Definition>) -> f64 {
    let least = match definition.map_or("", |definition| definition.unit.as_str()) {
        "ns" => 1e5,
        "bytes" | "bytes/s" => 1e6,
        "count" => 10.0,
        "share" => 0.01,
        _ => 1.0,
    };
    let [base, new] = [change.base, change.new].map(|value| value.unwrap_or_default().abs().max(least));
    (new / base).max(base / new)
}

/// The metrics of both sides: those that changed first, of these what users wait for, then what is got done, then the
/// others, and of each the largest step.
pub(super) fn rows(base: &[Measured], new: &[Measured], noise: f64) -> Result<Vec<MetricRow>> {
    let is_tested = can_tell(base.len(), new.len());
    let seconds: Vec<f64> = base.iter().chain(new).filter_map(|measured| measured.seconds).collect();
    let seconds = median(&seconds).unwrap_or_default();
    let mut rows = Vec::new();
    for change in compare(base, new)? {
        let definition = definition_of(&change.metric)?;
        let family = change.metric.split('[').next().unwrap_or_default();
        let is_small = change.base.zip(change.new).is_none_or(|(base, new)| {
            let is_short = !is_tested
                && definition.is_some_and(Definition::is_sum_of_time)
                && (new - base).abs() < LEAST_NS_PER_SECOND * seconds;
            !(new - base).is_finite() || (new - base).abs() <= noise * base.abs() || is_short
        });
        let is_noise = ELSEWHERE.contains(&family)
            || change.toward == "same"
            || is_small
            || (is_tested && change.what == "unclear");
        let key = (is_noise, rank(&change.metric), ratio(&change, definition));
        rows.push((key, MetricRow { change, is_noise }));
    }
    rows.sort_by(|((is_noise, rank, ratio), _), ((other_noise, other_rank, other_ratio), _)| {
        (is_noise, rank).cmp(&(other_noise, other_rank)).then_with(|| other_ratio.total_cmp(ratio))
    });
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wait_for_comes_before_what_is_got_done() {
        let ranks = [
            ("counter.mean[System.Runtime/threadpool-queue-length]", Rank::Wait),
            ("request.server.p99", Rank::Wait),
            ("request.server.failed.count", Rank::Wait),
            ("gc.pause.max", Rank::Wait),
            ("counter.mean[System.Runtime/alloc-rate]", Rank::Throughput),
            ("counter.mean[System.Runtime/active-timer-count]", Rank::Whole),
            ("request.server.count", Rank::Throughput),
            ("cpu.samples", Rank::Whole),
            ("allocation.by_type[Shop.QueueItem]", Rank::Part),
        ];
        for (metric, expected) in ranks {
            assert_eq!(rank(metric), expected, "{metric}");
        }
    }
}
