//! The tables of a recording that could not be read: its row in `trace`, with what was wrong.

use tracequet_dataset::error::Result;
use tracequet_dataset::format::{Entry, Format, TableInfo};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::DatasetWriter;
use tracequet_lake::Lake;
use tracequet_trace::time::Clock;

use crate::entries::failed_entry;
use crate::one::TableOutput;
use crate::request::Convert;
use crate::summary::{FailedInput, TableSummary};

/// Writes them, and says what they have become.
pub(crate) fn write(
    request: &Convert,
    failed: &FailedInput,
    shape: Shape,
    dataset: &mut DatasetWriter,
) -> Result<Vec<TableSummary>> {
    // When it began is not known: the row has the start of time.
    let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
    let tables = Tables::new(Selection::least(), clock, 8, shape)?;
    TableOutput::new(tables, request).close_failed(failed, dataset)
}

/// The tables of a failed recording, if the dataset has the same failure already, with all files. It is tried at each
/// run: to write the same files again, and take them away, would be most of the work of a run over many that cannot be
/// read.
pub(crate) fn known(
    request: &Convert,
    failed: &FailedInput,
    lake: &Lake,
    format: Format,
) -> Result<Option<Vec<TableSummary>>> {
    let Some((Entry { tables, .. }, text)) = lake.entry_of(&failed.trace_id, format)? else { return Ok(None) };
    let tables: Vec<_> =
        tables.into_iter().map(|TableInfo { name, rows, bytes, .. }| TableSummary { name, rows, bytes }).collect();
    Ok((failed_entry(request, failed, &tables) == text).then_some(tables))
}
