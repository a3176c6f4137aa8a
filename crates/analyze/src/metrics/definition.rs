//! Definitions of figures from `schemas/metrics.toml`, and the SQL that computes the same.

use crate::prelude::*;
use std::sync::OnceLock;

use serde::Deserialize;

use super::needs::{Missing, Need};
use super::roots::SPANS;

/// The definition of a metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name, such as `gc.pause.p99`.
    pub name: String,
    /// The name for people, such as `Longest pause`.
    pub title: String,
    /// `ns`, `bytes`, `count`, `share`, `bytes/s`, or `value`.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// Table and column.
    of: String,
    /// The rows that it is made of, where other metrics are made of them, too.
    rows: Option<String>,
    /// Only rows with one of these values in each of the columns.
    #[serde(rename = "where", default)]
    pub(crate) only: BTreeMap<String, Values>,
    /// No rows with one of these values.
    #[serde(rename = "not", default)]
    pub(crate) except: BTreeMap<String, Values>,
    /// Only rows whose column contains this text, whatever its case.
    #[serde(default)]
    pub(super) contains: BTreeMap<String, String>,
    /// Only rows of one kind, where a table has several that stand for the same.
    pub(super) one_of: Option<OneOf>,
    pub(super) take: Take,
    /// The columns whose values have a figure each.
    #[serde(default)]
    pub(super) by: Vec<String>,
    /// Whether a row without `type_name` takes the name that the table `type` has for its `type_id`.
    #[serde(default)]
    pub(super) named_by_type: bool,
    /// The property of the innermost frame that has a metric for each value.
    pub(super) frame: Option<OfFrame>,
    /// Figures of one metric with `by` or `frame`.
    #[serde(default = "twenty")]
    /// Figures of it that a recording has, at most.
    pub(crate) most: usize,
    /// The column that says where the largest value is.
    pub(super) worst: Option<String>,
    /// Whether runs repeat it exactly.
    #[serde(default)]
    pub exact: bool,
    /// The list of events without which it says nothing.
    pub(super) needs: Option<String>,
    /// Of a mean: the column that says how much each value counts.
    pub(super) weight: Option<String>,
    /// One figure, of the first of these values of `by` that has rows.
    #[serde(default)]
    pub(crate) first_of: Vec<String>,
    /// The kinds of rows that repeat the same error in each run: by them runs prove no difference.
    #[serde(default)]
    no_proof: Vec<String>,
    /// One sentence, or two.
    pub doc: String,
}

/// Replaces the type or the name of a row without one.
pub(super) const UNKNOWN: &str = "(unknown)";

fn twenty() -> usize {
    20
}

/// One value or several.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Values {
    One(String),
    Several(Vec<String>),
}

impl Values {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Several(values) => values,
        }
    }
}

/// Kinds of rows that stand for the same: a figure is made of the first kind that the recording has.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct OneOf {
    /// The column that says the kind.
    pub(super) column: String,
    /// The kinds, the best first. Several words with commas between are one kind.
    pub(super) order: Vec<String>,
}

impl OneOf {
    /// The place of a word in the order.
    pub(super) fn place(&self, word: &str) -> Option<usize> {
        self.order.iter().position(|kind| kind.split(", ").any(|known| known == word))
    }
}

tracequet_trace::worded! {
    /// Which way is good.
    #[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[allow(missing_docs, reason = "the words say it")]
    pub enum Better {
        Lower = "lower",
        Higher = "higher",
        Neither = "neither",
    }
    /// The word, as the table `metric` has it.
    pub fn word;
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Take {
    Count,
    Sum,
    Mean,
    Max,
    Last,
    P50,
    P99,
    PerSecond,
    Share,
    Covered,
    CoveredShare,
    Failed,
    Failures,
}

impl Take {
    /// Whether it is of the time that rows cover together: what those of a process have in common counts once.
    pub(super) fn is_covered(self) -> bool {
        matches!(self, Take::Covered | Take::CoveredShare)
    }
}

/// A property of a frame.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum OfFrame {
    Name,
    Assembly,
}

