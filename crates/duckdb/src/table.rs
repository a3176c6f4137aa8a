//! `FROM tracequet(file, table)`: the rows of a table of a recording or a dataset.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tracequet_dataset::error::{Error, Result as Read};
use tracequet_dataset::read::{Merged, MergedBatches};

use crate::capi::{Asked, Columns, Rows, TableFunction, type_of};
use crate::session::{self, Opened};

/// The table function `tracequet`.
pub struct ReadTable;

/// A table.
pub struct Bound {
    /// The dataset of the table, kept as long as it may be read.
    opened: Opened,
    table: Merged,
}

impl TableFunction for ReadTable {
    type Bound = Bound;

    const NAME: &'static str = "tracequet";
    const PARAMETERS: u64 = 2;
    const OPTIONS: &'static [&'static str] = &[];

    fn bind(&self, asked: &Asked) -> Result<(Bound, Columns, Option<u64>), String> {
        let (input, name) = (Path::new(asked.parameter(0)), asked.parameter(1));
        let found = || -> Read<_> {
            let opened = session::open(input)?;
            let Some(info) = opened.dataset().tables().iter().find(|table| table.name == name) else {
                // By the name that was given: that of a temporary dataset says nothing.
                let what = format!("{}: no table {name}, expected one of `tracequet_open`", input.display());
                return Err(Error::Usage(what));
            };
            let (rows, table) = (info.rows, opened.dataset().merged(name)?);
            Ok((Bound { opened, table }, rows))
        };
        let (bound, rows) = found().map_err(|error| error.to_string())?;
        let mut columns = Columns::new();
        for field in bound.table.schema.fields() {
            let of = type_of(field.data_type());
            let of = of.ok_or_else(|| format!("{name}: the column {} is {}", field.name(), field.data_type()))?;
            columns.push((field.name().clone(), of));
        }
        Ok((bound, columns, Some(rows)))
    }

    fn scan(&self, bound: &Bound, columns: &[usize]) -> Result<Box<dyn Rows>, String> {
        let columns = bound.table.schema.project(columns).map_err(|error| error.to_string())?;
        let batches = bound.table.clone().batches(Arc::new(columns));
        Ok(Box::new(Reading { batches, _opened: bound.opened.clone() }))
    }
}

/// The rows of a table, recording by recording.
struct Reading {
    batches: MergedBatches,
    _opened: Opened,
}

impl Rows for Reading {
    fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        self.batches.next().transpose().map_err(|error| error.to_string())
    }
}
