//! Runs held against rules and against other runs. Runs are the samples: nothing is said of the events within one.

use std::collections::{BTreeMap, BTreeSet};

use super::metrics::{Better, Metric, definition_of, metrics};
use super::rules::{Amount, Bound, Compare, Rule, matches};
use super::samples::{least_chance, mann_whitney, median};
use crate::dataset::{Column, Dataset, Recording};
use crate::error::Result;

/// A difference that chance makes less often than this is one.
pub const CHANCE: f64 = 0.05;

/// A recording as a rule sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// Its key.
    pub trace_id: String,
    /// When it began, as text that sorts.
    pub start: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether something of it was lost, damaged or not decoded.
    pub has_losses: bool,
    /// Whether it could not be read at all: then it has no figures.
    pub is_failed: bool,
    /// Whether its entry in the dataset is damaged: then its labels are not known, so that it may be one of those that
    /// are asked for.
    pub is_damaged: bool,
    /// What makes runs comparable: name and value.
    pub fingerprint: BTreeMap<&'static str, String>,
    /// Its figures.
    pub metrics: Vec<Metric>,
}

impl Run {
    fn value(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }
}

/// The runs of a dataset that have all of these labels, and one of these keys if there are some. Recordings that could not be
/// read are among them, and all of which the entry is damaged.
pub fn runs(dataset: &Dataset, wanted: &[LabelTest], keys: Option<&[String]>) -> Result<Vec<Run>> {
    let is_wanted = |trace_id: &String, labels: &BTreeMap<String, String>| {
        labelled(labels, wanted) && keys.is_none_or(|keys| keys.contains(trace_id))
    };
    let mut found = Vec::new();
    for recording in dataset.each_recording() {
        let info = recording.info();
        if !is_wanted(&info.trace_id, &info.labels) {
            continue;
        }
        found.push(Run {
            trace_id: info.trace_id.clone(),
            start: info.start.clone(),
            labels: info.labels.clone(),
            has_losses: info.dropped_events > 0 || !info.complete || info.status == "losses",
            is_failed: false,
            is_damaged: false,
            fingerprint: fingerprint(&recording)?,
            metrics: metrics(&recording)?,
        });
    }
    found.extend(dataset.failed().iter().filter(|info| is_wanted(&info.trace_id, &info.labels)).map(|info| Run {
        trace_id: info.trace_id.clone(),
        start: String::new(),
        labels: info.labels.clone(),
        has_losses: true,
        is_failed: true,
        is_damaged: false,
        fingerprint: BTreeMap::new(),
        metrics: Vec::new(),
    }));
    found.extend(dataset.damaged().iter().map(|damaged| Run {
        trace_id: damaged.key.clone(),
        start: String::new(),
        labels: BTreeMap::new(),
        has_losses: true,
        is_failed: true,
        is_damaged: true,
        fingerprint: BTreeMap::new(),
        metrics: Vec::new(),
    }));
    Ok(found)
}

/// Container, processors, width, system, runtime, mode and heaps of the collector, and the providers that were recorded. Which
/// keywords were asked of them is in no recording.
fn fingerprint(recording: &Recording<'_>) -> Result<BTreeMap<&'static str, String>> {
    let mut found = BTreeMap::new();
    for (table, column, name) in [
        ("trace", "container", "container"),
        ("trace", "processor_count", "processors"),
        ("trace", "pointer_size", "pointer size"),
        ("process", "os", "system"),
        ("process", "arch", "architecture"),
        ("process", "runtime_version", "runtime version"),
        ("process", "startup_flags", "startup flags"),
        ("gc", "heap_count", "GC heaps"),
        ("event_type", "provider_name", "providers"),
    ] {
        let Ok(table) = recording.table(table) else { continue };
        let mut values = BTreeSet::new();
        for batch in table.scan().columns([column]).batches()? {
            let batch = batch?;
            let column = Column::of(&batch, column)?;
            values.extend((0..batch.num_rows()).filter_map(|row| match column.text(row) {
                Some(text) => (!text.is_empty()).then(|| text.to_owned()),
                None => column.number(row).filter(|number| *number > 0).map(|number| number.to_string()),
            }));
        }
        found.insert(name, values.into_iter().collect::<Vec<_>>().join(", "));
    }
    Ok(found)
}

/// A label that recordings have to have, or not to have: name, whether they have to, and the value, where `*` stands for
/// anything.
pub type LabelTest = (String, bool, String);

/// Whether labels pass all tests.
pub fn labelled(labels: &BTreeMap<String, String>, wanted: &[LabelTest]) -> bool {
    wanted.iter().all(|(name, equal, value)| {
        let own = labels.get(name).map_or("", String::as_str);
        matches(value, own) == *equal
    })
}

/// The keys of the newest recording and of those with the same labels, or of it alone when it has none. Of recordings
/// that could not be read nothing says how new they are: they are the newest if there are no others.
pub fn latest(dataset: &Dataset) -> Vec<String> {
    let newest = dataset.recordings().iter().max_by_key(|info| (&info.start, &info.trace_id));
    let Some(newest) = newest else {
        return dataset.failed().iter().map(|info| info.trace_id.clone()).collect();
    };
    let read = dataset.recordings().iter().map(|info| (&info.trace_id, &info.labels));
    let all = read.chain(dataset.failed().iter().map(|info| (&info.trace_id, &info.labels)));
    let same = all.filter(|(trace_id, labels)| match newest.labels.is_empty() {
        true => **trace_id == newest.trace_id,
        false => **labels == newest.labels,
    });
    same.map(|(trace_id, _)| trace_id.clone()).collect()
}

/// How a rule came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Verdict {
    Passed,
    Undecided,
    Failed,
}

