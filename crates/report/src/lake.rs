//! A dataset of several recordings as one page: figures over the recordings, and what was found in each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tracequet_analyze::check::{Run, runs};
use tracequet_analyze::findings::title_of;
use tracequet_analyze::kept::Kept;
use tracequet_analyze::metrics::definition_of;
use tracequet_analyze::present::{Amount, Unit, cut};
use tracequet_dataset::read::Dataset;

use crate::document::{Parts, document};
use crate::facts::{FIRST, metric_title, title};
use crate::page::{page_with, verdict_lines};
use crate::prelude::*;
use crate::timeline::{BAND, Line, lines};

/// Recordings in the table, figures that are drawn, rows of a table, and names of labels that figures are distinguished
/// by.
const MAX_RECORDINGS: usize = 1000;
const MAX_CHARTS: usize = 40;
const MAX_ROWS: usize = 200;
const MAX_LABELS: usize = 6;

/// The page of one recording of a dataset, or of all its recordings when it has several and no key is given; with a text at its top,
/// and with what its conversion kept. `input` is where the dataset is.
pub fn page_of(dataset: &Dataset, input: &Path, trace: Option<&str>, verdict: &str, kept: Kept) -> Result<String> {
    if trace.is_none() && dataset.recordings().len() + dataset.failed().len() > 1 {
        let name = input.file_name().map_or_else(|| "dataset".into(), |name| name.to_string_lossy());
        return lake(dataset, &name, verdict);
    }
    page_with(&dataset.recording(trace)?, verdict, kept)
}

/// Makes the page of all recordings of a dataset, with a text above its parts, such as the result of a check.
pub fn lake(dataset: &Dataset, name: &str, verdict: &str) -> Result<String> {
    let mut all = runs(dataset, &[], None)?;
    all.sort_by(|a, b| (&a.start, &a.trace_id).cmp(&(&b.start, &b.trace_id)));
    let failed = all.iter().filter(|run| run.is_failed).count();
    let read: Vec<&Run> = all.iter().filter(|run| !run.is_failed).collect();
    let mut parts = Parts::default();
    if !verdict.is_empty() {
        parts.add("verdict", "Check", format!("<pre>{}</pre>\n", verdict_lines(verdict)));
    }
    let found = findings(dataset)?;
    parts.add_or(
        "findings",
        "Findings",
        found_part(&found),
        "No rule found anything to look at, or the dataset has no table <code>finding</code>.",
    );
    parts.add_or("trends", "Trends", trends(&read), "No figure is known of several recordings.");
    parts.add_or("labels", "By label", by_label(&read), "The recordings have no label with several values: <code>tracequet convert --label branch=main</code> sets one.");
    parts.add("recordings", "Recordings", recordings(&all, &found));
    parts.add_missing();
    let mut head = String::from("<dl class=\"facts\">\n");
    let starts = || read.iter().map(|run| run.start.as_str()).filter(|start| is_known(start));
    let (first, last) = (starts().next().unwrap_or_default(), starts().next_back().unwrap_or_default());
    for (name, value) in [
        ("Recordings", count(all.len() as u64)),
        ("First", moment(first)),
        ("Last", moment(last)),
        ("With losses", count(read.iter().filter(|run| run.has_losses).count() as u64)),
        ("Not readable", count(failed as u64)),
    ] {
        if !value.is_empty() {
            writeln!(head, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value)).ok();
        }
    }
    head.push_str("</dl>\n");
    Ok(document(name, &head, parts.parts))
}

tracequet_dataset::row! {
    struct FindingRow of finding { rule, verdict, score }
}

/// Of each recording its rules with a warning or a hint, and their scores.
type Found = BTreeMap<String, Vec<(String, String, f64)>>;

fn findings(dataset: &Dataset) -> Result<Found> {
    let mut found = Found::new();
    for recording in dataset.each_recording() {
        recording.each_recorded::<FindingRow<'_>>(|row| {
            if matches!(row.verdict, "warning" | "info") {
                let of = found.entry(recording.info().trace_id.clone()).or_default();
                if of.len() < MAX_ROWS {
                    of.push((row.rule.to_owned(), row.verdict.to_owned(), row.score.unwrap_or_default()));
                }
            }
        })?;
    }
    Ok(found)
}

