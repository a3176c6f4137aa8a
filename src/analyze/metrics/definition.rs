//! What figures are, by `schemas/metrics.toml`, and the SQL that gives the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::error::{Error, Result};

/// What a figure is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Definition {
    /// Name, such as `gc.pause.p99`.
    pub name: String,
    /// `ns`, `bytes`, `count`, `share`, `bytes/s`, or `value`.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// Table and column.
    of: String,
    /// Only rows with one of these values in each of the columns.
    #[serde(rename = "where", default)]
    pub(super) only: BTreeMap<String, Values>,
    /// No rows with one of these values.
    #[serde(rename = "not", default)]
    pub(super) except: BTreeMap<String, Values>,
    /// Only rows whose column contains this text, whatever its case.
    #[serde(default)]
    pub(super) contains: BTreeMap<String, String>,
    pub(super) take: Take,
    /// The columns whose values have a figure each.
    #[serde(default)]
    pub(super) by: Vec<String>,
    /// What of the innermost frame has a figure for each value.
    #[serde(default)]
    pub(super) frame: Option<OfFrame>,
    /// Figures of one metric with `by` or `frame`.
    #[serde(default = "twenty")]
    pub(super) most: usize,
    /// The column that says where the largest value is.
    #[serde(default)]
    pub(super) worst: Option<String>,
    /// Whether runs repeat it exactly.
    #[serde(default)]
    pub exact: bool,
    /// One sentence, or two.
    pub doc: String,
}

/// What stands for the type or the name of a row that has none.
pub(super) const UNKNOWN: &str = "(unknown)";

fn twenty() -> usize {
    20
}

/// One value or several.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(super) enum Values {
    One(String),
    Several(Vec<String>),
}

impl Values {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Several(values) => values,
        }
    }
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

impl Better {
    /// The word, as the table `metric` has it.
    pub fn word(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "neither",
        }
    }
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
    Failed,
}

/// What of a frame.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum OfFrame {
    Name,
    Assembly,
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

impl Metric {
    pub(super) fn new(definition: &Definition, key: Option<&str>, value: f64, observations: u64) -> Metric {
        Metric { name: full_name(&definition.name, key), value, observations, worst: None }
    }

    /// What stands in brackets.
    pub fn key(&self) -> Option<&str> {
        self.name.split_once('[').map(|(_, key)| key.strip_suffix(']').unwrap_or(key))
    }
}

pub(super) fn full_name(name: &str, key: Option<&str>) -> String {
    key.map_or_else(|| name.to_owned(), |key| format!("{name}[{key}]"))
}

/// All definitions, in their order. The error is a defect of the shipped file.
pub fn definitions() -> Result<&'static [Definition]> {
    #[derive(Deserialize)]
    struct File {
        metric: Vec<Definition>,
    }
    static ALL: OnceLock<std::result::Result<Vec<Definition>, String>> = OnceLock::new();
    let parse = || {
        let file: File = toml::from_str(include_str!("../../../schemas/metrics.toml")).map_err(|e| e.to_string())?;
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
    pub(super) fn table(&self) -> (&str, &str) {
        self.of.split_once('.').unwrap_or((&self.of, ""))
    }

    /// Whether it has a figure for each type, method, counter and so on: `allocation.by_type[System.String]`.
    pub fn has_keys(&self) -> bool {
        self.frame.is_some() || !self.by.is_empty()
    }

    /// The table that it is made of.
    pub fn table_name(&self) -> &str {
        self.table().0
    }

    /// The query that gives the same, in DuckDB with the `views.sql` of a dataset: columns `trace_id`, with `by` or `frame`
    /// the value, the figure, and its rows.
    pub fn sql(&self) -> String {
        let (table, column) = self.table();
        // Frames have columns of the same names.
        let of = |column: &str| if self.frame.is_some() { format!("r.{column}") } else { column.to_owned() };
        let column = of(column);
        let seconds = "(SELECT nullif(max(duration_ns), 0) FROM trace t WHERE t.trace_id = r.trace_id)";
        let figure = match self.take {
            Take::Count => "count(*)".to_owned(),
            Take::Sum => format!("coalesce(sum({column}), 0)"),
            Take::Mean => format!("avg({column})"),
            Take::Max => format!("max({column})"),
            Take::Last => format!("arg_max({column}, ts_ns)"),
            Take::P50 => format!("quantile_disc({column}, 0.5)"),
            Take::P99 => format!("quantile_disc({column}, 0.99)"),
            Take::PerSecond => format!("coalesce(sum({column}), 0) / ({seconds} / 1e9)"),
            Take::Share => format!("coalesce(sum({column}), 0) / {seconds}"),
            Take::Failed => {
                let failed = format!("{column} = 'failed' OR regexp_full_match({column}, '5[0-9][0-9]')");
                format!("avg(CASE WHEN {failed} THEN 1 ELSE 0 END)")
            }
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
            (None, [one]) => ("", Some(format!("coalesce(nullif({one}, ''), '{UNKNOWN}')"))),
            (None, several) => {
                ("", Some(format!("coalesce(nullif(concat_ws('/', {}), ''), '{UNKNOWN}')", several.join(", "))))
            }
        };
        let least = if value.is_some() { "ALL" } else { "trace_id" };
        let value = value.map_or_else(String::new, |value| format!(", {value} AS \"value\""));
        format!(
            "SELECT {}{value}, {figure} AS figure, count({column}) AS observations\nFROM {table} r{join}{only}\nGROUP BY {least}",
            of("trace_id")
        )
    }
}
