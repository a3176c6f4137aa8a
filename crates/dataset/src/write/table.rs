//! One table of a dataset, and its row group in the making.

use crate::prelude::*;

use ::parquet::file::metadata::KeyValue;
use arrow_schema::{ArrowError, DataType};

use super::arrow::ArrowTable;
use super::first_rows::FirstRows;
use super::limits::Limits;
use super::measure::Meter;
use super::order::{Key, Order};
use super::parquet::ParquetTable;
use super::waiting::Waiting;
use super::workers::Workers;
use super::{Compression, Format, TableSpec, WrittenTable};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes that the encoder of one Parquet column holds before it is given a row: buffers of the compressor, and a table
/// of distinct values.
const ENCODER_BYTES: usize = 128 << 10;

/// A table in the making.
pub(super) struct Table {
    pub(super) spec: TableSpec,
    pub(super) open: bool,
    pub(super) meter: Meter,
    output: Output,
    order: Order,
    rows: u64,
    group: Group,
    /// Bytes that its encoders hold.
    encoder_bytes: usize,
}

/// Where the file of a table is.
#[derive(Clone, Debug)]
pub(super) struct TablePath {
    /// Where it is written.
    pub(super) here: PathBuf,
    /// The place in the dataset.
    pub(super) place: String,
}

enum Writer {
    Parquet(Box<ParquetTable>),
    Arrow(ArrowTable),
}

/// The file of a table, and what writes it.
struct Output {
    path: TablePath,
    format: Format,
    compression: Compression,
    limits: Limits,
    /// Made for the first rows, or at the end: making one costs more than most tables have rows.
    writer: Option<Writer>,
}

impl Output {
    /// The writer of the table. The first call makes it, by the rows that the table begins with.
    fn writer(&mut self, spec: &TableSpec, first: impl FnOnce() -> FirstRows) -> Result<&mut Writer> {
        let (here, compression, page) = (&self.path.here, self.compression, self.limits.page);
        Ok(match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(match self.format {
                Format::Parquet => {
                    Writer::Parquet(Box::new(ParquetTable::new(here.clone(), spec, (compression, page), &first())?))
                }
                Format::Arrow => Writer::Arrow(ArrowTable::new(here.clone(), spec, compression)?),
            }),
        })
    }

    fn parquet(&mut self, spec: &TableSpec, first: impl FnOnce() -> FirstRows) -> Result<&mut ParquetTable> {
        match self.writer(spec, first)? {
            Writer::Parquet(parquet) => Ok(parquet),
            Writer::Arrow(_) => Err(Error::Internal("a Parquet table with the writer of another format".into())),
        }
    }
}

/// The current row group.
#[derive(Default)]
struct Group {
    rows: usize,
    bytes: usize,
    /// Rows that have no encoders yet.
    waiting: Waiting,
    /// The last of the rows that encoders have; `None` while there are no encoders.
    last: Option<Key>,
}

impl Table {
    /// A table of which nothing is written yet.
    pub(super) fn new(
        spec: TableSpec,
        path: TablePath,
        (format, compression): (Format, Compression),
        limits: Limits,
    ) -> Result<Table> {
        let order = Order::of(&spec)?;
        if spec.encodings.len() != spec.schema.fields().len() {
            let (encodings, columns) = (spec.encodings.len(), spec.schema.fields().len());
            let message = format!("table {}: {encodings} encodings for {columns} columns", spec.name);
            return Err(Error::Internal(message));
        }
        let leaves = spec.schema.fields().iter().map(|f| leaves(f.data_type())).sum::<usize>();
        Ok(Table {
            spec,
            open: true,
            meter: Meter::default(),
            output: Output { path, format, compression, limits, writer: None },
            order,
            rows: 0,
            group: Group::default(),
            encoder_bytes: leaves * ENCODER_BYTES,
        })
    }

    /// The number of rows of this size for which the row group has room; one at least.
    pub(super) fn room(&self, row_bytes: usize) -> usize {
        let fit = (self.output.limits.group.saturating_sub(self.group.bytes) / row_bytes.max(1)).max(1);
        fit.min(GROUP_ROWS.saturating_sub(self.group.rows)).max(1)
    }

