//! `tracequet stats`: the figures of recordings.

use std::collections::BTreeMap;

use tracequet::analyze::check::{FINGERPRINT_TABLES, Run, latest, runs};
use tracequet::analyze::findings::{self, INFO, WARNING};
use tracequet::analyze::metrics::{Missing, Names, Owner, TABLE, definition_of, tables as metric_tables};
use tracequet::analyze::samples::median;

use super::opened::{self, Opened};
use super::prelude::*;
use super::stored::note_damaged;

pub const ABOUT: &str = "\
Shows the metrics of a recording or of all recordings of a dataset by subject: pauses, sizes of the heap, allocations, samples, exceptions, \
locks, compilations. A subject is marked where `explain` has a finding on it. Figures that were not recorded are left out; \
JSON has them, with the reason. docs/METRICS.md defines each, with its SQL. The exit code is 2 when a recording has losses. \
Only the events that the metrics need are decoded: damaged payloads of other events are found by convert alone.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet stats app.nettrace
  tracequet stats lake --latest
  tracequet stats lake --format json | jq '.[] | {trace_id, labels}'
  tracequet stats lake --latest --bencher scenario > results.json";

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: std::path::PathBuf,
    /// Only the newest recording of a dataset, and those with the same labels
    #[arg(long)]
    pub latest: bool,
    #[command(flatten)]
    pub asked: AskedArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Print the metrics as JSON for Bencher: a benchmark for each value of this label, such as scenario
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["format", "json"])]
    pub bencher: Option<String>,
}

/// Prints the figures. Exit code 2 when a recording has losses.
pub fn run(args: &StatsArgs) -> anyhow::Result<Outcome> {
    let opened = open(&args.input, &[], &args.asked)?;
    let keys = args.latest.then(|| latest(&opened.dataset));
    let mut runs = runs(&opened.dataset, &[], keys.as_deref())?;
    if let Some(key) = args.asked.trace() {
        // One that is not there is an error.
        opened.dataset.recording(Some(key))?;
        runs.retain(|run| run.trace_id == key);
    }
    note_missing_metrics(&opened)?;
    let outcome = Outcome::with_losses(runs.iter().any(|run| run.has_losses));
    match &args.bencher {
        Some(label) => outcome.printed(print_result(&format!("{:#}\n", bencher(&runs, label)))),
        None => args.format.print(&Stats(&runs), outcome),
    }
}

/// Opens the dataset that is asked about, or converts what runs of the recording are made of, and more tables.
pub fn open(input: &Path, more: &[&str], asked: &AskedArgs) -> anyhow::Result<Opened> {
    let needed = || std::iter::once(TABLE).chain(FINGERPRINT_TABLES);
    let more = more.iter().copied().filter(|name| !needed().any(|known| known == *name));
    let tables: Vec<&str> = needed().chain(more).collect();
    // Sampled objects are followed, because the scores of rules are among the metrics.
    let request = asked.request().lifetimes(tracequet::LIFETIMES);
    let opened = opened::open(input, &tables, asked, request)?;
    if !opened.is_converted() {
        note_damaged(&opened.dataset, input)?;
    }
    if let Some(stored) = &opened.stored {
        stored.copy_tables_without(TABLE, &metric_tables()?)?;
    }
    Ok(opened)
}

/// Says of which tables there are no metrics, where the metrics were left out and the tables, too.
pub fn note_missing_metrics(opened: &Opened) -> anyhow::Result<()> {
    let dataset = &opened.dataset;
    let has = |name: &str| dataset.tables().iter().any(|table| table.name == name);
    if has(TABLE) || dataset.recordings().is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = metric_tables()?.into_iter().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let all = missing.join(", ");
    print_note(&format!(
        "tracequet: there are no metrics of {all}: convert the recordings with the table {TABLE}, or with these\n"
    ))
}

/// A value of a metric, in its unit.
pub fn cell_of(metric: &str, value: impl Into<Option<f64>>) -> Cell {
    let unit = definition_of(metric).ok().flatten().map_or("", |definition| definition.unit.as_str());
    Cell::in_unit(value, unit)
}

/// A value in its unit, for a person.
pub fn shown(metric: &str, value: f64) -> String {
    cell_of(metric, value).in_text()
}

/// A subject of metrics: the first part of their names, and the kinds of events whose rules are about it.
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
    Subject { title: "processor", figures: &["cpu"], needs: &["samples", "start"] },
    Subject { title: "exceptions", figures: &["exception"], needs: &["exceptions"] },
    Subject {
        title: "locks and waits",
        figures: &["contention", "wait"],
        needs: &["contentions", "waits", "async_tasks"],
    },
    Subject {
        title: "thread pool",
        figures: &["threadpool"],
        needs: &["workers", "adjustments", "work_items", "pool_counters"],
    },
    Subject { title: "requests", figures: &["request"], needs: &["server_requests", "client_requests", "connections"] },
    Subject { title: "activities and queries", figures: &["activity"], needs: &["queries"] },
    Subject { title: "compilations", figures: &["jit"], needs: &["compilations", "assembly_loads"] },
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

/// The findings in a subject, in any of the runs: the names of rules that warn, and of those that inform.
#[derive(Default)]
struct Marks {
    warnings: Vec<String>,
    infos: Vec<String>,
}