/// Whether a recording says when it was made. One that does not has the start 1970-01-01T00:00:00.
fn is_known(start: &str) -> bool {
    !start.is_empty() && !start.starts_with("1970-01-01T00:00:00")
}

/// A moment as other pages have it: `2026-11-21 01:42:42 UTC` of `2026-11-21T01:42:42.601Z`.
fn moment(start: &str) -> String {
    match start.strip_suffix('Z').and_then(|start| start.split_once('T')) {
        Some((day, time)) => format!("{day} {} UTC", time.split_once('.').map_or(time, |(time, _)| time)),
        None => start.to_owned(),
    }
}

fn found_part(found: &Found) -> Option<String> {
    let mut rules: BTreeMap<&str, (u64, u64, f64, &str)> = BTreeMap::new();
    for (recording, of) in found {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (rule, verdict, score) in of {
            let sum = rules.entry(rule).or_insert((0, 0, -1.0, ""));
            if seen.insert(rule) {
                sum.0 += 1;
            }
            sum.1 += u64::from(verdict == "warning");
            if *score > sum.2 {
                (sum.2, sum.3) = (*score, recording);
            }
        }
    }
    if rules.is_empty() {
        return None;
    }
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by(|(_, a), (_, b)| b.2.total_cmp(&a.2));
    let table = table!("findings-table", rules, |(rule, (recordings, warnings, score, worst))| {
        words("rule", "docs/FINDINGS.md has them") => Cell::text(title_of(rule)),
        numbers("recordings", "In which it found something") => Cell::count(recordings),
        numbers("warnings", "How often it was a warning") => Cell::count(warnings),
        numbers("highest score", "From 0 to 100; from 75 on a warning") => Cell::number(Some(score), Unit::Score),
        words("worst in", "The recording with that score") => Cell::text(worst),
    });
    Some(table.html("Findings of all recordings"))
}

fn unit(metric: &str) -> String {
    definition_of(metric).ok().flatten().map_or_else(String::new, |definition| definition.unit.clone())
}

fn value_of(run: &Run, metric: &str) -> Option<f64> {
    run.metrics.iter().find(|found| found.name == metric)?.value.filter(|value| value.is_finite())
}

/// The quartiles and the median of some values.
fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| {
        let rank = (values.len() * part).div_ceil(4).max(1) - 1;
        values.get(rank).copied().unwrap_or_default()
    };
    [at(1), at(2), at(3)]
}

