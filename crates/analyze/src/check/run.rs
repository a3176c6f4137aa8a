//! Runs as rules see them, and what they say of a figure: a value, that it is none of the largest, or nothing.

use tracequet_dataset::read::Dataset;

use crate::findings::{FOLLOWS, followed};
use crate::metrics::{Metric, Missing, definition_of};
use crate::prelude::*;
use crate::rules::{Rule, matches};

/// A recording as a rule sees it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The key.
    pub trace_id: String,
    /// When it began, as text that sorts.
    pub start: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Whether something of it was lost, damaged or not decoded.
    pub has_losses: bool,
    /// Whether it could not be read at all: then it has no figures.
    pub is_failed: bool,
    /// Whether its entry in the dataset is damaged: then its labels are not known, so that it may be one of those that
    /// are asked for.
    pub is_damaged: bool,
    /// The fingerprint: name and value.
    pub fingerprint: BTreeMap<&'static str, String>,
    /// The metrics.
    pub metrics: Vec<Metric>,
}

impl Run {
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value)
    }

    /// The kind of rows that a figure was made from, where there are several. One of several that this run does not
    /// have would have been made from those of the others.
    pub(super) fn source(&self, name: &str) -> Option<&str> {
        self.source_of(name, self.metrics.iter().find(|metric| metric.name == name))
    }

    /// The source of a metric that was looked for.
    pub(super) fn source_of<'r>(&'r self, name: &str, own: Option<&'r Metric>) -> Option<&'r str> {
        let family = name.find('[').and_then(|end| name.get(..=end));
        let is_of_family = |metric: &&Metric| family.is_some_and(|family| metric.name.starts_with(family));
        own.or_else(|| self.metrics.iter().find(is_of_family)).and_then(|metric| metric.source.as_deref())
    }
}

/// A metric of a run: known, missing or unproven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    /// A value.
    Is(f64),
    /// Not one of the largest, of which this one is the least: it lies between 0 and that.
    UpTo(f64),
    /// None, and why; `None`: the recording does not even say that.
    Missing(Option<Missing>),
}

impl Run {
    /// The metric of this name. Of what it counts by names, one that does not occur is 0.
    pub(super) fn figure(&self, name: &str) -> Result<Figure> {
        self.figure_of(name, self.metrics.iter().find(|metric| metric.name == name))
    }

    /// The figure with a name, which is looked for from `place` on, and then before it. Runs of one program have their
    /// figures in the same order, so that the next one is mostly the one behind the last.
    pub(super) fn near(&self, name: &str, place: &mut usize) -> Option<&Metric> {
        let (before, behind) = self.metrics.split_at_checked((*place).min(self.metrics.len()))?;
        let is_it = |metric: &Metric| metric.name == name;
        let found = match behind.iter().position(is_it) {
            Some(found) => before.len() + found,
            None => before.iter().position(is_it)?,
        };
        *place = found + 1;
        self.metrics.get(found)
    }

    fn figure_of(&self, name: &str, found: Option<&Metric>) -> Result<Figure> {
        if let Some(value) = found.and_then(|metric| metric.value) {
            return Ok(Figure::Is(value));
        }
        let family = name.split_once('[').map(|(family, _)| family);
        let Some((family, definition)) = family.zip(definition_of(name)?.filter(|definition| definition.is_total()))
        else {
            return Ok(Figure::Missing(found.and_then(|metric| metric.missing)));
        };
        let is_of_family = |metric: &&Metric| metric.name.split('[').next() == Some(family);
        let all: Vec<&Metric> = self.metrics.iter().filter(is_of_family).collect();
        let least = all.iter().filter_map(|metric| metric.value).min_by(f64::total_cmp);
        Ok(match (least, all.first().and_then(|metric| metric.missing)) {
            (Some(_), _) if all.len() < definition.most => Figure::Is(0.0),
            (Some(least), _) => Figure::UpTo(least),
            (None, Some(Missing::Empty)) => Figure::Is(0.0),
            (None, missing) => Figure::Missing(missing),
        })
    }
}

/// Gives runs the score of the rule that follows sampled objects, where one of these rules asks for it and the
/// conversion did not follow them: as `explain` does.
pub fn follow(dataset: &Dataset, rules: &[Rule], runs: &mut [Run]) -> Result<()> {
    let name = format!("finding.score[{FOLLOWS}]");
    let Some(definition) = definition_of(&name)?.filter(|_| rules.iter().any(|rule| matches(&rule.metric, &name)))
    else {
        return Ok(());
    };
    for run in runs.iter_mut().filter(|run| !run.is_failed && run.value(&name).is_none()) {
        let found = followed(&dataset.recording(Some(&run.trace_id))?)?;
        let scores: Vec<f64> =
            found.iter().filter(|finding| finding.rule == FOLLOWS).filter_map(|finding| finding.score).collect();
        let highest = scores.iter().copied().reduce(f64::max);
        run.metrics.extend(highest.map(|score| Metric::new(definition, Some(FOLLOWS), score, scores.len() as u64)));
    }
    Ok(())
}

/// Runs, each with its value of a figure.
pub(super) type Valued<'r> = Vec<(&'r Run, f64)>;

/// The values of a figure in all runs: the least and the most that they can be, or why they decide nothing.
pub(super) type Values<'r> = std::result::Result<(Valued<'r>, Valued<'r>), String>;

/// The values of a figure in all runs. `whose` stands behind the number of runs without one.
pub(super) fn values<'r>(rule: &Rule, name: &str, runs: &'r [Run], whose: &str) -> Result<Values<'r>> {
    let (mut least, mut most, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs.iter().filter(|run| !run.is_failed) {
        match run.figure(name)? {
            Figure::Is(value) => (least.push((run, value)), most.push((run, value))),
            Figure::Missing(_) if rule.absent_is_zero => (least.push((run, 0.0)), most.push((run, 0.0))),
            Figure::UpTo(value) => (least.push((run, 0.0)), most.push((run, value))),
            Figure::Missing(why) => {
                missing.push((run, why));
                continue;
            }
        };
    }
    if let Some((_, odd)) = most.iter().find(|(_, value)| !value.is_finite()) {
        return Ok(Err(format!("one of the values {whose} is {odd}, which is not finite")));
    }
    let Some((first, why)) = missing.first() else { return Ok(Ok((least, most))) };
    let is_score = name.starts_with("finding.score[");
    let no_verdict = "its rule gives no verdict; tracequet explain says what to record for it";
    let why = why.map_or(if is_score { no_verdict } else { "it has no such figure" }, Missing::why);
    Ok(Err(match runs.len() {
        1 => format!("{} has no value: {why}", first.trace_id),
        all => format!("{} of {all} runs {whose} have no value; {}: {why}", missing.len(), first.trace_id),
    }))
}

/// The values of a figure in the runs that could be read, and whether each of them has one. `found` are the figures
/// with this name.
pub(super) fn values_known(name: &str, runs: &[&Run], found: &[Option<&Metric>]) -> Result<(Vec<f64>, bool)> {
    let (mut values, mut is_whole) = (Vec::new(), true);
    for (run, found) in runs.iter().zip(found).filter(|(run, _)| !run.is_failed) {
        match run.figure_of(name, *found)? {
            Figure::Is(value) => values.push(value),
            Figure::UpTo(_) | Figure::Missing(_) => is_whole = false,
        }
    }
    Ok((values, is_whole))
}
