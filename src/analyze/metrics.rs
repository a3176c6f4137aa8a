//! Figures of a recording, such as the 99th percentile of its pauses, by the definitions of `schemas/metrics.toml`.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use arrow_array::RecordBatch;
use serde::Deserialize;

use super::held;
use crate::dataset::{Column, Recording};
use crate::error::{Error, Result};

/// Figures of one metric with `by`.
const MOST_OF_ONE: usize = 20;

/// What a figure is.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Definition {
    /// Name, such as `gc.pause.p99`.
    pub name: String,
    /// `ns`, `bytes`, `count`, `share`, `bytes/s`.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// Table and column.
    of: String,
    /// Only rows with these values.
    #[serde(rename = "where", default)]
    only: BTreeMap<String, String>,
    take: Take,
    /// The column whose values have a figure each.
    #[serde(default)]
    by: Option<String>,
    /// The column that says where the largest value is.
    #[serde(default)]
    worst: Option<String>,
    /// Whether runs repeat it exactly.
    #[serde(default)]
    pub exact: bool,
    /// One sentence.
    pub doc: String,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Take {
    Count,
    Sum,
    Max,
    P50,
    P99,
    PerSecond,
    Share,
}

impl Take {
    /// Whether it needs all values at a time.
    fn keeps(self) -> bool {
        matches!(self, Take::P50 | Take::P99)
    }
}

/// One figure of one recording.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// Name, such as `gc.pause.p99` or `allocation.by_type[System.String]`.
    pub name: String,
    /// The value, in the unit of its definition.
    pub value: f64,
    /// Rows that it was made from.
    pub observations: u64,
    /// Where to look: `gc_id = 17` of the largest value.
    pub worst: Option<String>,
}

/// All definitions, in their order. The error is a defect of the shipped file.
pub fn definitions() -> Result<&'static [Definition]> {
    #[derive(Deserialize)]
    struct File {
        metric: Vec<Definition>,
    }
    static ALL: OnceLock<std::result::Result<Vec<Definition>, String>> = OnceLock::new();
    let parse = || {
        let file: File = toml::from_str(include_str!("../../schemas/metrics.toml")).map_err(|e| e.to_string())?;
        Ok(file.metric)
    };
    ALL.get_or_init(parse).as_deref().map_err(|e| Error::Internal(e.clone()))
}

/// The definition of a figure, by its name with or without what stands in brackets.
pub fn definition_of(name: &str) -> Result<Option<&'static Definition>> {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    Ok(definitions()?.iter().find(|definition| definition.name == name))
}

impl Definition {
    fn table(&self) -> (&str, &str) {
        self.of.split_once('.').unwrap_or((&self.of, ""))
    }

    /// The query that gives the same, in DuckDB with the `views.sql` of a dataset: columns `trace_id`, with `by` the
    /// value, the figure, and its rows.
    pub fn sql(&self) -> String {
        let (table, column) = self.table();
        let seconds = "(SELECT max(duration_ns) FROM trace t WHERE t.trace_id = r.trace_id)";
        let figure = match self.take {
            Take::Count => "count(*)".to_owned(),
            Take::Sum => format!("coalesce(sum({column}), 0)"),
            Take::Max => format!("max({column})"),
            Take::P50 => format!("quantile_disc({column}, 0.5)"),
            Take::P99 => format!("quantile_disc({column}, 0.99)"),
            Take::PerSecond => format!("coalesce(sum({column}), 0) / ({seconds} / 1e9)"),
            Take::Share => format!("coalesce(sum({column}), 0) / {seconds}"),
        };
        let only: Vec<String> = self.only.iter().map(|(column, value)| format!("{column} = '{value}'")).collect();
        let only = if only.is_empty() { String::new() } else { format!("\nWHERE {}", only.join(" AND ")) };
        let (by, least) = match &self.by {
            Some(by) => (format!(", coalesce({by}, '') AS \"value\""), "ALL"),
            None => (String::new(), "trace_id"),
        };
        format!(
            "SELECT trace_id{by}, {figure} AS figure, count({column}) AS observations\nFROM {table} r{only}\nGROUP BY {least}"
        )
    }
}

/// What is seen of the rows of one metric, or of one value of its column `by`.
#[derive(Clone, Debug, Default)]
struct Seen {
    rows: u64,
    values: Vec<f64>,
    sum: f64,
    max: Option<(f64, Option<u64>)>,
}

impl Seen {
    fn add(&mut self, value: Option<f64>, worst: Option<u64>, keeps: bool) {
        self.rows += 1;
        let Some(value) = value else { return };
        self.sum += value;
        if keeps {
            self.values.push(value);
        }
        if self.max.is_none_or(|(max, _)| value > max) {
            self.max = Some((value, worst));
        }
    }