/// What a rule says of one figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The rule as it was written.
    pub rule: String,
    /// The figure.
    pub metric: String,
    /// How it came out.
    pub verdict: Verdict,
    /// Whether a failure is only told.
    pub is_warning: bool,
    /// Median of the new runs, and how many they are.
    pub value: Option<f64>,
    /// See `value`.
    pub runs: usize,
    /// Median of the baseline, where the rule has one, and how many runs that is.
    pub baseline: Option<f64>,
    /// See `baseline`.
    pub baseline_runs: usize,
    /// What the figure had to keep.
    pub bound: Option<f64>,
    /// How likely chance alone makes such a difference.
    pub chance: Option<f64>,
    /// Why, in a sentence.
    pub why: String,
    /// Where to look: recording, and collection or type.
    pub look_at: Option<String>,
}

/// Holds new runs against rules, where they say so in comparison with a baseline.
pub fn check(rules: &[Rule], new: &[Run], base: &[Run]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for rule in rules {
        let wanted: Vec<_> = rule.labels.iter().map(|(name, value)| (name.clone(), true, value.clone())).collect();
        let is_of_rule = |run: &&Run| run.is_damaged || labelled(&run.labels, &wanted);
        let of_rule = |runs: &[Run]| runs.iter().filter(is_of_rule).cloned().collect::<Vec<_>>();
        let (new, base) = (of_rule(new), of_rule(base));
        let names: BTreeSet<&str> = new
            .iter()
            .flat_map(|run| &run.metrics)
            .map(|metric| metric.name.as_str())
            .filter(|name| matches(&rule.metric, name))
            .collect();
        if names.is_empty() {
            let why = if new.is_empty() { "there is no recording for it".into() } else { without_figure(rule, &new)? };
            found.push(Finding { why, ..empty(rule, &rule.metric) });
        }
        for name in names {
            found.push(judge(rule, name, &new, &base)?);
        }
    }
    Ok(found)
}

/// Why none of the runs has a figure.
fn without_figure(rule: &Rule, runs: &[Run]) -> Result<String> {
    if let Some(failed) = runs.iter().find(|run| run.is_failed) {
        return Ok(unread(failed));
    }
    let of = definition_of(&rule.metric)?.map(|definition| definition.table_name());
    Ok(of.map_or_else(
        || "no recording has such a figure".into(),
        |table| format!("no recording has such a figure: it is made of the table {table}"),
    ))
}

fn empty(rule: &Rule, metric: &str) -> Finding {
    Finding {
        rule: rule.text.clone(),
        metric: metric.to_owned(),
        verdict: Verdict::Undecided,
        is_warning: rule.is_warning,
        value: None,
        runs: 0,
        baseline: None,
        baseline_runs: 0,
        bound: None,
        chance: None,
        why: String::new(),
        look_at: None,
    }
}

