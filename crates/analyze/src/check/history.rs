//! Where the metrics of a history of runs stepped.
//!
//! A series is cut in two where the ranks of both parts, or of the values near the place, differ most (Mann and Whitney), and
//! the parts again, as long as the cut is significant: after A. N. Pettitt, A non-parametric approach to the change-point
//! problem, 1979, with binary segmentation.

use std::ops::Range;

use super::fingerprint::incomparable;
use super::run::{Figure, Run};
use super::toward;
use crate::metrics::definition_of;
use crate::prelude::*;
use crate::samples::{doubled_ranks, mann_whitney, median};

/// In a series without a step, one is found with at most this probability.
pub const FALSE_STEPS: f64 = 0.001;

/// Values on both sides of a place that are compared, beside all.
const SIDES: [usize; 3] = [12, 24, 48];

/// Cuts of which the probability is counted: the normal distribution, by which they are chosen, is not exact.
const CANDIDATES: usize = 3;

/// Steps of less than this part of what was before are left out.
const LEAST_CHANGE: f64 = 0.01;

/// A metric that stepped.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricStep {
    /// The metric.
    pub metric: String,
    /// The first value of the label behind the step, or the key of the first recording.
    pub at: String,
    /// When the first recording behind the step began.
    pub start: String,
    /// The median between the step before, or the begin, and this one.
    pub before: f64,
    /// The median between this step and the next one, or the end.
    pub after: f64,
    /// The numbers of runs, or of values of the label, that both medians are of.
    pub runs: [usize; 2],
    /// At most the probability of such a step in a series without one.
    pub chance: f64,
    /// The way that the metric went: `worse`, `better`, or `other` for a metric that is neither good nor bad.
    pub toward: &'static str,
    /// Why runs before and behind the step are not comparable, as another runtime.
    pub incomparable: Option<String>,
}

/// The steps in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The newest first, of those the largest.
    pub steps: Vec<MetricStep>,
    /// The number of metrics that were looked at.
    pub metrics: usize,
    /// The number of runs, or of values of the label.
    pub points: usize,
}

/// Runs that count as one: those of one value of a label, or one.
struct Point<'r> {
    name: &'r str,
    start: &'r str,
    runs: Vec<&'r Run>,
}

/// The steps in the metrics of runs. With `by`, runs with one value of that label count as one: their median. Runs in which
/// a metric is not known are left out of its series.
pub fn steps(runs: &[Run], by: Option<&str>) -> Result<History> {
    let points = points(runs, by);
    let all = series(&points)?;
    let (mut found, metrics) = (Vec::new(), all.len());
    for (metric, series) in all {
        let (places, values): (Vec<usize>, Vec<f64>) = series.into_iter().unzip();
        let cuts = cuts(&values);
        let ends = cuts.iter().map(|(at, _)| *at).skip(1).chain([values.len()]);
        let mut begin = 0;
        for (&(at, chance), end) in cuts.iter().zip(ends) {
            let (before, behind) = (values.get(begin..at).unwrap_or_default(), values.get(at..end).unwrap_or_default());
            let of = |at: usize| places.get(at).and_then(|place| points.get(*place));
            begin = at;
            let (Some(last), Some(point)) = (of(at - 1), of(at)) else { continue };
            let (Some(old), Some(new)) = (median(before), median(behind)) else { continue };
            if (new - old).abs() < LEAST_CHANGE * old.abs() {
                continue;
            }
            found.push(MetricStep {
                metric: metric.to_owned(),
                at: point.name.to_owned(),
                start: point.start.to_owned(),
                before: old,
                after: new,
                runs: [before.len(), behind.len()],
                chance,
                toward: toward(definition_of(metric)?, Some(old), Some(new)),
                incomparable: incomparable(&point.runs, &last.runs),
            });
        }
    }
    let size = |step: &MetricStep| (step.after - step.before).abs() / step.before.abs();
    found.sort_by(|a, b| b.start.cmp(&a.start).then(size(b).total_cmp(&size(a))).then(a.metric.cmp(&b.metric)));
    Ok(History { steps: found, metrics, points: points.len() })
}

/// The runs that could be read in their order in time. A value of a label stands where its first run does.
fn points<'r>(runs: &'r [Run], by: Option<&str>) -> Vec<Point<'r>> {
    let mut sorted: Vec<&Run> = runs.iter().filter(|run| !run.is_failed).collect();
    sorted.sort_by_key(|run| (&run.start, &run.trace_id));
    let (mut points, mut places) = (Vec::<Point<'_>>::new(), BTreeMap::new());
    for run in sorted {
        let value = by.and_then(|label| run.labels.get(label));
        let name = value.unwrap_or(&run.trace_id);
        let place = *places.entry(name).or_insert(points.len());
        match points.get_mut(place) {
            Some(point) => point.runs.push(run),
            None => points.push(Point { name, start: &run.start, runs: vec![run] }),
        }
    }
    points
}

