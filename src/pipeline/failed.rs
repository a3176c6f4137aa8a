//! The tables of a recording that could not be read: its row in `trace`, with what was wrong.

use super::output::TableOutput;
use super::request::Convert;
use super::summary::{FailedInput, TableSummary};
use crate::error::Result;
use crate::sink::Dataset;
use crate::table::select::Selection;
use crate::table::{Shape, Tables};
use crate::time::Clock;

/// Writes them, and says what they have become.
pub(super) fn write(
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
