//! The tables of a recording that could not be read: its row in `trace`, with what was wrong.

use tracequet_dataset::format::{Entry, Format, TableInfo};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::{Dataset, Lake};
use tracequet_trace::error::Result;
use tracequet_trace::time::Clock;

use crate::lake::entries::failed_entry;
use crate::one::TableOutput;
use crate::request::Convert;
use crate::summary::{FailedInput, TableSummary};

/// Writes them, and says what they have become.
pub(crate) fn write(
    request: &Convert,
    failed: &FailedInput,
    shape: Shape,
    dataset: &mut Dataset,
) -> Result<Vec<TableSummary>> {
    // When it began is not known: the row has the start of time.
    let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
    let tables = Tables::new(Selection::least(), clock, 8, shape)?;
    TableOutput::new(tables, request).close_failed(failed, dataset)
}

/// Its tables, if the dataset has the same failure already, with all files. It is tried at each run: to write the same files
/// again, and take them away, would be most of the work of a run over many that cannot be read.
pub(crate) fn known(request: &Convert, failed: &FailedInput, lake: &Lake, format: Format) -> Option<Vec<TableSummary>> {
    let bytes = lake.entry_of(&failed.trace_id)?;
    let Entry { tables, .. } = Entry::parse(&failed.trace_id, &bytes).ok()?;
    let tables: Vec<_> =
        tables.into_iter().map(|TableInfo { name, rows, bytes, .. }| TableSummary { name, rows, bytes }).collect();
    let has_file = |table: &TableSummary| lake.has_file(&table.name, &failed.trace_id, format, table.bytes);
    let is_there = tables.iter().all(|table| table.rows == 0 || has_file(table));
    (is_there && failed_entry(request, failed, &tables) == bytes).then_some(tables)
}
