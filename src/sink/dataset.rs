//! A dataset in the making, and the rules by which row groups end.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::file::metadata::KeyValue;
use arrow_array::RecordBatch;
use arrow_schema::DataType;

use super::arrow::ArrowTable;
use super::measure::Meter;
use super::parquet::ParquetTable;
use super::place::{self, Place};
use super::workers::{Ticket, Workers};
use super::{DatasetOptions, Format, TableId, TableSpec, WrittenTable, properties};
use crate::error::{Error, Result};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes of a row group, as batches. Encoded it is smaller.
const GROUP_BYTES: usize = 64 << 20;
/// Bytes of all row groups that have not ended, as batches. They are held in memory, encoded.
const OPEN_BYTES: usize = 96 << 20;
/// Bytes that the encoder of one Parquet column holds whatever it is given: most of it is the compressor's.
const ENCODER_BYTES: usize = 24 << 10;

/// A dataset in the making: tables are declared, filled and closed, and [`Dataset::commit`] puts the whole in place.
/// Dropped without a commit, it leaves nothing behind.
///
/// A failure of an encoding thread comes out of the next call, and nothing can be committed after it.
pub struct Dataset {
    // Dropped in this order: the directory must outlive the threads and the open files, which flush what they hold.
    workers: Workers,
    tables: Vec<Table>,
    place: Place,
    options: DatasetOptions,
    taken: HashSet<PathBuf>,
    /// Bytes given to each worker, the measure by which tables are dealt out.
    loads: Vec<usize>,
    /// Bytes of all row groups that have not ended.
    open_bytes: usize,
}

struct Table {
    spec: TableSpec,
    path: String,
    writer: Writer,
    open: bool,
    meter: Meter,
    rows: u64,
    /// Of the current row group.
    group_rows: usize,
    group_bytes: usize,
    /// What opening a row group costs.
    opening_bytes: usize,
}

enum Writer {
    Parquet(Box<ParquetTable>),
    Arrow(ArrowTable),
}

impl Dataset {
    /// Begins a dataset that will stand at `out`. It grows in a hidden directory beside it.
    ///
    /// Something that stands there already is a usage error, unless `overwrite` is set and it is a dataset of
    /// tracequet (its `manifest.json` has `"tool": "tracequet"`) or an empty directory.
    pub fn create(out: &Path, options: DatasetOptions) -> Result<Dataset> {
        properties::check(options.format, options.compression)?;
        let place = Place::new(out, options.overwrite)?;
        let workers = Workers::start(options.threads).map_err(Error::io(out))?;
        let loads = vec![0; workers.count()];
        Ok(Dataset { workers, place, options, taken: HashSet::new(), tables: Vec::new(), loads, open_bytes: 0 })
    }

    /// Sets the partition of the tables that are declared from here on.
    pub fn set_partition(&mut self, partition: Option<String>) {
        self.options.partition = partition;
    }