fn judge(rule: &Rule, name: &str, new: &[Run], base: &[Run]) -> Result<Finding> {
    let values = |runs: &[Run]| runs.iter().filter_map(|run| run.value(name)).collect::<Vec<f64>>();
    let (own, theirs) = (values(new), values(base));
    let mut finding = empty(rule, name);
    (finding.value, finding.runs) = (median(&own), own.len());
    let uses_baseline = matches!(rule.bound, Bound::Baseline { .. });
    if uses_baseline {
        (finding.baseline, finding.baseline_runs) = (median(&theirs), theirs.len());
    }
    finding.look_at = worst(name, rule.compare, new, if uses_baseline { base } else { &[] });
    let bound = match (rule.bound, finding.baseline) {
        (Bound::Number(bound), _) => Some(bound),
        (Bound::Baseline { factor, more }, Some(baseline)) => Some(baseline * factor + more),
        (Bound::Baseline { .. }, None) => None,
    };
    finding.bound = bound;
    let judged: Vec<&Run> = new.iter().chain(base.iter().filter(|_| uses_baseline)).collect();
    if is_surely_above(rule, name, finding.value, new) {
        finding.verdict = Verdict::Failed;
        finding.why = "so many were lost at least".into();
        return Ok(finding);
    }
    if let Some(why) = lossy(&judged) {
        finding.why = why;
        return Ok(finding);
    }
    let (Some(value), Some(bound)) = (finding.value, bound) else {
        finding.why = match base.is_empty() {
            true => "the baseline has no recording".into(),
            false => "the baseline has no recording with this figure".into(),
        };
        return Ok(finding);
    };
    // A counter may have any value.
    if !value.is_finite() || !bound.is_finite() {
        finding.why = "the figure is no number that can be compared".into();
        return Ok(finding);
    }
    if uses_baseline && let Some(why) = incomparable(new, base) {
        finding.why = why;
        return Ok(finding);
    }
    if keeps(rule.compare, value, bound) {
        finding.verdict = Verdict::Passed;
        return Ok(finding);
    }
    finding.verdict = Verdict::Failed;
    finding.why = "the median is outside of the bound".into();
    let Some(baseline) = finding.baseline else { return Ok(finding) };
    let noise = match rule.noise {
        Some(Amount::Number(noise)) => noise,
        Some(Amount::Part(part)) => part * baseline.abs(),
        None => 0.0,
    };
    if (value - baseline).abs() <= noise {
        finding.verdict = Verdict::Passed;
        finding.why = "the difference is within the noise".into();
        return Ok(finding);
    }
    if definition_of(name)?.is_some_and(|definition| definition.exact) {
        finding.why = "counts are compared as they are".into();
    } else if least_chance(own.len(), theirs.len()) > CHANCE {
        finding.why =
            format!("{} against {} runs: too few to tell chance, so the bound alone decides", own.len(), theirs.len());
    } else {
        finding.chance = mann_whitney(&own, &theirs);
        if finding.chance.is_some_and(|chance| chance > CHANCE) {
            finding.verdict = Verdict::Passed;
            finding.why = "outside of the bound, but chance alone makes such a difference".into();
        }
    }
    Ok(finding)
}

/// Why runs that lost something or could not be read decide nothing.
fn lossy(runs: &[&Run]) -> Option<String> {
    let all: Vec<&&Run> = runs.iter().filter(|run| run.has_losses).collect();
    let first = all.iter().find(|run| run.is_failed).or_else(|| all.first())?;
    let others = match all.len() - 1 {
        0 => String::new(),
        others => format!(" ({others} more have losses, too)"),
    };
    Some(match first.is_failed {
        true => format!("{}{others}", unread(first)),
        false => format!("{} has losses: what is missing may be what the rule is about{others}", first.trace_id),
    })
}

/// Why a run has no figures.
fn unread(run: &Run) -> String {
    match run.is_damaged {
        true => format!("the entry of {} in the dataset is damaged, so that it may belong here", run.trace_id),
        false => format!("{} could not be read", run.trace_id),
    }
}

/// Whether runs lost more than they may. The figure is a lower bound, so that losses make nothing of it doubtful but a
/// rule that is kept.
fn is_surely_above(rule: &Rule, name: &str, value: Option<f64>, runs: &[Run]) -> bool {
    let (Bound::Number(bound), Some(value)) = (rule.bound, value) else { return false };
    let is_above = matches!(rule.compare, Compare::AtMost | Compare::Below | Compare::Equal) && value > bound;
    name == "lost.events" && is_above && runs.iter().all(|run| !run.is_failed)
}

fn keeps(compare: Compare, value: f64, bound: f64) -> bool {
    match compare {
        Compare::AtMost => value <= bound,
        Compare::Below => value < bound,
        Compare::AtLeast => value >= bound,
        Compare::Above => value > bound,
        Compare::Equal => value == bound,
    }
}

/// Why runs cannot be compared, if they cannot.
pub fn incomparable(new: &[Run], base: &[Run]) -> Option<String> {
    let of = |runs: &[Run], name: &str| -> BTreeSet<String> {
        runs.iter().filter_map(|run| run.fingerprint.get(name)).filter(|value| !value.is_empty()).cloned().collect()
    };
    let names: BTreeSet<&str> = new.iter().chain(base).flat_map(|run| run.fingerprint.keys().copied()).collect();
    names.into_iter().find_map(|name| {
        let (own, theirs) = (of(new, name), of(base, name));
        let differs = !own.is_empty() && !theirs.is_empty() && own != theirs;
        let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" or ");
        differs.then(|| format!("not comparable: {name} was {}, now {}", list(theirs), list(own)))
    })
}