/// The values of each metric, with the places of their points.
fn series<'r>(points: &[Point<'r>]) -> Result<BTreeMap<&'r str, Vec<(usize, f64)>>> {
    let mut all: BTreeMap<&str, Vec<(usize, f64)>> = BTreeMap::new();
    for metric in points.iter().flat_map(|point| &point.runs).flat_map(|run| &run.metrics) {
        if metric.value.is_some() {
            all.entry(&metric.name).or_default();
        }
    }
    for (metric, values) in &mut all {
        let mut places = vec![0; points.len()];
        for (place, (point, near)) in points.iter().zip(&mut places).enumerate() {
            let mut known = Vec::new();
            for run in &point.runs {
                // One of several by names that does not occur is 0.
                let value = match run.near(metric, near).and_then(|found| found.value) {
                    None if metric.contains('[') => match run.figure(metric)? {
                        Figure::Is(value) => Some(value),
                        Figure::UpTo(_) | Figure::Missing(_) => None,
                    },
                    value => value,
                };
                known.extend(value.filter(|value| value.is_finite()));
            }
            values.extend(median(&known).map(|value| (place, value)));
        }
    }
    Ok(all)
}

/// The places where a series is cut, each with a bound on the probability of such a cut in a series without a step.
pub(super) fn cuts(values: &[f64]) -> Vec<(usize, f64)> {
    let (mut found, mut left) = (Vec::new(), vec![(0, values.len())]);
    while let Some((begin, end)) = left.pop() {
        let part = values.get(begin..end).unwrap_or_default();
        let Some((at, chance)) = best_cut(part).filter(|(_, chance)| *chance <= FALSE_STEPS) else { continue };
        found.push((begin + at, chance));
        left.extend([(begin, begin + at), (begin + at, end)]);
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    // A later cut may explain an earlier one, which was made where levels were mixed: the least significant goes first.
    loop {
        for cut in 0..found.len() {
            let moved = placed(values, &found, cut);
            found.get_mut(cut).into_iter().for_each(|place| *place = moved);
        }
        let worst = found.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        match worst.filter(|(_, (_, chance))| *chance > FALSE_STEPS).map(|(place, _)| place) {
            Some(place) => drop(found.remove(place)),
            None => return found,
        }
    }
}

/// A cut between those beside it: ranks find that there is a step, and its place nearly; it is where the parts are nearest to
/// their medians.
fn placed(values: &[f64], cuts: &[(usize, f64)], cut: usize) -> (usize, f64) {
    let begin = cut.checked_sub(1).and_then(|before| cuts.get(before)).map_or(0, |(at, _)| *at);
    let end = cuts.get(cut + 1).map_or(values.len(), |(at, _)| *at);
    let part = values.get(begin..end).unwrap_or_default();
    let halves = |place: &usize| part.split_at_checked(*place).unwrap_or_default();
    let distance = |place: &usize| spread(halves(place).0) + spread(halves(place).1);
    let place = (1..part.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or_default();
    let chance = mann_whitney(halves(&place).0, halves(&place).1).unwrap_or(1.0);
    (begin + place, (chance * values.len() as f64).min(1.0))
}

/// The least probable place of a step in a series. Two kinds of tests are made: of all values before a place against all
/// behind it, and of 12, 24 or 48 values on each side, which see a level that comes and goes. Any of these tests could have
/// been the best one by chance, so that its probability is multiplied by their number.
pub(super) fn best_cut(values: &[f64]) -> Option<(usize, f64)> {
    let whole = ranked(values, 1..values.len()).into_iter().map(|(at, difference)| (at, values.len(), difference));
    let mut all: Vec<(usize, usize, f64)> = whole.collect();
    for side in SIDES.into_iter().filter(|side| 2 * side < values.len()) {
        for at in side..=values.len() - side {
            let near = values.get(at - side..at + side).unwrap_or_default();
            all.extend(ranked(near, side..side + 1).into_iter().map(|(_, difference)| (at, side, difference)));
        }
    }
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    let chance = |&(at, side, _): &(usize, usize, f64)| {
        let (before, behind) = values.split_at_checked(at)?;
        let before = before.get(at.saturating_sub(side)..).unwrap_or_default();
        let chance = mann_whitney(before, behind.get(..side).unwrap_or(behind))?;
        Some((at, (chance * all.len() as f64).min(1.0)))
    };
    all.iter().take(CANDIDATES).filter_map(chance).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// For each of these places: the distance of the sum of ranks before it from the expected sum, in standard deviations.
fn ranked(values: &[f64], places: Range<usize>) -> Vec<(usize, f64)> {
    let (doubled, all) = (doubled_ranks(values), values.len() as f64);
    let mut own = 0.0;
    let sums = doubled.into_iter().enumerate().map(|(place, doubled)| {
        own += doubled as f64 / 2.0;
        let n = (place + 1) as f64;
        (place + 1, (own - n * (all + 1.0) / 2.0).abs() / (n * (all - n) * (all + 1.0) / 12.0).sqrt())
    });
    sums.filter(|(at, _)| places.contains(at)).collect()
}

/// The distances of values from their median.
fn spread(values: &[f64]) -> f64 {
    median(values).map_or(0.0, |middle| values.iter().map(|value| (value - middle).abs()).sum())
}
