//! `tracequet stats`: the figures of recordings.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use clap::{Args, ValueEnum};
use tracequet::analyze::check::{LabelTest, Run, latest, runs};
use tracequet::analyze::metrics::{TABLE, definition_of, tables};
use tracequet::analyze::samples::median;
use tracequet::dataset::Dataset;
use tracequet::pipeline::{Convert, StoredDataset, convert};

use super::interrupt;
use super::markdown::{cell, code};
use super::output::{Outcome, print_note, print_result};
use super::stored::{self, OpenDataset, note_damaged};
use super::text::{Columns, clean, count, duration, size};

pub const ABOUT: &str = "\
Shows the figures of a recording or of all recordings of a dataset: pauses, sizes of the heap, allocations, samples, exceptions, \
locks, compiling. docs/METRICS.md says what each is, with its SQL. The exit code is 2 when a recording has losses. \
Of a recording only what the figures need is decoded: what does not fit in other payloads shows in a dataset.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet stats app.nettrace
  tracequet stats lake --latest
  tracequet stats lake --format json | jq '.[] | {trace_id, labels}'";

/// The tables that figures, and what makes runs comparable, are read from.
const NEEDED: [&str; 5] = ["trace", TABLE, "process", "gc", "event_type"];

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
    source.note_what_is_missing()?;
    let format = if args.json { StatsFormat::Json } else { args.format };
    let text = match format {
        StatsFormat::Text => text(&runs),
        StatsFormat::Json => json(&runs)?,
        StatsFormat::Markdown => markdown(&runs),
    };
    Outcome::with_losses(runs.iter().any(|run| run.has_losses)).printed(print_result(&text))
}

/// Where runs come from: a dataset, or a recording that is converted for it.
pub struct Source {
    dataset: Dataset,
    _folder: Option<tempfile::TempDir>,
    _stored: Option<StoredDataset>,
}

impl Source {
    /// Opens the dataset, or converts the recording.
    pub fn open(input: &Path) -> anyhow::Result<Source> {
        if input.is_dir() {
            let dataset = Dataset::open(input)?;
            note_damaged(&dataset, input)?;
            return Ok(Source { dataset, _folder: None, _stored: None });
        }
        if let Some(OpenDataset { dataset, stored }) = stored::dataset(input, &NEEDED)? {
            note_damaged(&dataset, input)?;
            if let Some(stored) = &stored {
                stored.copy_tables_without(TABLE, &tables()?)?;
            }
            return Ok(Source { dataset, _folder: None, _stored: stored });
        }
        interrupt::end_at_interrupt()?;
        let folder = tempfile::tempdir()?;
        interrupt::remove_at_end(folder.path());
        let output = folder.path().join("dataset");
        let mut request = Convert::new([input.to_owned()], &output);
        request.tables = NEEDED.map(str::to_owned).to_vec();
        convert(&request, &mut |_| {})?;
        Ok(Source { dataset: Dataset::open(&output)?, _folder: Some(folder), _stored: None })
    }

    /// Says of which tables there are no figures, where the figures were left out and the tables, too.
    pub fn note_what_is_missing(&self) -> anyhow::Result<()> {
        let has = |name: &str| self.dataset.tables().iter().any(|table| table.name == name);
        let is_whole = has(TABLE) || self.dataset.recordings().is_empty();
        let missing: Vec<&str> = if is_whole { Vec::new() } else { tables()? };
        let missing: Vec<&str> = missing.into_iter().filter(|name| !has(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let all = missing.join(", ");
        print_note(&format!(
            "tracequet: there are no figures of {all}: convert the recordings with the table {TABLE}, or with these\n"
        ))
    }

    /// The runs with these labels.
    pub fn labelled(&self, labels: &[LabelTest]) -> anyhow::Result<Vec<Run>> {
        Ok(runs(&self.dataset, labels, None)?)
    }

    /// The newest run, and those with the same labels.
    pub fn latest(&self) -> anyhow::Result<Vec<Run>> {
        Ok(runs(&self.dataset, &[], Some(&latest(&self.dataset)))?)
    }
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

/// The values of each figure over the runs, in the order of the definitions.
fn rows(runs: &[Run]) -> Vec<(String, Vec<f64>, Option<String>)> {
    let mut order: Vec<String> = Vec::new();
    let mut values: BTreeMap<String, (Vec<f64>, Option<String>)> = BTreeMap::new();
    for metric in runs.iter().flat_map(|run| &run.metrics) {
        if !values.contains_key(&metric.name) {
            order.push(metric.name.clone());
        }
        let row = values.entry(metric.name.clone()).or_default();
        row.0.push(metric.value);
        row.1.clone_from(&metric.worst);
    }
    let row = |name: String| values.remove(&name).map(|(values, worst)| (name, values, worst));
    order.into_iter().filter_map(row).collect()
}

fn cells(runs: &[Run], name: &str, values: &[f64], worst: Option<&str>) -> [String; 5] {
    let shown = |value: Option<f64>| value.map_or_else(String::new, |value| shown(name, value));
    let several = runs.len() > 1;
    let least = values.iter().copied().min_by(f64::total_cmp).filter(|_| several);
    let most = values.iter().copied().max_by(f64::total_cmp).filter(|_| several);
    let note =
        if several { format!("{} of {}", values.len(), runs.len()) } else { worst.unwrap_or_default().to_owned() };
    [clean(name), shown(median(values)), shown(least), shown(most), note]
}

fn text(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let losses = match (run.is_damaged, run.is_failed, run.has_losses) {
            (true, ..) => "  ITS ENTRY IS DAMAGED",
            (false, true, _) => "  COULD NOT BE READ",
            (false, false, true) => "  LOSSES",
            (false, false, false) => "",
        };
        writeln!(out, "{}  {}{losses}", clean(&run.trace_id), clean(&labels.join(" "))).ok();
    }
    let mut columns = Columns::new(&["metric", ">median", ">least", ">most", "where"]);
    for (name, values, worst) in rows(runs) {
        columns.row(cells(runs, &name, &values, worst.as_deref()));
    }
    columns.print(&mut out);
    out
}

fn markdown(runs: &[Run]) -> String {
    let mut out = String::from("| metric | median | least | most | |\n|---|---:|---:|---:|---|\n");
    for (name, values, worst) in rows(runs) {
        let [_, median, least, most, note] = cells(runs, &name, &values, worst.as_deref());
        writeln!(out, "| {} | {median} | {least} | {most} | {} |", code(&name), cell(&note)).ok();
    }
    out
}

fn json(runs: &[Run]) -> anyhow::Result<String> {
    let metric = |metric: &tracequet::analyze::metrics::Metric| {
        let definition = definition_of(&metric.name).ok().flatten();
        serde_json::json!({
            "name": metric.name, "value": metric.value, "unit": definition.map(|d| d.unit.as_str()),
            "observations": metric.observations, "worst": metric.worst,
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
