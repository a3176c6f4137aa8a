//! Reads a table row by row, within the bound of memory.

use tracequet_dataset::read::rows::{self, rows_of};
use tracequet_dataset::read::{Column, Recording};
use tracequet_trace::error::{Error, Result};

use crate::held;

/// A row of chosen columns.
pub(crate) struct Row<'r> {
    columns: &'r [Column<'r>],
    row: usize,
}

impl Row<'_> {
    /// The number in a column, by its place; 0 when it is null.
    pub fn number(&self, column: usize) -> u64 {
        self.columns.get(column).and_then(|column| column.number(self.row)).unwrap_or_default()
    }

    /// The number in a column, by its place; `None` when it is null.
    pub fn known(&self, column: usize) -> Option<u64> {
        self.columns.get(column).and_then(|column| column.number(self.row))
    }

    /// The number with fractions in a column, by its place; `None` when it is null.
    pub fn real(&self, column: usize) -> Option<f64> {
        self.columns.get(column).and_then(|column| column.real(self.row))
    }

    /// The text in a column, by its place; empty when it is null.
    pub fn text(&self, column: usize) -> &str {
        self.columns.get(column).and_then(|column| column.text(self.row)).unwrap_or_default()
    }
}

/// Calls `take` with each row of a table, which has these columns in this order. Fails when there are more rows than fit into memory
/// at `row_stored` bytes each.
pub(crate) fn each(
    recording: &Recording<'_>,
    row_stored: u64,
    table: &str,
    columns: &[&str],
    mut take: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let table = recording.table(table)?;
    let mut rows = 0;
    for batch in table.scan().columns(columns.iter().copied()).batches()? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        held(recording, table.name(), rows, row_stored)?;
        let columns = columns.iter().map(|name| Column::of(&batch, name)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            take(&Row { columns: &columns, row })?;
        }
    }
    Ok(())
}

/// Calls `take` with each row of the table of `R`. Fails when there are more rows than fit into memory at `row_stored` bytes each.
pub(crate) fn each_row<R: rows::Row>(
    recording: &Recording<'_>,
    row_stored: u64,
    mut take: impl FnMut(R::Of<'_>) -> Result<()>,
) -> Result<()> {
    let mut rows = 0;
    for batch in recording.scan::<R>()?.batches()? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        held(recording, R::TABLE, rows, row_stored)?;
        for row in rows_of::<R>(&batch)? {
            take(row)?;
        }
    }
    Ok(())
}

/// The error of a table whose rows contradict each other.
pub(crate) fn wrong(recording: &Recording<'_>, table: &str, what: &str) -> Error {
    let path = recording.table(table).map(|table| table.path().to_owned()).unwrap_or_default();
    Error::Dataset { path, what: what.to_owned(), expected: "the table as convert writes it".to_owned() }
}