    fn take(&mut self, take: Take, duration_ns: f64) -> Option<f64> {
        let mut quantile = |q: f64| {
            let place = ((q * self.values.len() as f64).ceil() as usize).saturating_sub(1);
            self.values.sort_by(f64::total_cmp);
            self.values.get(place).copied()
        };
        match take {
            Take::Count => Some(self.rows as f64),
            Take::Sum => Some(self.sum),
            Take::Max => self.max.map(|(max, _)| max),
            Take::P50 => quantile(0.5),
            Take::P99 => quantile(0.99),
            Take::PerSecond => (duration_ns > 0.0).then(|| self.sum / (duration_ns / 1e9)),
            Take::Share => (duration_ns > 0.0).then(|| self.sum / duration_ns),
        }
    }
}

/// All figures of a recording for which it has the tables. Counts and sums of nothing are 0; whether the events were
/// recorded at all is not told by them.
pub fn metrics(recording: &Recording<'_>) -> Result<Vec<Metric>> {
    let mut duration_ns = 0.0;
    let mut found = Vec::new();
    let mut by_table: Vec<(&str, Vec<&Definition>)> = Vec::new();
    for definition in definitions()? {
        let table = definition.table().0;
        match by_table.iter_mut().find(|(known, _)| *known == table) {
            Some((_, all)) => all.push(definition),
            None => by_table.push((table, vec![definition])),
        }
    }
    for (table, definitions) in by_table {
        let Ok(table) = recording.table(table) else { continue };
        let (mut kept, is_kept) = (0, definitions.iter().filter(|definition| definition.take.keeps()).count() as u64);
        let mut seen: Vec<HashMap<String, Seen>> = definitions.iter().map(|_| HashMap::new()).collect();
        let mut columns: Vec<&str> = Vec::new();
        for definition in &definitions {
            columns.push(definition.table().1);
            columns.extend(definition.only.keys().map(String::as_str));
            columns.extend(definition.by.as_deref());
            columns.extend(definition.worst.as_deref());
        }
        for batch in table.scan().columns(columns).batches()? {
            let batch = batch?;
            kept += batch.num_rows() as u64 * is_kept;
            held(recording, table.name(), kept, size_of::<f64>() as u64)?;
            for (definition, seen) in definitions.iter().zip(&mut seen) {
                look(definition, &batch, seen)?;
            }
        }
        for (definition, seen) in definitions.iter().zip(seen) {
            let figures = figures(definition, seen, duration_ns);
            if definition.name == "recording.duration" {
                duration_ns = figures.first().map_or(0.0, |metric| metric.value);
            }
            found.extend(figures);
        }
    }
    Ok(found)
}

fn look(definition: &Definition, batch: &RecordBatch, seen: &mut HashMap<String, Seen>) -> Result<()> {
    let column = Column::of(batch, definition.table().1)?;
    let only: Vec<(Column<'_>, &str)> = definition
        .only
        .iter()
        .map(|(name, value)| Ok((Column::of(batch, name)?, value.as_str())))
        .collect::<Result<_>>()?;
    let by = definition.by.as_deref().map(|by| Column::of(batch, by)).transpose()?;
    let worst = definition.worst.as_deref().map(|worst| Column::of(batch, worst)).transpose()?;
    let keeps = definition.take.keeps();
    for row in 0..batch.num_rows() {
        let is_wanted = |(column, value): &(Column<'_>, &str)| match column.text(row) {
            Some(text) => text == *value,
            None => column.number(row).is_some_and(|number| value.parse() == Ok(number)),
        };
        if !only.iter().all(is_wanted) {
            continue;
        }
        let key = by.map_or("", |by| by.text(row).unwrap_or_default());
        // Signed columns come as their bits.
        let value = column.number(row).map(|bits| bits as i64 as f64);
        let worst = worst.and_then(|worst| worst.number(row));
        match seen.get_mut(key) {
            Some(seen) => seen.add(value, worst, keeps),
            None => seen.entry(key.to_owned()).or_default().add(value, worst, keeps),
        }
    }
    Ok(())
}

fn figures(definition: &Definition, mut seen: HashMap<String, Seen>, duration_ns: f64) -> Vec<Metric> {
    if definition.by.is_none() {
        seen.entry(String::new()).or_default();
    }
    let mut found = Vec::new();
    for (value, mut seen) in seen {
        let Some(figure) = seen.take(definition.take, duration_ns) else { continue };
        let name = match &definition.by {
            Some(_) => format!("{}[{value}]", definition.name),
            None => definition.name.clone(),
        };
        let worst = definition.worst.as_deref().zip(seen.max.and_then(|(_, worst)| worst));
        let worst = worst.map(|(column, number)| format!("{column} = {number}"));
        found.push(Metric { name, value: figure, observations: seen.rows, worst });
    }
    found.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.name.cmp(&b.name)));
    found.truncate(MOST_OF_ONE);
    found
}
