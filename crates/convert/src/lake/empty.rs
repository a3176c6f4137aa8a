//! The files without rows of a dataset of several recordings: one for each table, so that no recording needs one for a table of
//! which it has no rows, and a glob over the files of a table still finds its columns.

use std::sync::Arc;

use tracequet_dataset::format::AddressType;
use tracequet_dataset::format::paths::{self, NO_RECORDING};
use tracequet_dataset::format::{Format, VERSION};
use tracequet_dataset::table::schema::{self, SCHEMA_VERSION};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::{Dataset, Encoders, Lake, TableSpec};
use tracequet_trace::error::Result;
use tracequet_trace::time::Clock;

use crate::one::options;
use crate::request::Convert;

/// The tables that a request asks for, but for those of events, which exist only where there are such events.
#[derive(Debug)]
pub(crate) struct Empty<'r> {
    request: &'r Convert,
    specs: Vec<TableSpec>,
}

impl<'r> Empty<'r> {
    pub(crate) fn of(request: &'r Convert, selection: &Selection) -> Result<Empty<'r>> {
        let signed = request.address_type == AddressType::Int64;
        let shape = Shape { trace_id: Some(NO_RECORDING.to_owned()), signed };
        // Neither matters without rows.
        let (clock, pointer_size) = (Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 }, 8);
        let tables = Tables::new(selection.clone(), clock, pointer_size, shape)?;
        let specs = tables.specs().iter().filter(|spec| selection.asks_for(&spec.name)).cloned().collect();
        Ok(Empty { request, specs })
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }

    /// Where the file of a table is, relative to the dataset's directory.
    pub(crate) fn path(&self, table: &str) -> String {
        paths::file(table, NO_RECORDING, self.request.format)
    }

    /// Puts the files into a dataset that lacks them. `version` is that of its tables, if it says one.
    pub(crate) fn put(&self, lake: &Lake, encoders: &Arc<Encoders>, version: Option<u32>) -> Result<()> {
        let is_there = |table: &str| is_of_now(version) && lake.has_empty(table, self.request.format);
        self.put_those(lake, encoders, |table| !is_there(table))
    }

    /// Puts the files of those tables into a dataset that are wanted there.
    pub(crate) fn put_those(
        &self,
        lake: &Lake,
        encoders: &Arc<Encoders>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let wanted: Vec<&TableSpec> = self.specs.iter().filter(|spec| is_wanted(&spec.name)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut options = options(self.request, &[]);
        options.partition = Some(paths::partition(NO_RECORDING));
        let mut dataset = Dataset::part_of(lake.path(), encoders.clone(), options)?;
        for spec in wanted {
            dataset.table(spec.clone())?;
        }
        let footer = [("version", VERSION.to_owned()), ("schema_version", SCHEMA_VERSION.to_string())];
        dataset.close_tables(&footer.map(|(name, value)| (format!("tracequet.{name}"), value)))?;
        lake.put_empty(dataset)
    }
}

/// Whether files of a dataset with tables of this version can stay. Others are rewritten, since all files of a table
/// must have the same columns.
pub(crate) fn is_of_now(version: Option<u32>) -> bool {
    version == Some(SCHEMA_VERSION)
}

/// The tables of which a dataset has such a file.
pub(crate) fn there(lake: &Lake, format: Format) -> Result<Vec<String>> {
    let names = schema::all()?.iter().map(|table| &table.name);
    Ok(names.filter(|name| lake.has_empty(name, format)).cloned().collect())
}
