//! Reads `schemas/tables/*.toml`: what each table and column is. Code, documentation and files all follow them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::table_spec::{Encoding, TableSpec};

/// Version of the set of tables and columns; grows with every change to them, and to what their rows and values mean: a
/// dataset has rows of one meaning. Those of version 11 have one pause where a stop holds two collections, those of
/// version 13 know recordings by their SHA-256 alone.
pub const SCHEMA_VERSION: u32 = 14;

/// One table, as its file declares it. (What only the generator of code needs of the file is left out.)
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TableSchema {
    /// Name.
    pub name: String,
    /// The meaning of a row.
    pub doc: String,
    /// Tables are shown in this order.
    #[serde(skip_serializing)]
    pub order: u32,
    /// Columns in order.
    #[serde(rename(deserialize = "column"))]
    pub columns: Vec<ColumnSchema>,
    /// Columns by which the rows of each row group are sorted.
    #[serde(default)]
    pub sorted_by: Vec<String>,
}

/// One column.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ColumnSchema {
    /// Name.
    pub name: String,
    /// `uint8` to `uint64`, `int64`, `float64`, `bool`, `timestamp` (microseconds, UTC), `text`, `label` (one of few
    /// words), `list<uint64>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Unit of the values, when they have one.
    pub unit: Option<String>,
    /// Whether it may be null.
    #[serde(default)]
    pub nullable: bool,
    /// The meaning.
    pub doc: String,
    /// The encoding in Parquet, chosen by measurement.
    pub encoding: Encoding,
}

/// Key in the metadata of an Arrow field whose value is the unit of the column.
///
/// The key of the unit in the metadata of a column. Meanings are not in files: they would make a small recording half
/// as large again. [`TableSchema::documented`] has them.
pub const UNIT: &str = "unit";

/// Key of what a column or a table means, in metadata of schemas that are not written.
pub const DOC: &str = "doc";

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
            "float64" => DataType::Float64,
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
        let field = |c: &ColumnSchema| {
            let metadata: HashMap<_, _> = c.unit.iter().map(|unit| (UNIT.to_owned(), unit.clone())).collect();
            Ok(Field::new(&c.name, c.data_type()?, c.nullable).with_metadata(metadata))
        };
        Ok(Arc::new(Schema::new(self.columns.iter().map(field).collect::<Result<Vec<_>>>()?)))
    }

    /// The columns with unit and meaning in the metadata of each that this table has, and the meaning of the table: for
    /// people who look at the schema. `schema` may have other columns, too.
    pub fn documented(&self, schema: &Schema) -> Schema {
        let documented = |field: &FieldRef| {
            let Some(column) = self.columns.iter().find(|column| column.name == *field.name()) else {
                return field.clone();
            };
            let mut metadata = field.metadata().clone();
            metadata.extend(column.unit.iter().map(|unit| (UNIT.to_owned(), unit.clone())));
            metadata.insert(DOC.to_owned(), column.doc.clone());
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        };
        let fields: Vec<FieldRef> = schema.fields().iter().map(documented).collect();
        let mut metadata = schema.metadata().clone();
        metadata.insert(DOC.to_owned(), self.doc.clone());
        Schema::new_with_metadata(fields, metadata)
    }

    /// The facts about the table that the sink has to know.
    pub fn spec(&self) -> Result<TableSpec> {
        Ok(TableSpec {
            name: self.name.clone(),
            schema: self.arrow()?,
            encodings: self.columns.iter().map(|c| c.encoding).collect(),
            sorted_by: self.sorted_by.clone(),
        })
    }
}

/// Name of the schema that payload tables begin with; it is no table itself.
pub const EVENT_HEADER: &str = "event_header";

/// All schemas, in the order in which they are shown. The error is a defect of a shipped file.
pub fn all() -> Result<&'static [TableSchema]> {
    static ALL: OnceLock<std::result::Result<Vec<TableSchema>, String>> = OnceLock::new();
    let parse = || {
        let parsed =
            tracequet_schemas::TABLES.iter().map(|(_, text)| serde_json::from_str(text).map_err(|e| e.to_string()));
        let mut all = parsed.collect::<std::result::Result<Vec<TableSchema>, String>>()?;
        all.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        Ok(all)
    };
    ALL.get_or_init(parse).as_deref().map_err(|e| Error::Internal(e.clone()))
}

/// The schema of one table.
pub fn of(name: &str) -> Result<&'static TableSchema> {
    let found = all()?.iter().find(|t| t.name == name);
    found.ok_or_else(|| Error::Internal(format!("no schema for table {name}")))
}