/// One figure of one recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, such as `gc.pause.p99` or `allocation.by_type[System.String]`.
    pub name: String,
    /// The value, in the unit of its definition.
    pub value: Option<f64>,
    /// Why there is none.
    pub missing: Option<Missing>,
    /// Rows that it was made from.
    pub observations: u64,
    /// Where to look: `gc_id = 17` of the largest value.
    pub worst: Option<String>,
    /// Whose rows it was made from.
    pub owner: Owner,
    /// The kind of rows that it was made from, where there are several that stand for the same: `sampled` or `tick` of
    /// allocations, the activities of ASP.NET Core or of Kestrel of requests.
    pub source: Option<String>,
}

/// Whose rows a figure was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// There are no rows, or they do not say it.
    #[default]
    Unknown,
    /// A process of this id.
    Process(u64),
    /// Several processes: the figure is one of the machine.
    Machine,
}

impl Owner {
    /// A row of a process is among them.
    #[inline]
    pub(super) fn see(&mut self, process: u64) {
        match *self {
            _ if process == 0 => {}
            Owner::Unknown => *self = Owner::Process(process),
            Owner::Process(known) if known != process => *self = Owner::Machine,
            _ => {}
        }
    }

    /// The rows of another figure are among them.
    pub(super) fn join(&mut self, other: Owner) {
        match other {
            Owner::Unknown => {}
            Owner::Process(process) => self.see(process),
            Owner::Machine => *self = Owner::Machine,
        }
    }

    /// The word and the number, as the table `metric` has them.
    pub fn columns(self) -> (&'static str, u64) {
        match self {
            Owner::Unknown => ("process", 0),
            Owner::Process(id) => ("process", id),
            Owner::Machine => ("machine", 0),
        }
    }

    /// The one of a row of the table.
    pub(super) fn of_columns(scope: &str, process: u64) -> Owner {
        match (scope, process) {
            ("machine", _) => Owner::Machine,
            (_, id) if id > 0 => Owner::Process(id),
            _ => Owner::Unknown,
        }
    }
}

impl Metric {
    pub(crate) fn new(definition: &Definition, key: Option<&str>, value: f64, observations: u64) -> Metric {
        let (owner, source) = (Owner::default(), None);
        let name = full_name(&definition.name, key);
        Metric { name, value: Some(value), missing: None, observations, worst: None, owner, source }
    }

    /// A figure that has no value.
    pub(super) fn without_value(definition: &Definition, missing: Missing) -> Metric {
        Metric { value: None, missing: Some(missing), ..Metric::new(definition, None, 0.0, 0) }
    }

    /// The text in brackets.
    pub fn key(&self) -> Option<&str> {
        self.name.split_once('[').map(|(_, key)| key.strip_suffix(']').unwrap_or(key))
    }
}

pub(super) fn full_name(name: &str, key: Option<&str>) -> String {
    key.map_or_else(|| name.to_owned(), |key| format!("{name}[{key}]"))
}

/// All definitions, in their order. The error is a defect of the shipped file.
pub fn definitions() -> Result<&'static [Definition]> {
    Ok(&shipped()?.metric)
}

/// All lists of events that figures are made of.
pub(super) fn needs() -> Result<&'static [Need]> {
    Ok(&shipped()?.need)
}

#[derive(Debug, Deserialize)]
struct File {
    need: Vec<Need>,
    rows: Vec<RowSet>,
    metric: Vec<Definition>,
}

/// Rows that several metrics are made of, with the keys that they have in common.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowSet {
    name: String,
    #[serde(rename = "where", default)]
    only: BTreeMap<String, Values>,
    #[serde(rename = "not", default)]
    except: BTreeMap<String, Values>,
    one_of: Option<OneOf>,
    #[serde(default)]
    by: Vec<String>,
    #[serde(default)]
    first_of: Vec<String>,
    needs: String,
}

impl File {
    /// Gives the metrics of rows what these have in common.
    fn completed(mut self) -> std::result::Result<File, String> {
        for metric in &mut self.metric {
            let Some(name) = &metric.rows else { continue };
            let rows = self.rows.iter().find(|rows| rows.name == *name);
            let rows = rows.ok_or_else(|| format!("{}: there are no rows {name}", metric.name))?;
            let added = |list: &mut BTreeMap<String, Values>, of: &BTreeMap<String, Values>| {
                list.extend(of.iter().map(|(column, values)| (column.clone(), values.clone())));
            };
            added(&mut metric.only, &rows.only);
            added(&mut metric.except, &rows.except);
            metric.one_of = rows.one_of.clone();
            metric.by = [rows.by.clone(), std::mem::take(&mut metric.by)].concat();
            metric.first_of = rows.first_of.clone();
            metric.needs = Some(rows.needs.clone());
        }
        Ok(self)
    }
}

