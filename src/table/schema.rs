//! Reads `schemas/tables/*.toml`: what each table and column is. Code, documentation and files all follow them.

use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Version of the set of tables and columns; grows with every change to them.
pub const SCHEMA_VERSION: u32 = 2;

/// One table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TableSchema {
    /// Name.
    pub name: String,
    /// What a row is.
    pub doc: String,
    /// Columns by which the rows of each row group are sorted.
    #[serde(default)]
    pub sorted_by: Vec<String>,
    /// Columns in order.
    #[serde(rename = "column")]
    pub columns: Vec<ColumnSchema>,
}

/// One column.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ColumnSchema {
    /// Name.
    pub name: String,
    /// `uint8` to `uint64`, `int64`, `bool`, `timestamp` (microseconds, UTC), `text`, `label` (one of few words),
    /// `list<uint64>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be null.
    #[serde(default)]
    pub nullable: bool,
    /// Unit of the values, when they have one.
    #[serde(default)]
    pub unit: Option<String>,
    /// How it is encoded in Parquet.
    pub encoding: ColumnEncoding,
    /// What it means.
    pub doc: String,
}

/// Parquet encodings, chosen by measurement.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ColumnEncoding {
    /// Values as they are.
    Plain,
    /// A dictionary: few distinct values.
    Dictionary,
    /// Differences: values that climb.
    Delta,
}

impl ColumnEncoding {
    /// The word in the schemas.
    pub fn as_str(self) -> &'static str {
        match self {
            ColumnEncoding::Plain => "plain",
            ColumnEncoding::Dictionary => "dictionary",
            ColumnEncoding::Delta => "delta",
        }
    }
}

/// UTC microseconds: what DuckDB, pandas, polars and Spark all read as a time.
pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Words from a small set.
pub fn label() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

impl ColumnSchema {
    /// The Arrow type; an unknown word is a defect of the shipped schema.
    pub fn data_type(&self) -> Result<DataType> {
        Ok(match self.kind.as_str() {
            "uint8" => DataType::UInt8,
            "uint16" => DataType::UInt16,
            "uint32" => DataType::UInt32,
            "uint64" => DataType::UInt64,
            "int64" => DataType::Int64,
            "bool" => DataType::Boolean,
            "timestamp" => timestamp(),
            "text" => DataType::Utf8,
            "label" => label(),
            "list<uint64>" => DataType::List(Arc::new(Field::new("item", DataType::UInt64, false))),
            other => return Err(Error::Internal(format!("column {}: unknown type {other}", self.name))),
        })
    }
}

impl TableSchema {
    /// The Arrow schema.
    pub fn arrow(&self) -> Result<SchemaRef> {
        let field = |c: &ColumnSchema| Ok(Field::new(&c.name, c.data_type()?, c.nullable));
        Ok(Arc::new(Schema::new(self.columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../schemas/tables/", $name, ".toml")))),*];
    };
}

files!(
    "trace",
    "process",
    "thread",
    "module",
    "event_type",
    "diagnostic",
    "callsite",
    "gc",
    "gc_pause",
    "gc_heap_stats",
    "gc_generation_range",
    "gc_surviving_range",
    "gc_moved_range",
    "gc_root",
    "gc_weak_element",
    "gc_handle",
    "gc_finalizable",
    "heap_object",
    "heap_reference",
    "type",
    "method",
    "allocation",
    "cpu_sample",
    "event_header",
);

/// Name of the schema that payload tables begin with; it is no table itself.
pub const EVENT_HEADER: &str = "event_header";

/// All schemas, in the order in which they are shown. The error is a defect of a shipped file.
pub fn all() -> Result<&'static [TableSchema]> {
    static ALL: OnceLock<std::result::Result<Vec<TableSchema>, String>> = OnceLock::new();
    let parse = || {
        let one = |(name, text): &(&str, &str)| {
            let table: TableSchema = toml::from_str(text).map_err(|e| format!("schemas/tables/{name}.toml: {e}"))?;
            if table.name == *name {
                Ok(table)
            } else {
                Err(format!("schemas/tables/{name}.toml is of {}", table.name))
            }
        };
        FILES.iter().map(one).collect()
    };
    ALL.get_or_init(parse).as_deref().map_err(|e| Error::Internal(e.clone()))
}

/// The schema of one table.
pub fn of(name: &str) -> Result<&'static TableSchema> {
    let found = all()?.iter().find(|t| t.name == name);
    found.ok_or_else(|| Error::Internal(format!("no schema for table {name}")))
}
