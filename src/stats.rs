//! `tracequet stats`: the figures of recordings.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use clap::{Args, ValueEnum};
use tracequet::analyze::check::{FINGERPRINT_TABLES, LabelTest, Run, latest, runs};
use tracequet::analyze::findings::{self, INFO, WARNING};
use tracequet::analyze::metrics::{Missing, Owner, TABLE, definition_of, tables};
use tracequet::analyze::samples::median;

use super::markdown::code;
use super::names::Names;
use super::opened::{self, Opened};
use super::output::{Outcome, print_note, print_result};
use super::stored::note_damaged;
use super::terminal;
use super::text::{Columns, clean, count, duration, shortened, size, wrapped};

pub const ABOUT: &str = "\
Shows the metrics of a recording or of all recordings of a dataset by subject: pauses, sizes of the heap, allocations, samples, exceptions, \
locks, compilations. A subject is marked where `explain` has a finding on it. Figures that were not recorded are left out; \
JSON has them, with the reason. docs/METRICS.md defines each, with its SQL. The exit code is 2 when a recording has losses. \
Only the events that the metrics need are decoded: damaged payloads of other events are found by convert alone.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet stats app.nettrace
  tracequet stats lake --latest
  tracequet stats lake --format json | jq '.[] | {trace_id, labels}'";

/// The tables that figures, and what makes runs comparable, are read from.
fn needed() -> Vec<&'static str> {
    std::iter::once(TABLE).chain(FINGERPRINT_TABLES).collect()
}

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: std::path::PathBuf,
    /// Only the newest recording of a dataset, and those with the same labels
    #[arg(long)]
    pub latest: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = StatsFormat::Text)]
    pub format: StatsFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// For reading
    Text,
    /// For programs: an array of recordings
    Json,
    /// For documents and job summaries
    Markdown,
}

/// Prints the figures. Exit code 2 when a recording has losses.
pub fn run(args: &StatsArgs) -> anyhow::Result<Outcome> {
    let source = Source::open(&args.input)?;
    let runs = if args.latest { source.latest()? } else { source.labelled(&[])? };
    note_missing_metrics(&source.0)?;
    let format = if args.json { StatsFormat::Json } else { args.format };
    let text = match format {
        StatsFormat::Text => text(&runs, terminal::width()),
        StatsFormat::Json => json(&runs)?,
        StatsFormat::Markdown => markdown(&runs),
    };
    Outcome::with_losses(runs.iter().any(|run| run.has_losses)).printed(print_result(&text))
}

/// Where runs come from: a dataset, or a recording that is converted for it.
pub struct Source(Opened);

impl Source {
    /// Opens the dataset, or converts the recording.
    pub fn open(input: &Path) -> anyhow::Result<Source> {
        Source::open_with(input, &[])
    }

    /// The same with more tables, where IN is a recording.
    pub fn open_with(input: &Path, more: &[&str]) -> anyhow::Result<Source> {
        let mut needed = needed();
        needed.extend(more.iter().filter(|name| **name != TABLE && !FINGERPRINT_TABLES.contains(name)));
        let opened = opened::open_measured(input, &needed)?;
        if !opened.is_converted() {
            note_damaged(&opened.dataset, input)?;
        }
        if let Some(stored) = &opened.stored {
            stored.copy_tables_without(TABLE, &tables()?)?;
        }
        Ok(Source(opened))
    }

    /// The dataset.
    pub fn dataset(&self) -> &tracequet::dataset::read::Dataset {
        &self.0.dataset
    }

    /// The runs with these labels.
    pub fn labelled(&self, labels: &[LabelTest]) -> anyhow::Result<Vec<Run>> {
        Ok(runs(&self.0.dataset, labels, None)?)
    }

    /// The newest run, and those with the same labels.
    pub fn latest(&self) -> anyhow::Result<Vec<Run>> {
        Ok(runs(&self.0.dataset, &[], Some(&latest(&self.0.dataset)))?)
    }
}

/// Says of which tables there are no metrics, where the metrics were left out and the tables, too.
pub fn note_missing_metrics(opened: &Opened) -> anyhow::Result<()> {
    let dataset = &opened.dataset;
    let has = |name: &str| dataset.tables().iter().any(|table| table.name == name);
    if has(TABLE) || dataset.recordings().is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = tables()?.into_iter().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let all = missing.join(", ");
    print_note(&format!(
        "tracequet: there are no metrics of {all}: convert the recordings with the table {TABLE}, or with these\n"
    ))
}

