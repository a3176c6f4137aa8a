//! A sink that keeps the tables of a recording in memory.

use arrow_array::RecordBatch;
use tracequet_dataset::error::{Error, Result};

use tracequet_dataset::write::{TableId, TableSink, TableSpec, WrittenTable};

/// The tables of a small recording, which come into a dataset together with those of others.
#[derive(Debug, Default)]
pub struct HeldTables {
    /// The tables.
    pub tables: Vec<HeldTable>,
    /// Tables before this one are closed.
    first_open: usize,
}

/// A table, with all its rows.
#[derive(Debug)]
pub struct HeldTable {
    /// The table.
    pub spec: TableSpec,
    /// The rows, as they came.
    pub batches: Vec<RecordBatch>,
}

impl HeldTables {
    /// The tables, in the order in which they were declared.
    pub fn iter(&self) -> impl Iterator<Item = &HeldTable> {
        self.tables.iter()
    }
}

impl HeldTable {
    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }
}

impl TableSink for HeldTables {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        if self.tables.iter().any(|table| table.spec.name == spec.name) {
            return Err(Error::Internal(format!("the recording has a table {} already", spec.name)));
        }
        self.tables.push(HeldTable { spec, batches: Vec::new() });
        Ok(TableId(self.tables.len() - 1))
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        let open = self.tables.get_mut(table.0).filter(|_| table.0 >= self.first_open);
        let table = open.ok_or_else(|| Error::Internal("no such open table".into()))?;
        if batch.schema_ref().fields() != table.spec.schema.fields() {
            return Err(Error::Internal(format!("table {}: a batch has other columns than it", table.spec.name)));
        }
        if batch.num_rows() > 0 {
            table.batches.push(batch);
        }
        Ok(())
    }

    /// The number of bytes of a table in a file is not known here: 0 of each.
    fn close_tables(&mut self, _: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        let closed = self.tables.get(self.first_open..).unwrap_or_default();
        let written = closed.iter().map(|table| WrittenTable {
            name: table.spec.name.clone(),
            path: String::new(),
            rows: table.rows(),
            bytes: 0,
        });
        let written = written.collect();
        self.first_open = self.tables.len();
        Ok(written)
    }
}