    /// Declares a table. It will have a file even when no rows are written.
    pub fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        let (format, compression) = (self.options.format, self.options.compression);
        let extension = match format {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        };
        let path = match &self.options.partition {
            Some(partition) => format!("{}/{partition}/part-0.{extension}", spec.name),
            None => format!("{}.{extension}", spec.name),
        };
        // Alone, too: an empty name would be hidden by the extension.
        place::relative(&spec.name)?;
        let file = self.claim(&path)?;
        let writer = match format {
            Format::Parquet => Writer::Parquet(Box::new(ParquetTable::new(file, &spec, compression)?)),
            Format::Arrow => Writer::Arrow(ArrowTable::new(file, &spec, compression)?),
        };
        let opening_bytes = match format {
            Format::Parquet => {
                spec.schema.fields().iter().map(|f| leaves(f.data_type())).sum::<usize>() * ENCODER_BYTES
            }
            Format::Arrow => 0,
        };
        self.tables.push(Table {
            spec,
            path,
            writer,
            open: true,
            meter: Meter::default(),
            rows: 0,
            group_rows: 0,
            group_bytes: 0,
            opening_bytes,
        });
        Ok(TableId(self.tables.len() - 1))
    }

    /// Hands rows of a table to the workers; waits while too much is in their hands already.
    pub fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        self.workers.check()?;
        let table = open(&mut self.tables, table)?;
        if batch.schema_ref().fields() != table.spec.schema.fields() {
            return Err(Error::Internal(format!("table {}: a batch has other columns than it", table.spec.name)));
        }
        let sizes = table.meter.measure(&batch);
        let (all_rows, all_bytes) = (batch.num_rows(), sizes.iter().sum::<usize>());
        let row_bytes = (all_bytes / all_rows.max(1)).max(1);
        let mut start = 0;
        while start < all_rows {
            let fit = (GROUP_BYTES.saturating_sub(table.group_bytes) / row_bytes).max(1);
            let rows = (all_rows - start).min(GROUP_ROWS - table.group_rows).min(fit);
            let bytes = rows * row_bytes;
            let ticket = self.workers.admit(bytes);
            table.write(&self.workers, &mut self.loads, batch.slice(start, rows), &sizes, &ticket)?;
            start += rows;
            self.open_bytes -= table.held();
            table.group_rows += rows;
            table.group_bytes += bytes;
            self.open_bytes += table.held();
            if table.group_rows >= GROUP_ROWS || table.group_bytes + row_bytes > GROUP_BYTES {
                self.open_bytes -= table.cut(&self.workers)?;
            }
        }
        while self.open_bytes > OPEN_BYTES {
            // The largest: it makes the most room, and it loses the least by a small row group.
            let Some(largest) = self.tables.iter_mut().rev().max_by_key(|table| table.held()) else { break };
            self.open_bytes -= largest.cut(&self.workers)?;
        }
        Ok(())
    }

    /// Ends the current row group of a table, as when the order of its rows begins anew. Without rows since the last
    /// end, and in Arrow IPC, nothing happens.
    pub fn cut(&mut self, table: TableId) -> Result<()> {
        self.workers.check()?;
        self.open_bytes -= open(&mut self.tables, table)?.cut(&self.workers)?;
        Ok(())
    }

    /// Ends all open tables, each with `metadata` in its footer, and says what they have become, in the order in which
    /// they were declared.
    pub fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        let footer: Arc<[KeyValue]> =
            metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let metadata: Arc<[(String, String)]> = metadata.into();
        let mut closed = Vec::new();
        for table in self.tables.iter_mut().filter(|table| table.open) {
            table.open = false;
            self.open_bytes -= table.held();
            (table.group_rows, table.group_bytes) = (0, 0);
            match &mut table.writer {
                Writer::Parquet(parquet) => parquet.close(&self.workers, &mut self.loads, footer.clone())?,
                Writer::Arrow(arrow) => arrow.close(&self.workers, &self.loads, metadata.clone())?,
            }
            closed.push(&*table);
        }
        self.workers.wait()?;
        Ok(closed.into_iter().map(Table::summary).collect())
    }

    /// Writes a file that is no table, such as `manifest.json`.
    pub fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.claim(name)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        std::fs::write(&path, bytes).map_err(Error::io(path))
    }

    /// Puts the dataset in its place. All tables must be closed.
    pub fn commit(self) -> Result<()> {
        self.workers.check()?;
        if self.tables.iter().any(|table| table.open) {
            return Err(Error::Internal("a dataset is committed with open tables".into()));
        }
        self.place.commit()
    }

    /// The path of a file that nothing else in the dataset may have.
    fn claim(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.place.path().join(place::relative(name)?);
        if self.taken.insert(path.clone()) {
            Ok(path)
        } else {
            Err(Error::Internal(format!("{name} is in the dataset already")))
        }
    }
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset")
            .field("place", &self.place)
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

impl Table {
    fn write(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        batch: RecordBatch,
        sizes: &[usize],
        ticket: &Arc<Ticket>,
    ) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        match &mut self.writer {
            Writer::Parquet(parquet) => parquet.write(workers, loads, &batch, sizes, ticket),
            Writer::Arrow(arrow) => arrow.write(workers, loads, batch, sizes.iter().sum(), ticket),
        }
    }

    /// Bytes that the current row group holds.
    fn held(&self) -> usize {
        if self.group_rows == 0 { 0 } else { self.group_bytes + self.opening_bytes }
    }

    /// Ends the row group and returns the bytes it held.
    fn cut(&mut self, workers: &Workers) -> Result<usize> {
        let held = self.held();
        (self.group_rows, self.group_bytes) = (0, 0);
        if let Writer::Parquet(parquet) = &mut self.writer {
            parquet.cut(workers)?;
        }
        Ok(held)
    }

    fn summary(&self) -> WrittenTable {
        let bytes = match &self.writer {
            Writer::Parquet(parquet) => parquet.written(),
            Writer::Arrow(arrow) => arrow.written(),
        };
        WrittenTable { name: self.spec.name.clone(), path: self.path.clone(), rows: self.rows, bytes }
    }
}

/// Parquet columns that a field becomes.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(element) => leaves(element.data_type()),
        DataType::Struct(fields) => fields.iter().map(|f| leaves(f.data_type())).sum(),
        _ => 1,
    }
}

fn open(tables: &mut [Table], table: TableId) -> Result<&mut Table> {
    let table = tables.get_mut(table.0).filter(|table| table.open);
    table.ok_or_else(|| Error::Internal("no such open table".into()))
}