fn shipped() -> Result<&'static File> {
    static ALL: OnceLock<std::result::Result<File, String>> = OnceLock::new();
    let parse =
        || serde_json::from_str(tracequet_schemas::METRICS).map_err(|e| e.to_string()).and_then(File::completed);
    ALL.get_or_init(parse).as_ref().map_err(|e| Error::Internal(e.clone()))
}

/// The definition of a figure, by its name with or without the text in brackets.
pub fn definition_of(name: &str) -> Result<Option<&'static Definition>> {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    Ok(definitions()?.iter().find(|definition| definition.name == name))
}

impl Definition {
    pub(super) fn table(&self) -> (&str, &str) {
        self.of.split_once('.').unwrap_or((&self.of, ""))
    }

    /// Whether it has a figure for each type, method, counter and so on: `allocation.by_type[System.String]`.
    pub fn has_keys(&self) -> bool {
        self.frame.is_some() || (!self.by.is_empty() && self.first_of.is_empty())
    }

    /// Whether a value of which there are no rows, where others are whole, is 0: counts and sums.
    pub(crate) fn is_total(&self) -> bool {
        matches!(
            self.take,
            Take::Count
                | Take::Sum
                | Take::PerSecond
                | Take::Share
                | Take::Covered
                | Take::CoveredShare
                | Take::Failures
        )
    }

    /// Whether it is the time that something took in the whole recording.
    pub(crate) fn is_sum_of_time(&self) -> bool {
        self.unit == "ns" && self.take == Take::Sum
    }

    /// Whether a difference of figures that were made of this kind of rows proves anything, however many runs show it.
    pub fn proves(&self, source: Option<&str>) -> bool {
        source.is_none_or(|source| !self.no_proof.iter().any(|kind| kind == source))
    }

    /// The table that it is made of.
    pub fn table_name(&self) -> &str {
        self.table().0
    }

