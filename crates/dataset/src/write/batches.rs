//! A sink without files: batches go to a function of the caller.

use crate::prelude::*;

use super::order::Order;
use super::{DatasetWriter, TableId, TableSpec, WrittenTable};

/// A sink, which takes the tables of recordings.
pub trait TableSink {
    /// Declares a table. It exists from here on, even when no rows come.
    fn table(&mut self, spec: TableSpec) -> Result<TableId>;

    /// Takes rows of a table.
    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()>;

    /// Ends all open tables, each with `metadata`, and says what they have become, in the order in which they were
    /// declared.
    fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>>;

    /// An error when there is no sense in reading on. Called now and then, also while no rows come.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Whether all rows that there are shall be handed over now, complete batches or not, and then be published.
    fn is_due(&self) -> bool {
        false
    }

    /// Publishes what was handed over. Called when [`TableSink::is_due`] says so.
    fn publish(&mut self) -> Result<()> {
        Ok(())
    }
}

impl TableSink for DatasetWriter {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        DatasetWriter::table(self, spec)
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        DatasetWriter::write(self, table, batch)
    }

    fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        DatasetWriter::close_tables(self, metadata)
    }
}

/// Hands the rows of each table to a function, in batches whose rows are in the order of the table, as in an Arrow IPC
/// file.
pub struct BatchSink<'f> {
    tables: Vec<BatchTable>,
    /// Tables before this one are closed.
    first_open: usize,
    receive: &'f mut Receive<'f>,
    go_on: &'f dyn Fn() -> bool,
}

/// Takes a table's name and rows; `false` wants no more. The first batch of a table has no rows.
pub type Receive<'f> = dyn FnMut(&str, RecordBatch) -> bool + 'f;

struct BatchTable {
    spec: TableSpec,
    order: Order,
    rows: u64,
    bytes: u64,
}

impl<'f> BatchSink<'f> {
    /// Rows go to `receive`. Nothing more is read once `go_on` is false.
    pub fn new(receive: &'f mut Receive<'f>, go_on: &'f dyn Fn() -> bool) -> BatchSink<'f> {
        BatchSink { tables: Vec::new(), first_open: 0, receive, go_on }
    }
}

/// The error with which a sink ends the reading of a recording that is not needed any more. It never reaches a caller.
fn stopped() -> Error {
    Error::Internal("the receiver of the batches wants no more".into())
}

impl TableSink for BatchSink<'_> {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        let order = Order::of(&spec)?;
        if !(self.receive)(&spec.name, RecordBatch::new_empty(spec.schema.clone())) {
            return Err(stopped());
        }
        self.tables.push(BatchTable { spec, order, rows: 0, bytes: 0 });
        Ok(TableId(self.tables.len() - 1))
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        let open = self.tables.get_mut(table.0).filter(|_| table.0 >= self.first_open);
        let table = open.ok_or_else(|| Error::Internal("no such open table".into()))?;
        let batch = match table.order.span(&batch).sorted {
            true => batch,
            false => {
                table.order.sort(vec![batch]).map_err(|e| Error::Internal(format!("table {}: {e}", table.spec.name)))?
            }
        };
        table.rows += batch.num_rows() as u64;
        table.bytes += batch.get_array_memory_size() as u64;
        if (self.receive)(&table.spec.name, batch) { Ok(()) } else { Err(stopped()) }
    }

    fn close_tables(&mut self, _: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        let closed = self.tables.get(self.first_open..).unwrap_or_default();
        let written = closed.iter().map(|table| WrittenTable {
            name: table.spec.name.clone(),
            path: String::new(),
            rows: table.rows,
            bytes: table.bytes,
        });
        let written = written.collect();
        self.first_open = self.tables.len();
        Ok(written)
    }

    fn check(&self) -> Result<()> {
        if (self.go_on)() { Ok(()) } else { Err(stopped()) }
    }
}
