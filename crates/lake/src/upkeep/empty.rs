//! The files without rows of a dataset of several recordings: one for each table, so that no recording needs one for a
//! table of which it has no rows, and a glob over the files of a table still finds its columns.

use crate::files::Lake;
use crate::prelude::*;
use tracequet_dataset::format::AddressType;
use tracequet_dataset::format::paths::{self, NO_RECORDING};
use tracequet_dataset::format::{Format, VERSION};
use tracequet_dataset::table::schema::{self, SCHEMA_VERSION};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::{DatasetOptions, DatasetWriter, Encoders, TableSpec};
use tracequet_trace::time::Clock;

/// The tables that are asked for, but for those of events, which exist only where there are such events.
#[derive(Debug)]
pub struct Empty {
    options: DatasetOptions,
    specs: Vec<TableSpec>,
}

impl Empty {
    /// Of the tables of a selection, written with these options.
    pub fn of(address_type: AddressType, selection: &Selection, options: DatasetOptions) -> Result<Empty> {
        let signed = address_type == AddressType::Int64;
        let shape = Shape { trace_id: Some(NO_RECORDING.to_owned()), signed };
        // Neither matters without rows.
        let (clock, pointer_size) = (Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 }, 8);
        let tables = Tables::new(selection.clone(), clock, pointer_size, shape)?;
        let specs = tables.specs().iter().filter(|spec| selection.asks_for(&spec.name)).cloned().collect();
        let options = DatasetOptions { partition: Some(paths::partition(NO_RECORDING)), ..options };
        Ok(Empty { options, specs })
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }

    /// Puts the files into a dataset that lacks them. `version` is that of its tables, if it says one: of another all
    /// files are rewritten, since those of a table must have the same columns.
    pub fn put(&self, lake: &Lake, encoders: &Arc<Encoders>, version: Option<u32>) -> Result<()> {
        let names: Vec<&str> = self.names().collect();
        let there = match version {
            Some(SCHEMA_VERSION) => lake.has_empty(&names, self.options.format)?,
            _ => vec![false; names.len()],
        };
        let wanted: Vec<&TableSpec> =
            self.specs.iter().zip(there).filter(|(_, is)| !is).map(|(spec, _)| spec).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut dataset = DatasetWriter::part_of(lake.storage().folder(), encoders.clone(), self.options.clone())?;
        for spec in wanted {
            dataset.table(spec.clone())?;
        }
        let footer = [("version", VERSION.to_owned()), ("schema_version", SCHEMA_VERSION.to_string())];
        dataset.close_tables(&footer.map(|(name, value)| (format!("tracequet.{name}"), value)))?;
        lake.put_empty(dataset)
    }
}

/// The tables of which a dataset has such a file.
pub(crate) fn there(lake: &Lake, format: Format) -> Result<Vec<String>> {
    let names: Vec<&str> = schema::all()?.iter().map(|table| table.name.as_str()).collect();
    let there = lake.has_empty(&names, format)?;
    Ok(names.into_iter().zip(there).filter(|(_, is)| *is).map(|(name, _)| name.to_owned()).collect())
}