/// A value in its unit, for a person.
pub fn shown(metric: &str, value: f64) -> String {
    let unit = definition_of(metric).ok().flatten().map_or("", |definition| definition.unit.as_str());
    match unit {
        "ns" => duration(value as i64),
        "bytes" => size(value as u64),
        "bytes/s" => format!("{}/s", size(value as u64)),
        "share" => format!("{:.2} %", value * 100.0),
        "count" if value.fract() == 0.0 => count(value as u64),
        _ => format!("{value:.1}"),
    }
}

/// What figures are about: the first part of their names, and the kinds of events whose rules are about it.
struct Subject {
    title: &'static str,
    figures: &'static [&'static str],
    needs: &'static [&'static str],
}

/// The subjects in their order.
const SUBJECTS: &[Subject] = &[
    // Rules without events of a kind are about the recording itself.
    Subject { title: "recording", figures: &["recording", "lost"], needs: &[] },
    Subject {
        title: "collector",
        figures: &["gc", "heap"],
        needs: &["collections", "pauses", "heap_sizes", "survivals", "allocation_waits"],
    },
    Subject { title: "allocations", figures: &["allocation"], needs: &["allocations"] },
    Subject { title: "processor", figures: &["cpu"], needs: &["samples"] },
    Subject { title: "exceptions", figures: &["exception"], needs: &["exceptions"] },
    Subject { title: "locks and waits", figures: &["contention", "wait"], needs: &["contentions", "waits"] },
    Subject { title: "thread pool", figures: &["threadpool"], needs: &["workers", "adjustments", "work_items"] },
    Subject { title: "requests", figures: &["request"], needs: &["server_requests", "client_requests"] },
    Subject { title: "activities and queries", figures: &["activity"], needs: &["queries"] },
    Subject { title: "compilations", figures: &["jit"], needs: &["compilations"] },
    Subject { title: "counters", figures: &["counter"], needs: &[] },
];

/// The scores of findings: they are shown as marks of subjects, not as figures.
const SCORES: &str = "finding";

/// The subject of a figure, by its name.
fn subject_of(metric: &str) -> Option<usize> {
    let first = metric.split('.').next().unwrap_or_default();
    SUBJECTS.iter().position(|subject| subject.figures.contains(&first))
}

/// The subject of a rule: that of the first kind of events that it needs.
fn subject_of_rule(rule: &str) -> usize {
    let needs = findings::rule(rule).map_or(&[][..], |rule| rule.needs);
    let of_need = |need: &&str| SUBJECTS.iter().position(|subject| subject.needs.contains(need));
    needs.iter().find_map(of_need).unwrap_or_default()
}

/// What rules found in a subject, in any of the runs: the names of those that warn, and of those of interest.
#[derive(Default)]
struct Marks {
    warnings: Vec<String>,
    infos: Vec<String>,
}

impl Marks {
    /// Those of each subject.
    fn of(runs: &[Run]) -> Vec<Marks> {
        let mut highest: Vec<(&str, f64)> = Vec::new();
        for metric in runs.iter().flat_map(|run| &run.metrics) {
            let rule = metric.name.strip_prefix("finding.score[").and_then(|rest| rest.strip_suffix(']'));
            let Some((rule, score)) = rule.zip(metric.value) else { continue };
            match highest.iter_mut().find(|(known, _)| *known == rule) {
                Some((_, known)) => *known = known.max(score),
                None => highest.push((rule, score)),
            }
        }
        highest.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut marks: Vec<Marks> = SUBJECTS.iter().map(|_| Marks::default()).collect();
        for (rule, score) in highest {
            let Some(of_subject) = marks.get_mut(subject_of_rule(rule)) else { continue };
            if score >= WARNING {
                of_subject.warnings.push(clean(rule));
            } else if score >= INFO {
                of_subject.infos.push(clean(rule));
            }
        }
        marks
    }

    fn is_empty(&self) -> bool {
        self.warnings.is_empty() && self.infos.is_empty()
    }

