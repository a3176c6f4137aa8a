//! Compares runs with rules and with other runs. Runs are the samples, not the events within a run.

mod baseline;
mod candidate;
mod fingerprint;
mod history;
mod run;
mod sample;

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashSet};

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Dataset;

pub use self::baseline::{Baseline, ENOUGH, Since};
use self::candidate::{Candidate, candidates};
pub use self::candidate::{LabelTest, labelled};
pub use self::fingerprint::{TABLES as FINGERPRINT_TABLES, incomparable};
pub use self::history::{FALSE_STEPS, History, MetricStep, steps};
pub use self::run::{Run, follow};
use self::run::{Valued, values, values_known};
pub use self::sample::FALSE_ALARMS;
use self::sample::{Sample, SignificanceTest};
use super::metrics::{Better, Definition, Metric, Owner, definition_of};
use super::rules::{Amount, Bound, Compare, Rule, matches};
use super::samples::{CHANCE, Shift, chance, median, runs_needed, shift};

/// The runs of a dataset that have all of these labels, and one of these keys if there are some. Recordings that could
/// not be read are among them, and all of which the entry is damaged.
pub fn runs(dataset: &Dataset, wanted: &[LabelTest], keys: Option<&[String]>) -> Result<Vec<Run>> {
    let keys: Option<HashSet<&str>> = keys.map(|keys| keys.iter().map(String::as_str).collect());
    let is_of_keys =
        |one: &Candidate<'_>| one.is_damaged() || keys.as_ref().is_none_or(|keys| keys.contains(one.trace_id));
    let chosen: Vec<Candidate<'_>> = candidates(dataset, wanted).into_iter().filter(is_of_keys).collect();
    candidate::read(&chosen, dataset)
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

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Verdict {
    Passed,
    #[default]
    Undecided,
    Failed,
}

/// The result of a rule for one metric.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// The rule as it was written.
    pub rule: String,
    /// The figure.
    pub metric: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether a failure is only reported.
    pub is_warning: bool,
    /// Median of the new runs, and how many they are. Runs that belong together have one value in it, their median
    /// ([`Against::by`]).
    pub value: Option<f64>,
    /// See `value`.
    pub runs: usize,
    /// Median of the baseline, where the rule has one, and how many runs that is.
    pub baseline: Option<f64>,
    /// See `baseline`.
    pub baseline_runs: usize,
    /// The bound that the metric had to keep.
    pub bound: Option<f64>,
    /// Probability that chance makes a difference this large in the direction that the rule forbids.
    pub chance: Option<f64>,
    /// By how much the new runs lie above the baseline. Each end of its interval is exceeded with probability
    /// [`FALSE_ALARMS`].
    pub shift: Option<Shift>,
    /// Why, in a sentence.
    pub why: String,
    /// Where to look: recording, and collection or type.
    pub look_at: Option<String>,
}

/// The runs that new runs are compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Against<'a> {
    /// The runs of the baseline.
    pub base: &'a [Run],
    /// The label whose runs belong together, such as `commit`: those of one value count as one run, their median. A
    /// significance test takes the runs themselves where there are too few values of the label for one.
    pub by: Option<&'a str>,
    /// Whether the new runs are the first ones of the baseline: rules that compare with it pass, and say so.
    pub is_first: bool,
}

