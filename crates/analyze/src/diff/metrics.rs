//! Metrics that changed by more than noise.

use super::measure::Measured;
use crate::check::{CHANCE, Run, compare};
use crate::metrics::{Better, definition_of};
use tracequet_dataset::error::Result;

/// A metric whose median is another one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MetricChange {
    /// Name, such as `gc.pause.p99`.
    pub metric: String,
    /// Median of the base.
    pub base: f64,
    /// Median of the new side.
    pub new: f64,
    /// Probability of such a change by chance; `None` when there are too few recordings for a test.
    pub chance: Option<f64>,
    /// `better`, `worse`, or `other` where neither way is good.
    pub what: &'static str,
}

/// What other parts of a difference have.
const ELSEWHERE: [&str; 4] = ["finding.score", "cpu.by_method", "cpu.by_assembly", "recording.duration"];

/// The metrics that changed: those of the whole recording first, and of these the largest part of the larger value.
pub(super) fn changes(base: &[Measured], new: &[Measured], noise: f64) -> Result<Vec<MetricChange>> {
    let runs = |all: &[Measured]| all.iter().map(|measured| measured.run.clone()).collect::<Vec<Run>>();
    let mut found = Vec::new();
    for change in compare(&runs(base), &runs(new))? {
        let family = change.metric.split('[').next().unwrap_or_default();
        // What a side did not record is no change.
        let (Some(before), Some(now)) = (change.baseline, change.value) else { continue };
        let is_small = (now - before).abs() <= noise * before.abs();
        let by_chance = change.chance.is_some_and(|chance| chance > CHANCE);
        if ELSEWHERE.contains(&family) || before == now || is_small || by_chance || !(now - before).is_finite() {
            continue;
        }
        // Without a test `compare` calls a difference unclear. Which way it goes is known all the same.
        let what = match (definition_of(&change.metric)?.map(|definition| definition.better), now > before) {
            (Some(Better::Lower), false) | (Some(Better::Higher), true) => "better",
            (Some(Better::Lower), true) | (Some(Better::Higher), false) => "worse",
            (Some(Better::Neither) | None, _) => "other",
        };
        found.push(MetricChange { metric: change.metric, base: before, new: now, chance: change.chance, what });
    }
    let part = |change: &MetricChange| (change.new - change.base).abs() / change.new.abs().max(change.base.abs());
    found.sort_by(|a, b| a.metric.contains('[').cmp(&b.metric.contains('[')).then_with(|| part(b).total_cmp(&part(a))));
    Ok(found)
}