    /// `warning: long_pause, pause_share; info: induced`.
    fn words(&self) -> String {
        let part = |word: &str, names: &[String]| (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")));
        let parts = [part("warning", &self.warnings), part("info", &self.infos)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// The figures that were recorded by subject, and the titles of the subjects of which nothing was.
struct BySubject {
    subjects: Vec<(&'static str, Marks, Vec<Row>)>,
    not_recorded: Vec<&'static str>,
}

impl BySubject {
    fn of(runs: &[Run]) -> BySubject {
        let mut groups: Vec<Vec<Row>> = SUBJECTS.iter().map(|_| Vec::new()).collect();
        for row in rows(runs).into_iter().filter(|row| !row.values.is_empty() && !row.name.starts_with(SCORES)) {
            // What has no subject is shown with the recording.
            if let Some(group) = groups.get_mut(subject_of(&row.name).unwrap_or_default()) {
                group.push(row);
            }
        }
        let is_missing = |title| {
            let of = |name: &str| subject_of(name).and_then(|at| SUBJECTS.get(at)).is_some_and(|s| s.title == title);
            runs.iter().flat_map(|run| &run.metrics).any(|metric| of(&metric.name) && metric.value.is_none())
        };
        let (mut subjects, mut not_recorded) = (Vec::new(), Vec::new());
        for ((subject, marks), rows) in SUBJECTS.iter().zip(Marks::of(runs)).zip(groups) {
            if !rows.is_empty() || !marks.is_empty() {
                subjects.push((subject.title, marks, rows));
            } else if is_missing(subject.title) {
                not_recorded.push(subject.title);
            }
        }
        BySubject { subjects, not_recorded }
    }

    /// What is said behind the figures.
    fn notes(&self) -> Vec<String> {
        let marked = self.subjects.iter().any(|(_, marks, _)| !marks.is_empty());
        let explain =
            marked.then(|| "`tracequet explain` says what the findings mean, and shows their evidence".to_owned());
        let none = (!self.not_recorded.is_empty()).then(|| format!("not recorded: {}", self.not_recorded.join(", ")));
        none.into_iter().chain(explain).collect()
    }
}

/// A figure over the runs: its values, and where to look.
#[derive(Default)]
struct Row {
    name: String,
    values: Vec<f64>,
    note: String,
}

/// The figures in the order of the definitions. Of several by names there is no row when there are none.
fn rows(runs: &[Run]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for metric in runs.iter().flat_map(|run| &run.metrics) {
        let has_keys = definition_of(&metric.name).ok().flatten().is_some_and(|definition| definition.has_keys());
        if metric.value.is_none() && has_keys {
            continue;
        }
        let place = *places.entry(&metric.name).or_insert_with(|| {
            rows.push(Row { name: metric.name.clone(), ..Row::default() });
            rows.len() - 1
        });
        let Some(row) = rows.get_mut(place) else { continue };
        row.values.extend(metric.value);
        let source = metric.source.as_deref().unwrap_or_default();
        let owner = if metric.owner == Owner::Machine { "of several processes" } else { "" };
        let parts = [metric.worst.as_deref().unwrap_or_default(), source, owner];
        row.note = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    }
    rows
}

fn cells(runs: &[Run], row: &Row) -> [String; 5] {
    let shown = |value: Option<f64>| value.map_or_else(String::new, |value| shown(&row.name, value));
    let several = runs.len() > 1;
    let values = &row.values;
    let least = values.iter().copied().min_by(f64::total_cmp).filter(|_| several);
    let most = values.iter().copied().max_by(f64::total_cmp).filter(|_| several);
    let note = if several { format!("{} of {}", values.len(), runs.len()) } else { row.note.clone() };
    [clean(&row.name), shown(median(values)), shown(least), shown(most), note]
}

/// For reading, in lines of at most `width` characters.
fn text(runs: &[Run], width: usize) -> String {
    let mut out = String::new();
    for run in runs {
        let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let losses = match (run.is_damaged, run.is_failed, run.has_losses) {
            (true, ..) => "  ITS ENTRY IS DAMAGED",
            (false, true, _) => "  COULD NOT BE READ",
            (false, false, true) => "  LOSSES",
            (false, false, false) => "",
        };
        let (id, labels) = (clean(&run.trace_id), clean(&labels.join(" ")));
        let rest = if labels.is_empty() { losses.to_owned() } else { format!("  {labels}{losses}") };
        if id.chars().count() + rest.chars().count() <= width {
            writeln!(out, "{id}{rest}").ok();
        } else {
            // The key is what --trace takes: it is shown whole.
            writeln!(out, "{id}\n    {}{}", shortened(&labels, width.saturating_sub(4 + losses.len())), losses).ok();
        }
    }
    let by_subject = BySubject::of(runs);
    let mut columns = Columns::new(&["metric", ">median", ">least", ">most", "where"]).fitting(&[0, 4], 0);
    let rows = || by_subject.subjects.iter().flat_map(|(.., rows)| rows);
    let names = Names::of(rows().map(|row| row.name.as_str()));
    for row in rows() {
        let [_, median, least, most, note] = cells(runs, row);
        columns.row([clean(&names.shown(&row.name)), median, least, most, clean(&note)]);
    }
    let mut table = String::new();
    columns.print_within(width, &mut table);
    // A line for the heads, and one for each figure.
    let mut lines = table.lines();
    writeln!(out, "{}", lines.next().unwrap_or_default()).ok();
    for (title, marks, rows) in &by_subject.subjects {
        let words = marks.words();
        let heading = if words.is_empty() { (*title).to_owned() } else { format!("{title} ({words})") };
        wrapped(&heading, width).for_each(|line| writeln!(out, "{line}").unwrap_or_default());
        lines.by_ref().take(rows.len()).for_each(|line| writeln!(out, "{line}").unwrap_or_default());
    }
    for note in by_subject.notes() {
        wrapped(&note, width).for_each(|line| writeln!(out, "{line}").unwrap_or_default());
    }
    out
}

fn markdown(runs: &[Run]) -> String {
    let mut out = String::from("| metric | median | least | most | |\n|---|---:|---:|---:|---|\n");
    let by_subject = BySubject::of(runs);
    for (title, marks, rows) in &by_subject.subjects {
        let words = marks.words();
        let words = if words.is_empty() { words } else { code(&words) };
        writeln!(out, "| **{title}** | | | | {words} |").ok();
        for row in rows {
            let [name, median, least, most, note] = cells(runs, row);
            let note = if note.is_empty() { note } else { code(&note) };
            writeln!(out, "| {} | {median} | {least} | {most} | {note} |", code(&name)).ok();
        }
    }
    for note in by_subject.notes() {
        writeln!(out, "\n{note}").ok();
    }
    out
}

fn json(runs: &[Run]) -> anyhow::Result<String> {
    let metric = |metric: &tracequet::analyze::metrics::Metric| {
        let definition = definition_of(&metric.name).ok().flatten();
        let (scope, process_id) = metric.owner.columns();
        serde_json::json!({
            "name": metric.name, "value": metric.value, "unit": definition.map(|d| d.unit.as_str()),
            "missing": metric.missing.map(Missing::word), "observations": metric.observations, "worst": metric.worst,
            "scope": scope, "process_id": process_id, "source": metric.source,
        })
    };
    let run = |run: &Run| {
        serde_json::json!({
            "trace_id": run.trace_id, "start": run.start, "labels": run.labels,
            "has_losses": run.has_losses, "is_failed": run.is_failed, "is_damaged": run.is_damaged,
            "fingerprint": run.fingerprint, "metrics": run.metrics.iter().map(metric).collect::<Vec<_>>(),
        })
    };
    Ok(serde_json::to_string_pretty(&runs.iter().map(run).collect::<Vec<_>>())? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracequet::analyze::metrics::definitions;

    #[test]
    fn every_figure_and_every_rule_has_a_subject() {
        let figures = definitions().unwrap();
        assert!(figures.len() > 40);
        for definition in figures.iter().filter(|definition| !definition.name.starts_with(SCORES)) {
            assert!(subject_of(&definition.name).is_some(), "{}", definition.name);
        }
        for rule in findings::rules() {
            let (rule, needs) = (rule.name, rule.needs);
            let known = needs.iter().all(|need| SUBJECTS.iter().any(|subject| subject.needs.contains(need)));
            assert!(known, "{rule} needs {needs:?}");
            assert_eq!(subject_of_rule(rule) == 0, needs.is_empty(), "{rule}");
        }
        let subject = |rule: &str| SUBJECTS[subject_of_rule(rule)].title;
        assert_eq!(
            ["long_pause", "lock_convoy", "n_plus_one", "lost_events"].map(subject),
            ["collector", "locks and waits", "activities and queries", "recording"]
        );
    }
}