/// Each figure over the recordings, with the middle half of its values as a band.
fn trends(read: &[&Run]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let others = read.iter().flat_map(|run| &run.metrics).map(|metric| metric.name.as_str());
    for name in FIRST.into_iter().chain(others.filter(|name| !name.contains('['))) {
        if known.insert(name) && read.iter().filter(|run| value_of(run, name).is_some()).count() > 1 {
            names.push(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut charts = String::new();
    let table = table!("trends-table", names.iter().take(MAX_ROWS).enumerate(), |(place, name)| {
        let unit = unit(name);
        let points: Vec<(i64, f64)> =
            read.iter().enumerate().filter_map(|(at, run)| Some((at as i64, value_of(run, name)?))).collect();
        let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
        let known = points.len() as u64;
        let [low, median, high] = quartiles(&mut values);
        let last = points.last().map_or(0.0, |(_, value)| *value);
        let number = |value: f64| Cell::in_unit(value, &unit);
        let differs = values.first().zip(values.last()).is_some_and(|(least, most)| least < most);
        if place < MAX_CHARTS && differs {
            let is_out = if last < low || last > high { ", outside of the band" } else { "" };
            let words = format!(
                "{} to {} in the middle half; the last {}{is_out}",
                Amount::in_unit(low, &unit),
                Amount::in_unit(high, &unit),
                Amount::in_unit(last, &unit)
            );
            let ends = |value: f64| vec![(0, value), (read.len() as i64 - 1, value)];
            let band = |value: f64| Line { class: BAND, points: ends(value), is_step: true, ..Line::default() };
            let line = Line { class: "c0", unit: unit.clone(), points, ..Line::default() };
            charts += &lines(&title(name), &words, read.len() as i64 - 1, None, &[band(low), band(high), line], &[]);
        }
    } {
        words("figure", "What it says") => Cell::text(&title(name)),
        numbers("recordings", "That have it") => Cell::count(known),
        numbers("lower quartile", "A quarter of the values is at most this") => number(low),
        numbers("median", "Half of the values are at most this") => number(median),
        numbers("upper quartile", "Three quarters of the values are at most this") => number(high),
        numbers("last", "Of the newest recording") => number(last),
        words("name", "As rules of check name it; docs/METRICS.md has the definition of each") => Cell::text(name),
    });
    let charts = charts.replace("class=\"plot\"", "class=\"plot fixed\"");
    Some(format!(
        "<p class=\"note\">Recordings from left to right, the oldest first. Between the two grey lines lies the middle half of all values.</p>\n\
         <div class=\"lanes small\">\n{charts}</div>\n<details><summary>All as a table</summary>\n{}</details>\n",
        table.html("Figures of all recordings")
    ))
}

/// Medians of the first figures by the values of labels.
fn by_label(read: &[&Run]) -> Option<String> {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&Run>>> = BTreeMap::new();
    for run in read {
        for (name, value) in &run.labels {
            values.entry(name).or_default().entry(value).or_default().push(run);
        }
    }
    values.retain(|_, of| of.len() > 1 && of.len() <= MAX_ROWS);
    if values.is_empty() {
        return None;
    }
    let metrics: Vec<&str> =
        FIRST.into_iter().filter(|name| read.iter().any(|run| value_of(run, name).is_some())).collect();
    let mut out = String::new();
    for (place, (name, of)) in values.iter().take(MAX_LABELS).enumerate() {
        let mut heads = vec![words("value", "Of the label"), numbers("recordings", "With it")];
        heads.extend(metrics.iter().map(|metric| numbers(metric_title(metric), "The median of these recordings")));
        let mut table = Table::new(format!("label-{place}-table"), &heads);
        for (value, runs) in of {
            let mut cells = vec![Cell::text(value), Cell::count(runs.len() as u64)];
            cells.extend(metrics.iter().map(|metric| {
                let mut found: Vec<f64> = runs.iter().filter_map(|run| value_of(run, metric)).collect();
                if found.is_empty() {
                    return Cell::Missing;
                }
                let [_, median, _] = quartiles(&mut found);
                Cell::in_unit(median, &unit(metric))
            }));
            table.row(cells);
        }
        write!(out, "<h3>{}</h3>\n{}", escaped(name), table.html(&format!("Figures by {name}"))).ok();
    }
    Some(out)
}

fn recordings(all: &[Run], found: &Found) -> String {
    let table = table!("recordings-table", all.iter().take(MAX_RECORDINGS), |run| {
        let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let state = match (run.is_failed, run.has_losses) {
            (true, _) => "not readable",
            (_, true) => "losses",
            _ => "whole",
        };
        let mut of: Vec<&(String, String, f64)> = found.get(&run.trace_id).into_iter().flatten().collect();
        of.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        let warnings = of.iter().filter(|(_, verdict, _)| verdict == "warning").count();
        let rules: Vec<&str> = of.iter().take(3).map(|(rule, ..)| title_of(rule)).collect();
    } {
        words("recording", "Its name in the dataset") => Cell::text(cut(&run.trace_id, 200)),
        words("start", "When it began") => Cell::optional(is_known(&run.start).then(|| moment(&run.start)).as_deref()),
        words("labels", "That it was converted with") => Cell::text(&labels.join(", ")),
        words("state", "Whether anything is missing in it") => Cell::text(state),
        numbers("warnings", "Of the rules") => Cell::count(Some(warnings as u64).filter(|_| !run.is_failed)),
        words("findings", "Those of the highest scores") => Cell::text(&rules.join(", ")),
    });
    let note = if all.len() > MAX_RECORDINGS { format!("The first {MAX_RECORDINGS} of them. ") } else { String::new() };
    format!(
        "<p class=\"note\">{note}<code>tracequet report LAKE --trace RECORDING</code> makes the page of one.</p>\n{}",
        table.html("Recordings")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_on_other_pages() {
        assert_eq!(moment("2026-11-21T01:42:42.601Z"), "2026-11-21 01:42:42 UTC");
        assert_eq!(moment("2026-11-21T01:42:42Z"), "2026-11-21 01:42:42 UTC");
        assert_eq!((moment(""), moment("about noon")), (String::new(), "about noon".to_owned()));
    }
}