/// The run in which the figure is worst, and where in it: the collection, or the type or method with the most, or with
/// most more than in the baseline if there is one.
fn worst(name: &str, compare: Compare, runs: &[Run], base: &[Run]) -> Option<String> {
    let high = matches!(compare, Compare::AtMost | Compare::Below | Compare::Equal);
    let key = |run: &&Run| run.value(name).map(|value| if high { value } else { -value });
    let run = runs.iter().filter(|run| run.value(name).is_some()).max_by(|a, b| {
        let keys = key(a).unwrap_or_default().total_cmp(&key(b).unwrap_or_default());
        keys.then_with(|| b.trace_id.cmp(&a.trace_id))
    })?;
    let metric = run.metrics.iter().find(|metric| metric.name == name)?;
    let family = name.rsplit_once('.').map_or(name, |(family, _)| family);
    let longest = || {
        let longest = format!("{family}.max");
        run.metrics.iter().find(|other| other.name == longest).and_then(|other| other.worst.clone())
    };
    let inside = match name.contains('[') {
        true => None,
        false => metric.worst.clone().or_else(|| most_inside(family, run, base)).or_else(longest),
    };
    let place = inside.or_else(|| metric.worst.clone());
    Some(place.map_or_else(|| run.trace_id.clone(), |place| format!("{}, {place}", run.trace_id)))
}

/// Of a sum over types or methods: the one with the most, or the one that grew most since the baseline.
fn most_inside(family: &str, run: &Run, base: &[Run]) -> Option<String> {
    let parts = format!("{family}.by_");
    let kind = run.metrics.iter().find(|metric| metric.name.starts_with(&parts))?.name.split('[').next()?;
    let of_kind = run.metrics.iter().filter(|metric| metric.name.split('[').next() == Some(kind));
    if base.is_empty() {
        return of_kind.max_by(|a, b| a.value.total_cmp(&b.value)).map(|most| format!("most: {}", most.name));
    }
    let growth = |metric: &Metric| {
        let before: Vec<f64> = base.iter().map(|run| run.value(&metric.name).unwrap_or_default()).collect();
        metric.value - median(&before).unwrap_or_default()
    };
    let grown = of_kind.map(|metric| (growth(metric), metric)).max_by(|a, b| a.0.total_cmp(&b.0));
    grown.filter(|(more, _)| *more > 0.0).map(|(_, metric)| format!("grew most: {}", metric.name))
}

/// A figure of two sets of runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The figure.
    pub metric: String,
    /// Median of the baseline.
    pub baseline: Option<f64>,
    /// Median of the new runs.
    pub value: Option<f64>,
    /// How likely chance alone makes such a difference; `None` when there are too few runs to tell.
    pub chance: Option<f64>,
    /// `better`, `worse`, `same`, or `other` where neither way is good; `unclear` when chance could make it.
    pub what: &'static str,
}

/// Holds all figures of two sets of runs against each other.
pub fn compare(base: &[Run], new: &[Run]) -> Result<Vec<Difference>> {
    let (mut names, mut known): (Vec<&str>, BTreeSet<&str>) = Default::default();
    for metric in new.iter().chain(base).flat_map(|run| &run.metrics) {
        if known.insert(&metric.name) {
            names.push(&metric.name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        let values = |runs: &[Run]| runs.iter().filter_map(|run| run.value(name)).collect::<Vec<f64>>();
        let (theirs, own) = (values(base), values(new));
        let can_tell = least_chance(own.len(), theirs.len()) <= CHANCE;
        let chance = if can_tell { mann_whitney(&own, &theirs) } else { None };
        let definition = definition_of(name)?;
        let (baseline, value) = (median(&theirs), median(&own));
        let better = definition.map_or(Better::Neither, |definition| definition.better);
        let is_exact = definition.is_some_and(|definition| definition.exact);
        let what = match (baseline, value) {
            (Some(baseline), Some(value)) if baseline == value => "same",
            (Some(_), Some(_)) if !is_exact && chance.is_none_or(|chance| chance > CHANCE) => "unclear",
            (Some(baseline), Some(value)) => match (better, value > baseline) {
                (Better::Neither, _) => "other",
                (Better::Lower, true) | (Better::Higher, false) => "worse",
                _ => "better",
            },
            _ => "other",
        };
        found.push(Difference { metric: name.to_owned(), baseline, value, chance, what });
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
