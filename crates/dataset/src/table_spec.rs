//! The specification of a table, shared by the layers that fill and write it: name, columns, encodings and order.

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

/// The facts about a table that its file needs.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Name, such as `gc` or `event/<provider>/<event>`; it is also the file's path in the dataset.
    pub name: String,
    /// The columns. Every batch must have exactly these.
    pub schema: SchemaRef,
    /// One for each top-level column. The leaves of a nested column inherit it.
    pub encodings: Vec<Encoding>,
    /// Names of the columns by which the rows of each row group (in Arrow IPC: of each batch) are put into ascending
    /// order, the first one first. Columns of unsigned 32-bit or of 64-bit numbers without nulls.
    pub sorted_by: Vec<String>,
}

/// The layout of the values of a column in Parquet. Arrow IPC has no such choice.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// One value after the other.
    Plain,
    /// Distinct values once, then small numbers: for columns of few values.
    Dictionary,
    /// Differences to the value before: for integers and times that climb. Text and binary get their lengths as
    /// differences; types without differences are written plain.
    Delta,
}