/// Holds new runs against rules, where they say so in comparison with a baseline.
pub fn check(rules: &[Rule], new: &[Run], against: &Against<'_>) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for rule in rules {
        let wanted: Vec<_> = rule.labels.iter().map(|(name, value)| (name.clone(), true, value.clone())).collect();
        let is_of_rule = |run: &&Run| run.is_damaged || labelled(&run.labels, &wanted);
        let of_rule = |runs: &[Run]| runs.iter().filter(is_of_rule).cloned().collect::<Vec<_>>();
        let (new, base) = (of_rule(new), of_rule(against.base));
        let against = Against { base: &base, ..*against };
        let mut names = BTreeSet::new();
        for metric in new.iter().flat_map(|run| &run.metrics).filter(|metric| matches(&rule.metric, &metric.name)) {
            // The row that says why a family has no values counts only when it is asked for by its own name.
            let is_of_none = metric.value.is_none() && definition_of(&metric.name)?.is_some_and(|one| one.has_keys());
            if !is_of_none {
                names.insert(metric.name.as_str());
            }
        }
        // One of several that is named as it is may be 0 in all runs.
        let is_named = rule.metric.contains('[') && !rule.metric.contains('*') && !new.is_empty();
        if is_named && new.iter().all(|run| !run.is_failed && !run.metrics.is_empty()) {
            names.insert(rule.metric.as_str());
        }
        if names.is_empty() {
            let why = if new.is_empty() { "there is no recording for it".into() } else { without_figure(rule, &new)? };
            found.push(Finding { why, ..empty(rule, &rule.metric) });
        }
        let mut of_names =
            names.into_iter().map(|name| judge(rule, name, &new, &against)).collect::<Result<Vec<_>>>()?;
        correct(&mut of_names);
        found.extend(of_names);
    }
    Ok(found)
}

/// A rule for several figures makes several comparisons, each with its chance of a false alarm: the more there are, the
/// less likely a difference has to be (Holm).
fn correct(findings: &mut [Finding]) {
    let tested = findings.iter().filter(|finding| finding.chance.is_some()).count();
    let mut failed: Vec<&mut Finding> =
        findings.iter_mut().filter(|finding| finding.verdict == Verdict::Failed && finding.chance.is_some()).collect();
    failed.sort_by(|a, b| a.chance.unwrap_or_default().total_cmp(&b.chance.unwrap_or_default()));
    let is_not_significant = |(place, finding): (usize, &&mut Finding)| {
        finding.chance.unwrap_or_default() * (tested - place) as f64 > FALSE_ALARMS
    };
    let kept = failed.iter().enumerate().position(is_not_significant).unwrap_or(failed.len());
    for finding in failed.into_iter().skip(kept) {
        finding.verdict = Verdict::Undecided;
        finding.why = format!("outside of the bound, but not significant among {tested} comparisons of this rule");
    }
}

/// Why no run has a figure.
fn without_figure(rule: &Rule, runs: &[Run]) -> Result<String> {
    if let Some(failed) = runs.iter().find(|run| run.is_failed) {
        return Ok(unread(failed));
    }
    let family = rule.metric.split('[').next().unwrap_or_default();
    let of_family = runs.iter().flat_map(|run| &run.metrics).find(|metric| metric.name == family);
    if let Some(missing) = of_family.and_then(|metric| metric.missing) {
        return Ok(format!("no recording has such a figure: {}", missing.why()));
    }
    let of = definition_of(&rule.metric)?.map(|definition| definition.table_name());
    Ok(of.map_or_else(
        || "no recording has such a figure".into(),
        |table| format!("no recording has such a figure: it is made of the table {table}"),
    ))
}

fn empty(rule: &Rule, metric: &str) -> Finding {
    let (rule, metric, is_warning) = (rule.text.clone(), metric.to_owned(), rule.is_warning);
    Finding { rule, metric, is_warning, ..Finding::default() }
}

impl Finding {
    /// The verdict, and why.
    fn because(self, verdict: Verdict, why: impl Into<String>) -> Result<Finding> {
        Ok(Finding { verdict, why: why.into(), ..self })
    }
}

/// Judges a figure by the least and by the most that it can be, which are mostly the same.
fn judge(rule: &Rule, name: &str, new: &[Run], against: &Against<'_>) -> Result<Finding> {
    let base = if matches!(rule.bound, Bound::Baseline { .. }) { against.base } else { &[] };
    let against = Against { base, ..*against };
    let own = values(rule, name, new, "that are checked")?;
    let theirs = values(rule, name, base, "of the baseline")?;
    let sample = |values: Valued<'_>| Sample::of(&values, against.by);
    let samples = |(least, most)| (sample(least), sample(most));
    let (own, theirs) = match (own, theirs) {
        (Ok(own), Ok(theirs)) => (samples(own), samples(theirs)),
        (own, theirs) => {
            let known = |runs| sample(valued(runs, |run| run.value(name)));
            let undecided = own.err().or(theirs.err());
            return judge_values(rule, name, (&known(new), &known(base)), new, &against, undecided);
        }
    };
    let low = judge_values(rule, name, (&own.0, &theirs.1), new, &against, None)?;
    if own.0 == own.1 && theirs.0 == theirs.1 {
        return Ok(low);
    }
    let high = judge_values(rule, name, (&own.1, &theirs.0), new, &against, None)?;
    if low.verdict == high.verdict {
        return Ok(high);
    }
    let why = "some runs do not have it among their largest, so that it is not known whether the rule is kept".into();
    Ok(Finding { verdict: Verdict::Undecided, why, ..high })
}

