//! Reads a table row by row, within the bound of memory.

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;
use tracequet_dataset::read::rows::{Row, rows_of};

use crate::held;

/// Calls `take` with each row of the table of `R`. Fails when there are more rows than fit into memory at `row_stored`
/// bytes each.
pub(crate) fn each_row<R: Row>(
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
