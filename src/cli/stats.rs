//! `tracequet stats`: the figures of recordings.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::analyze::check::{LabelTest, Run, latest, runs};
use crate::analyze::metrics::{Missing, Owner, TABLE, definition_of, tables};
use crate::analyze::samples::median;
use clap::{Args, ValueEnum};

use super::markdown::code;
use super::names::Names;
use super::opened::{self, Opened};
use super::output::{Outcome, print_note, print_result};
use super::stored::note_damaged;
use super::terminal;
use super::text::{Columns, clean, count, duration, shortened, size};

pub const ABOUT: &str = "\
Shows the metrics of a recording or of all recordings of a dataset: pauses, sizes of the heap, allocations, samples, exceptions, \
locks, compilations. docs/METRICS.md defines each, with its SQL. The exit code is 2 when a recording has losses. \
Only the events that the metrics need are decoded: damaged payloads of other events are found by convert alone.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet stats app.nettrace
  tracequet stats lake --latest
  tracequet stats lake --format json | jq '.[] | {trace_id, labels}'";

/// The tables that figures, and what makes runs comparable, are read from.
const NEEDED: [&str; 6] = ["trace", TABLE, "process", "gc", "event_type", "session_provider"];

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
        let opened = opened::open(input, &NEEDED)?;
        if !opened.is_converted() {
            note_damaged(&opened.dataset, input)?;
        }
        if let Some(stored) = &opened.stored {
            stored.copy_tables_without(TABLE, &tables()?)?;
        }
        Ok(Source(opened))
    }

    /// Says of which tables there are no figures, where the figures were left out and the tables, too.
    pub fn note_what_is_missing(&self) -> anyhow::Result<()> {
        let dataset = &self.0.dataset;
        let has = |name: &str| dataset.tables().iter().any(|table| table.name == name);
        let is_whole = has(TABLE) || dataset.recordings().is_empty();
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
        Ok(runs(&self.0.dataset, labels, None)?)
    }

    /// The newest run, and those with the same labels.
    pub fn latest(&self) -> anyhow::Result<Vec<Run>> {
        Ok(runs(&self.0.dataset, &[], Some(&latest(&self.0.dataset)))?)
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

/// A figure over the runs: its values, and where to look or why there are none.
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
        let missing = match metric.missing {
            Some(Missing::NotAsked) => "not recorded",
            Some(Missing::NotSeen) => "no such event",
            Some(_) | None => "",
        };
        let parts = [metric.worst.as_deref().unwrap_or_default(), source, owner, missing];
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
    let median = if values.is_empty() { "-".to_owned() } else { shown(median(values)) };
    [clean(&row.name), median, shown(least), shown(most), note]
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
    let mut columns = Columns::new(&["metric", ">median", ">least", ">most", "where"]).fitting(&[0, 4], 0);
    let rows = rows(runs);
    let names = Names::of(rows.iter().map(|row| row.name.as_str()));
    for row in &rows {
        let [_, median, least, most, note] = cells(runs, row);
        columns.row([clean(&names.shown(&row.name)), median, least, most, clean(&note)]);
    }
    columns.print_within(width, &mut out);
    out
}

fn markdown(runs: &[Run]) -> String {
    let mut out = String::from("| metric | median | least | most | |\n|---|---:|---:|---:|---|\n");
    for row in rows(runs) {
        let [name, median, least, most, note] = cells(runs, &row);
        let note = if note.is_empty() { note } else { code(&note) };
        writeln!(out, "| {} | {median} | {least} | {most} | {note} |", code(&name)).ok();
    }
    out
}

fn json(runs: &[Run]) -> anyhow::Result<String> {
    let metric = |metric: &crate::analyze::metrics::Metric| {
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