/// The runs that have a value, with it.
fn valued<'r>(runs: &'r [Run], value: impl Fn(&'r Run) -> Option<f64>) -> Valued<'r> {
    runs.iter().filter_map(|run| Some((run, value(run)?))).collect()
}

/// Judges a figure by its values in the new runs and in those of the baseline. `undecided` says why they decide
/// nothing.
fn judge_values(
    rule: &Rule,
    name: &str,
    (own, theirs): (&Sample, &Sample),
    new: &[Run],
    against: &Against<'_>,
    undecided: Option<String>,
) -> Result<Finding> {
    let base = against.base;
    let mut finding = empty(rule, name);
    (finding.value, finding.runs) = (own.median(), own.runs());
    let uses_baseline = matches!(rule.bound, Bound::Baseline { .. });
    (finding.baseline, finding.baseline_runs) = (theirs.median(), theirs.runs());
    finding.look_at = worst(name, rule.compare, new, against);
    let bound = match (rule.bound, finding.baseline) {
        (Bound::Number(bound), _) => Some(bound),
        (Bound::Baseline { factor, more }, Some(baseline)) => Some(baseline * factor + more),
        (Bound::Baseline { .. }, None) => None,
    };
    finding.bound = bound;
    let judged: Vec<&Run> = new.iter().chain(base).collect();
    if is_surely_above(rule, name, finding.value, new) {
        return finding.because(Verdict::Failed, "at least this many events were lost");
    }
    if let Some(why) = lossy(&judged).or(undecided).map_or_else(|| unproven(name, &judged), |why| Ok(Some(why)))? {
        return finding.because(Verdict::Undecided, why);
    }
    let (Some(value), Some(bound)) = (finding.value, bound) else {
        if base.is_empty() && against.is_first {
            let why = "the first recordings of the baseline: later ones are compared with them";
            return finding.because(Verdict::Passed, why);
        }
        let with = if base.is_empty() { "" } else { " with this figure" };
        return finding.because(Verdict::Undecided, format!("the baseline has no recording{with}"));
    };
    // Sums of finite values may be infinite.
    if !value.is_finite() || !bound.is_finite() {
        return finding.because(Verdict::Undecided, "the value or its bound is not finite");
    }
    if uses_baseline && let Some(why) = incomparable(new, base) {
        return finding.because(Verdict::Undecided, why);
    }
    let is_exact = definition_of(name)?.is_some_and(|definition| definition.exact);
    let test = SignificanceTest::of((own, theirs), against.by);
    if uses_baseline && !is_exact {
        finding.chance = test.chance(rule.compare);
        finding.shift = shift(&test.own, &test.theirs, FALSE_ALARMS);
    }
    if keeps(rule.compare, value, bound) {
        return finding.because(Verdict::Passed, "");
    }
    finding.verdict = Verdict::Failed;
    finding.why = match against.by {
        Some(label) => format!("the median by {label} is outside of the bound"),
        None => "the median is outside of the bound".into(),
    };
    if new.iter().flat_map(|run| &run.metrics).any(|metric| metric.name == name && metric.owner == Owner::Machine) {
        finding.why += ", of all processes of the recording";
    }
    let Some(baseline) = finding.baseline else { return Ok(finding) };
    let noise = match rule.noise {
        Some(Amount::Number(noise)) => noise,
        Some(Amount::Part(part)) => part * baseline.abs(),
        None => 0.0,
    };
    if (value - baseline).abs() <= noise {
        return finding.because(Verdict::Passed, "the difference is within the noise");
    }
    match finding.chance {
        _ if is_exact => finding.why = "counts are compared as they are".into(),
        None => {
            finding.why = format!(
                "{} against {} {}: too few for a significance test, so the bound alone decides",
                test.own.len(),
                test.theirs.len(),
                test.unit
            );
        }
        Some(chance) if chance <= FALSE_ALARMS => finding.why += &test.note,
        // A rule without room asks whether the figure is worse at all.
        Some(_) if bound == baseline => {
            finding.verdict = Verdict::Passed;
            finding.why = "outside of the bound, but not significant".into();
        }
        Some(_) => {
            finding.verdict = Verdict::Undecided;
            finding.why = "outside of the bound, but not significant".into();
            let needed = runs_needed(&test.own, &test.theirs, FALSE_ALARMS);
            if let Some(needed) = needed.filter(|needed| *needed as usize > test.own.len().min(test.theirs.len())) {
                finding.why += &format!(": about {needed} {} on each side would decide", test.unit);
            }
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
        false => format!("{} has losses: events that the rule needs may be missing{others}", first.trace_id),
    })
}

/// Why the figures of runs cannot be held against anything: they are made of rows of different kinds, or of a kind that
/// makes the same error in each run.
fn unproven(name: &str, runs: &[&Run]) -> Result<Option<String>> {
    unproven_by(name, runs.iter().filter_map(|run| run.source(name)).collect())
}

/// The reason by the kinds of rows.
fn unproven_by(name: &str, sources: BTreeSet<&str>) -> Result<Option<String>> {
    if sources.len() > 1 {
        let list = sources.into_iter().collect::<Vec<_>>().join("` and `");
        return Ok(Some(format!("not comparable: the figure is made of `{list}`")));
    }
    let Some(definition) = definition_of(name)? else { return Ok(None) };
    let unsound = sources.into_iter().find(|source| !definition.proves(Some(source)));
    Ok(unsound.map(|source| {
        format!(
            "`{source}` comes at regular steps and makes the same error in each run: record AllocationSampled (.NET 10)"
        )
    }))
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

/// The run in which the figure is worst, and where in it: the collection, or the type or method with the most, or with
/// most more than in the baseline if there is one.
fn worst(name: &str, compare: Compare, runs: &[Run], against: &Against<'_>) -> Option<String> {
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
        false => metric.worst.clone().or_else(|| most_inside(family, run, against)).or_else(longest),
    };
    let place = inside.or_else(|| metric.worst.clone());
    Some(place.map_or_else(|| run.trace_id.clone(), |place| format!("{}, {place}", run.trace_id)))
}

/// Of a sum over types or methods: the one with the most, or the one that grew most since the baseline.
fn most_inside(family: &str, run: &Run, against: &Against<'_>) -> Option<String> {
    let base = against.base;
    let parts = format!("{family}.by_");
    let kind = run.metrics.iter().find(|metric| metric.name.starts_with(&parts))?.name.split('[').next()?;
    let of_kind = run.metrics.iter().filter(|metric| metric.name.split('[').next() == Some(kind));
    if base.is_empty() {
        let valued = of_kind.filter_map(|metric| Some((metric.value?, &metric.name)));
        return valued.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| format!("most: {name}"));
    }
    let growth = |metric: &Metric| {
        let before = valued(base, |run| Some(run.value(&metric.name).unwrap_or_default()));
        metric.value.unwrap_or_default() - Sample::of(&before, against.by).median().unwrap_or_default()
    };
    // A cause of the same error in each run may show any of them to grow.
    let proves = |metric: &&Metric| {
        let definition = definition_of(&metric.name).ok().flatten();
        let sources = base.iter().map(|run| run.source(&metric.name)).chain([metric.source.as_deref()]);
        definition.is_some_and(|definition| sources.into_iter().all(|source| definition.proves(source)))
    };
    let grown = of_kind
        .filter(|metric| metric.value.is_some())
        .filter(proves)
        .map(|metric| (growth(metric), metric))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    grown.filter(|(more, _)| *more > 0.0).map(|(_, metric)| format!("grew most: {}", metric.name))
}

