//! Files of a recording that may turn out to have no tables: created with the first table.

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::write::{DatasetWriter, TableId, TableSink, TableSpec, WrittenTable};

/// A dataset that is begun when the first table is declared.
pub(crate) struct Late<'m> {
    make: &'m dyn Fn() -> Result<DatasetWriter>,
    made: Option<DatasetWriter>,
}

impl<'m> Late<'m> {
    /// One that `make` begins.
    pub(crate) fn new(make: &'m dyn Fn() -> Result<DatasetWriter>) -> Late<'m> {
        Late { make, made: None }
    }

    /// The dataset, with or without tables.
    pub(crate) fn into_dataset(self) -> Result<DatasetWriter> {
        self.made.map_or_else(self.make, Ok)
    }

    fn dataset(&mut self) -> Result<&mut DatasetWriter> {
        Ok(match &mut self.made {
            Some(made) => made,
            none => none.insert((self.make)()?),
        })
    }
}

impl TableSink for Late<'_> {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        self.dataset()?.table(spec)
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        self.dataset()?.write(table, batch)
    }

    fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        self.dataset()?.close_tables(metadata)
    }
}