impl Marks {
    /// The marks of each subject.
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
                of_subject.warnings.push(rule.to_owned());
            } else if score >= INFO {
                of_subject.infos.push(rule.to_owned());
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
            // A metric without a subject is shown with the recording.
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

    /// Notes behind the metrics.
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
fn rows<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for metric in runs.into_iter().flat_map(|run| &run.metrics) {
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

/// The metrics of runs in Bencher's format (bencher.dev, Bencher Metric Format): for each value of a label the median of each
/// metric, the least and the most of its runs. Metrics by names, as types, are left out: a measure is there for each.
fn bencher(runs: &[Run], label: &str) -> serde_json::Value {
    let mut benchmarks: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.is_failed) {
        benchmarks.entry(run.labels.get(label).map_or(label, String::as_str)).or_default().push(run);
    }
    let measure = |row: Row| {
        let value = median(&row.values).filter(|value| value.is_finite() && !row.name.contains('['))?;
        let [least, most] = [f64::min, f64::max].map(|of| row.values.iter().copied().fold(value, of));
        Some((row.name, serde_json::json!({"value": value, "lower_value": least, "upper_value": most})))
    };
    let measures = |runs: Vec<&Run>| rows(runs).into_iter().filter_map(measure).collect::<serde_json::Map<_, _>>();
    benchmarks.into_iter().map(|(name, runs)| (name.to_owned(), serde_json::Value::Object(measures(runs)))).collect()
}

/// The metrics of runs.
struct Stats<'r>(&'r [Run]);

impl Answer for Stats<'_> {
    /// The runs, and a table by subjects.
    fn document(&self) -> Document {
        let mut out = Document::default();
        for run in self.0 {
            let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let losses = match (run.is_damaged, run.is_failed, run.has_losses) {
                (true, ..) => "  ITS ENTRY IS DAMAGED",
                (false, true, _) => "  COULD NOT BE READ",
                (false, false, true) => "  LOSSES",
                (false, false, false) => "",
            };
            let id = Sentence::default().text(&run.trace_id);
            let with_labels = if labels.is_empty() { id } else { id.words("  ").text(&labels.join(" ")) };
            out.line(with_labels.words(losses));
        }
        let by_subject = BySubject::of(self.0);
        let columns =
            [words("metric", ""), numbers("median", ""), numbers("least", ""), numbers("most", ""), words("where", "")];
        let mut table = Table::new("metrics", &columns);
        let names = Names::of(by_subject.subjects.iter().flat_map(|(.., rows)| rows).map(|row| row.name.as_str()));
        for (title, marks, rows) in &by_subject.subjects {
            let heading = Sentence::from(*title);
            let marks = marks.words();
            let heading = if marks.is_empty() { heading } else { heading.words(" (").text(&marks).words(")") };
            table.group(heading);
            rows.iter().for_each(|row| table.row(self.cells(row, &names)));
        }
        out.table(table);
        by_subject.notes().into_iter().for_each(|note| out.line(note));
        out
    }

    /// A row for each metric of each run.
    fn rows(&self) -> Table {
        let rows = self.0.iter().flat_map(|run| run.metrics.iter().map(move |metric| (run, metric)));
        table!("metrics", rows, |(run, metric)| {
            let unit = definition_of(&metric.name).ok().flatten().map(|definition| definition.unit.as_str());
            let (scope, process_id) = metric.owner.columns();
        } {
            Column::raw("trace_id") => Cell::text(&run.trace_id),
            Column::raw("name") => Cell::text(&metric.name),
            Column::raw("value") => cell_of(&metric.name, metric.value),
            Column::raw("unit") => Cell::optional(unit),
            Column::raw("missing") => Cell::optional(metric.missing.map(Missing::word)),
            Column::raw("observations") => Cell::count(metric.observations),
            Column::raw("worst") => Cell::optional(metric.worst.as_deref()),
            Column::raw("scope") => Cell::words(scope),
            Column::raw("process_id") => Cell::id(process_id),
            Column::raw("source") => Cell::optional(metric.source.as_deref()),
        })
    }

    /// An array of runs.
    fn json(&self) -> serde_json::Value {
        let run = |run: &Run| {
            serde_json::json!({
                "trace_id": run.trace_id, "start": run.start, "labels": run.labels,
                "has_losses": run.has_losses, "is_failed": run.is_failed, "is_damaged": run.is_damaged,
                "fingerprint": run.fingerprint, "metrics": Stats(std::slice::from_ref(run)).rows().json(),
            })
        };
        self.0.iter().map(run).collect()
    }
}

impl Stats<'_> {
    fn cells(&self, row: &Row, names: &Names<'_>) -> [Cell; 5] {
        let several = self.0.len() > 1;
        let values = &row.values;
        let least = values.iter().copied().min_by(f64::total_cmp).filter(|_| several);
        let most = values.iter().copied().max_by(f64::total_cmp).filter(|_| several);
        let note = match several {
            true => Cell::words(format!("{} of {}", values.len(), self.0.len())),
            false => Cell::text(&row.note),
        };
        let of = |value| cell_of(&row.name, value);
        [Cell::text(&names.shown(&row.name)), of(median(values)), of(least), of(most), note]
    }
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