/// A metric of two sets of runs.
#[derive(Clone, Debug)]
pub struct MetricChange {
    /// Name, such as `gc.pause.p99`.
    pub metric: String,
    /// Median of the base.
    pub base: Option<f64>,
    /// Median of the new runs.
    pub new: Option<f64>,
    /// Probability of such a difference by chance. `None` when there are too few runs for a test, or when the metric is
    /// made of rows by which no number of runs can decide.
    pub chance: Option<f64>,
    /// `better`, `worse`, `same`, or `other` where neither way is good; `unclear` when chance could make it or no test
    /// says that it could not, and when some runs have no value, or one that is not finite.
    pub what: &'static str,
    /// The way it goes, whether or not chance made it: `better`, `worse`, `same` or `other`.
    pub toward: &'static str,
}

/// The figure with a name of each run. `places` are where those of the name before were.
fn figures_near<'r>(name: &str, runs: &[&'r Run], places: &mut [usize]) -> Vec<Option<&'r Metric>> {
    runs.iter().zip(places).map(|(run, place)| run.near(name, place)).collect()
}

/// Holds all metrics of two sets of runs against each other.
pub fn compare<R: Borrow<Run>>(base: &[R], new: &[R]) -> Result<Vec<MetricChange>> {
    let base: Vec<&Run> = base.iter().map(Borrow::borrow).collect();
    let new: Vec<&Run> = new.iter().map(Borrow::borrow).collect();
    let (mut names, mut known): (Vec<&str>, BTreeSet<&str>) = Default::default();
    for metric in new.iter().chain(&base).flat_map(|run| &run.metrics) {
        if known.insert(&metric.name) {
            names.push(&metric.name);
        }
    }
    let mut found = Vec::new();
    let (mut base_places, mut new_places) = (vec![0; base.len()], vec![0; new.len()]);
    for name in names {
        let their_figures = figures_near(name, &base, &mut base_places);
        let own_figures = figures_near(name, &new, &mut new_places);
        let (theirs, all_theirs) = values_known(name, &base, &their_figures)?;
        let (own, all_own) = values_known(name, &new, &own_figures)?;
        if theirs.is_empty() && own.is_empty() {
            continue;
        }
        // Of values that are not finite, or of some runs alone, no test says anything.
        let is_whole = all_own && all_theirs && own.iter().chain(&theirs).all(|value| value.is_finite());
        let judged = new.iter().zip(&own_figures).chain(base.iter().zip(&their_figures));
        let sources = judged.filter_map(|(run, figure)| run.source_of(name, *figure)).collect();
        let is_proven = unproven_by(name, sources)?.is_none();
        let chance = chance(&own, &theirs).filter(|_| is_whole && is_proven);
        let definition = definition_of(name)?;
        let toward = toward(definition, median(&theirs), median(&own));
        let is_sure =
            definition.is_some_and(|definition| definition.exact) || chance.is_some_and(|chance| chance <= CHANCE);
        let what = match (median(&theirs), median(&own)) {
            (Some(_), Some(_)) if !is_whole => "unclear",
            (Some(_), Some(_)) if toward != "same" && !is_sure => "unclear",
            _ => toward,
        };
        found.push(MetricChange {
            metric: name.to_owned(),
            base: median(&theirs),
            new: median(&own),
            chance,
            what,
            toward,
        });
    }
    Ok(found)
}

/// The way that a metric goes.
fn toward(definition: Option<&Definition>, base: Option<f64>, new: Option<f64>) -> &'static str {
    let (Some(base), Some(new)) = (base, new) else { return "other" };
    match (definition.map(|definition| definition.better), new > base) {
        _ if new == base => "same",
        (Some(Better::Lower), true) | (Some(Better::Higher), false) => "worse",
        (Some(Better::Lower), false) | (Some(Better::Higher), true) => "better",
        (Some(Better::Neither) | None, _) => "other",
    }
}

#[cfg(test)]
mod tests;