    /// The query that gives the same, in DuckDB with the `views.sql` of a dataset: columns `trace_id`, with `by` or
    /// `frame` the value, the figure, and its rows.
    pub fn sql(&self) -> String {
        let (table, column) = self.table();
        // Frames and types have columns of the same names.
        let is_joined = self.frame.is_some() || self.named_by_type;
        let of = |column: &str| if is_joined { format!("r.{column}") } else { column.to_owned() };
        let column = of(column);
        let seconds = "(SELECT nullif(max(duration_ns), 0) FROM trace t WHERE t.trace_id = r.trace_id)";
        let figure = match self.take {
            Take::Count => "count(*)".to_owned(),
            Take::Sum => format!("sum({column})"),
            Take::Mean => match &self.weight {
                Some(weight) => {
                    format!("sum({column} * {weight}) / nullif(sum({weight}) FILTER ({column} IS NOT NULL), 0)")
                }
                None => format!("avg({column})"),
            },
            Take::Max => format!("max({column})"),
            Take::Last => format!("arg_max({column}, ts_ns)"),
            Take::P50 => format!("quantile_disc({column}, 0.5)"),
            Take::P99 => format!("quantile_disc({column}, 0.99)"),
            Take::PerSecond => format!("sum({column}) / ({seconds} / 1e9)"),
            Take::Share => format!("sum({column}) / {seconds}"),
            Take::Covered => "sum(covered_ns)".to_owned(),
            Take::CoveredShare => format!("sum(covered_ns) / {seconds}"),
            Take::Failed => format!(
                "CASE WHEN bool_or({column} = 'success') OR NOT bool_or({column} = 'unknown')\n    \
                 THEN count(*) FILTER ({column} = 'failure') / nullif(count(*) FILTER ({column} IN ('success', 'failure')), 0) END"
            ),
            Take::Failures => format!("count(*) FILTER ({column} = 'failure')"),
        };
        let mut only = Vec::new();
        for (column, values) in &self.only {
            only.push(match values {
                Values::One(value) => format!("{} = '{value}'", of(column)),
                Values::Several(values) => format!("{} IN ('{}')", of(column), values.join("', '")),
            });
        }
        for (column, values) in &self.except {
            only.extend(values.all().iter().map(|value| format!("{} IS DISTINCT FROM '{value}'", of(column))));
        }
        only.extend(self.contains.iter().map(|(column, text)| format!("contains(lower({}), '{text}')", of(column))));
        if let Some(OneOf { column, .. }) = &self.one_of {
            let kinds = format!("SELECT s.{column} FROM {table}_{column} s WHERE s.trace_id = r.trace_id");
            only.push(format!("{} IN ({kinds})", of(column)));
        }
        let only = if only.is_empty() { String::new() } else { format!("\nWHERE {}", only.join(" AND ")) };
        let (join, value) = match (self.frame, self.by.as_slice()) {
            (Some(of), _) => {
                let join = "\nJOIN site f ON f.trace_id = r.trace_id AND f.callsite_id = r.callsite_id";
                let file = "CASE WHEN contains(f.name, '!') THEN nullif(split_part(f.name, '!', 1), '') END";
                let value = match of {
                    OfFrame::Name => format!("coalesce(nullif(f.name, ''), '{UNKNOWN}')"),
                    OfFrame::Assembly => format!("coalesce(nullif(f.assembly, ''), {file}, f.kind, '{UNKNOWN}')"),
                };
                (join, Some(value))
            }
            (None, []) => ("", None),
            (None, [one]) if self.named_by_type => {
                let join = "\nLEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t\n    \
                            ON t.trace_id = r.trace_id AND t.process_id = r.process_id AND t.type_id = r.type_id";
                (join, Some(format!("coalesce(nullif(r.{one}, ''), nullif(t.name, ''), '{UNKNOWN}')")))
            }
            (None, [one]) => ("", Some(format!("coalesce(nullif({one}, ''), '{UNKNOWN}')"))),
            (None, several) => {
                ("", Some(format!("coalesce(nullif(concat_ws('/', {}), ''), '{UNKNOWN}')", several.join(", "))))
            }
        };
        if !self.first_of.is_empty() {
            return self.sql_of_first(&figure, &column, table);
        }
        if self.take.is_covered() {
            return format!(
                "SELECT trace_id, {figure} AS figure, count({column}) AS observations\nFROM (SELECT *, greatest(0, \
                 start_ts_ns + {column} - greatest(start_ts_ns, coalesce(max(start_ts_ns + {column}) OVER earlier, start_ts_ns))) AS covered_ns\n    \
                 FROM {table}{only}\n    WINDOW earlier AS (PARTITION BY trace_id, process_id ORDER BY start_ts_ns, {column}\n        \
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) r\nGROUP BY trace_id"
            );
        }
        let least = if value.is_some() { "ALL" } else { "trace_id" };
        let value = value.map_or_else(String::new, |value| format!(", {value} AS \"value\""));
        format!(
            "SELECT {}{value}, {figure} AS figure, count({column}) AS observations\nFROM {table} r{join}{only}\nGROUP BY {least}",
            of("trace_id")
        )
    }

    /// The query over the first source that has rows.
    fn sql_of_first(&self, figure: &str, column: &str, table: &str) -> String {
        let sources = format!("['{}']", self.first_of.join("',\n    '"));
        let by = self.by.join(", ");
        let source = format!("concat_ws('/', {by})");
        if self.first_of.iter().any(|source| source == SPANS) {
            return format!(
                "SELECT trace_id, {figure} AS figure, count({column}) AS observations\nFROM (SELECT *, end_ts_ns - start_ts_ns AS duration_ns,\n        \
                 CASE WHEN list_contains({sources}, source) THEN source ELSE '{SPANS}' END AS reported_by\n    FROM requests WHERE side = 'server') r\n\
                 GROUP BY trace_id, reported_by\n\
                 QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY list_position({sources}, reported_by)) = 1"
            );
        }
        format!(
            "SELECT trace_id, {figure} AS figure, count({column}) AS observations\nFROM {table} r\n\
             WHERE list_contains({sources}, {source})\nGROUP BY trace_id, {by}\n\
             QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY list_position({sources}, {source})) = 1"
        )
    }
}
