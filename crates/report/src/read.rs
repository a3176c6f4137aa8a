//! Reads tables row by row. A table that the dataset lacks has no rows.

use tracequet_dataset::error::Result;
use tracequet_dataset::read::{Column, Recording};

/// A row of chosen columns.
pub(crate) struct Row<'r> {
    columns: &'r [Column<'r>],
    row: usize,
}

impl<'r> Row<'r> {
    pub(crate) fn number(&self, column: usize) -> Option<u64> {
        self.columns.get(column)?.number(self.row)
    }

    pub(crate) fn signed(&self, column: usize) -> Option<i64> {
        self.number(column).map(u64::cast_signed)
    }

    pub(crate) fn real(&self, column: usize) -> Option<f64> {
        self.columns.get(column)?.real(self.row)
    }

    pub(crate) fn text(&self, column: usize) -> Option<&'r str> {
        self.columns.get(column)?.text(self.row)
    }

    /// A text that is not empty.
    pub(crate) fn word(&self, column: usize) -> Option<&'r str> {
        self.text(column).filter(|text| !text.is_empty())
    }

    pub(crate) fn is(&self, column: usize) -> bool {
        self.number(column) == Some(1)
    }
}

/// Calls `take` with each row of a table. Returns whether the dataset has the table.
pub(crate) fn each(
    recording: &Recording<'_>,
    table: &str,
    columns: &[&str],
    mut take: impl FnMut(&Row<'_>),
) -> Result<bool> {
    if !recording.tables().any(|found| found.name == table) {
        return Ok(false);
    }
    for batch in recording.table(table)?.scan().columns(columns.iter().copied()).batches()? {
        let batch = batch?;
        let columns = columns.iter().map(|name| Column::of(&batch, name)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            take(&Row { columns: &columns, row });
        }
    }
    Ok(true)
}

/// Adds to a sum, which is `None` until something is recorded.
pub(crate) fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or_default().saturating_add(more));
    }
}