    /// Takes rows, for which there is room. `sizes` are the bytes of each column, `loads` what each worker has been
    /// given.
    pub(super) fn add(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        batch: RecordBatch,
        sizes: Vec<usize>,
    ) -> Result<()> {
        let (rows, bytes) = (batch.num_rows(), sizes.iter().sum::<usize>());
        self.rows += rows as u64;
        let span = self.order.span(&batch);
        let is_late = |last: &Key| span.first < *last;
        if self.group.last.as_ref().is_some_and(is_late) {
            self.cut(workers, loads)?;
        }
        let sorted = |batch: RecordBatch| match span.sorted {
            true => Ok(batch),
            false => self.order.sort(vec![batch]).map_err(refused(&self.spec)),
        };
        if self.output.format == Format::Arrow {
            // Batches are sorted, each by itself; they wait for nothing.
            let batch = sorted(batch)?;
            let Writer::Arrow(arrow) = self.output.writer(&self.spec, FirstRows::default)? else {
                return Err(Error::Internal("an Arrow table without its writer".into()));
            };
            return arrow.write(workers, loads, batch, bytes, &workers.admit(bytes));
        }
        self.group.rows += rows;
        self.group.bytes += bytes;
        if self.group.last.is_some() {
            let batch = sorted(batch)?;
            let parquet = self.output.parquet(&self.spec, FirstRows::default)?;
            parquet.write(workers, loads, &batch, &sizes, &workers.admit(bytes))?;
            self.group.last = Some(span.last);
        } else {
            self.group.waiting.push(batch, sizes, span);
            if self.group.waiting.bytes >= self.output.limits.waiting {
                let ticket = workers.admit(self.group.waiting.bytes);
                let parquet = self.output.parquet(&self.spec, || self.group.waiting.first_rows())?;
                let (batches, last) = self.group.waiting.take(&self.order).map_err(refused(&self.spec))?;
                for (batch, sizes) in batches {
                    parquet.write(workers, loads, &batch, &sizes, &ticket)?;
                }
                self.group.last = Some(last);
            }
        }
        if self.group.rows >= GROUP_ROWS || self.group.bytes + bytes / rows.max(1) > self.output.limits.group {
            self.cut(workers, loads)?;
        }
        Ok(())
    }

    /// Bytes that the current row group holds.
    pub(super) fn held(&self) -> usize {
        match self.group.last {
            None => self.group.waiting.bytes,
            Some(_) => self.group.bytes + self.encoder_bytes,
        }
    }

    /// Ends the row group, if one has begun.
    pub(super) fn cut(&mut self, workers: &Workers, loads: &mut [usize]) -> Result<()> {
        let Group { rows, mut waiting, last, .. } = std::mem::take(&mut self.group);
        if rows == 0 || self.output.format == Format::Arrow {
            return Ok(());
        }
        let parquet = self.output.parquet(&self.spec, || waiting.first_rows())?;
        if last.is_some() {
            return parquet.cut(workers);
        }
        let ticket = workers.admit(waiting.bytes);
        let (batches, _) = waiting.take(&self.order).map_err(refused(&self.spec))?;
        parquet.whole(workers, loads, batches.into_iter().map(|(batch, _)| batch).collect(), ticket)
    }

    /// Ends the table without a file, which is right only as long as it has no rows.
    pub(super) fn leave_out(&mut self) {
        self.open = false;
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The file, if there is one.
    pub(super) fn file(&self) -> Option<&TablePath> {
        self.output.writer.as_ref().map(|_| &self.output.path)
    }

    /// Ends the table with `metadata` in its footer.
    pub(super) fn close(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        metadata: &Arc<[(String, String)]>,
    ) -> Result<()> {
        self.open = false;
        if self.group.rows > 0 && self.group.last.is_none() {
            // If nothing is written yet, these are all rows of the table.
            self.output.writer(&self.spec, || self.group.waiting.all_rows())?;
        }
        self.cut(workers, loads)?;
        match self.output.writer(&self.spec, FirstRows::default)? {
            Writer::Parquet(parquet) => {
                let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
                parquet.close(workers, loads, pairs.collect())
            }
            Writer::Arrow(arrow) => arrow.close(workers, loads, metadata.clone()),
        }
    }

    /// The summary of the table that was written.
    pub(super) fn summary(&self) -> WrittenTable {
        let bytes = match &self.output.writer {
            Some(Writer::Parquet(parquet)) => parquet.written(),
            Some(Writer::Arrow(arrow)) => arrow.written(),
            None => 0,
        };
        WrittenTable { name: self.spec.name.clone(), path: self.output.path.place.clone(), rows: self.rows, bytes }
    }
}

fn refused(spec: &TableSpec) -> impl FnOnce(ArrowError) -> Error + '_ {
    move |error| Error::Internal(format!("table {}: {error}", spec.name))
}

/// Parquet columns that a field becomes.
fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(element) => leaves(element.data_type()),
        DataType::Struct(fields) => fields.iter().map(|f| leaves(f.data_type())).sum(),
        _ => 1,
    }
}
