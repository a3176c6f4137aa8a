//! One Parquet table, its columns encoded by several workers.
//!
//! A row group is a set of column writers. Those of a large row group are dealt out at its table's first rows, so that
//! each worker has about the same to do; a worker keeps its share for all row groups. When the row group ends, each
//! worker closes its columns and delivers them. A small row group is made by one worker in one go, so that its encoders
//! are gone at once. Whoever delivers the last columns of the row group that comes next writes it to the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::error::Result;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use super::file::TableFile;
use super::first_rows::FirstRows;
use super::workers::{Ticket, Workers, least, lock};
use super::{Compression, TableSpec, failure, properties};

/// The cost of ending a file, in bytes of a batch.
const EMPTY_COST: usize = 4 << 10;

/// A Parquet table, as the caller's thread sees it.
#[derive(Debug)]
pub(super) struct ParquetTable {
    path: Arc<Path>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    output: Arc<Mutex<Output>>,
    /// For each leaf, its top-level column.
    roots: Vec<usize>,
    shares: Vec<Share>,
    /// Row groups that have ended.
    ended: usize,
    /// Whether one has begun that has not ended.
    begun: bool,
}

/// The columns of one worker.
#[derive(Debug)]
struct Share {
    worker: usize,
    /// Top-level columns, ascending.
    columns: Vec<usize>,
    /// The writers of their leaves in the current row group, each with the number of its leaf. Only jobs of `worker`
    /// lock this, one after the other.
    writers: Arc<Mutex<Vec<(usize, ArrowColumnWriter)>>>,
}

/// The file, and the columns that wait for their row group to be complete.
#[derive(Debug)]
struct Output {
    writer: SerializedFileWriter<TableFile>,
    /// Number of the row group that is written next.
    next: usize,
    /// By number of the row group. A worker can be ahead of another by more than one.
    incomplete: BTreeMap<usize, Delivered>,
    /// The number of row groups, and the values in the footer; known at the end.
    end: Option<(usize, Vec<KeyValue>)>,
}

/// Columns of a row group.
#[derive(Debug)]
struct Delivered {
    /// Shares that are still to come.
    missing: usize,
    chunks: Vec<(usize, ArrowColumnChunk)>,
}

impl ParquetTable {
    /// A table at `path`, of which nothing is written yet, with pages of this many bytes.
    pub(super) fn new(
        path: PathBuf,
        spec: &TableSpec,
        (compression, page): (Compression, usize),
        first: &FirstRows,
    ) -> Result<ParquetTable> {
        let properties = properties::writer_properties(spec, (compression, page), first)?;
        // Not used to write batches, but it knows how to put the Arrow schema into the footer.
        let (writer, factory) =
            ArrowWriter::try_new(TableFile::new(path.clone()), spec.schema.clone(), Some(properties))
                .and_then(ArrowWriter::into_serialized_writer)
                .map_err(failure::parquet(&path))?;
        let schema = writer.schema_descr();
        let roots = (0..schema.num_columns()).map(|leaf| schema.get_column_root_idx(leaf)).collect();
        let output = Arc::new(Mutex::new(Output { writer, next: 0, incomplete: BTreeMap::new(), end: None }));
        let factory = Arc::new(factory);
        Ok(ParquetTable { path: path.into(), factory, output, roots, shares: Vec::new(), ended: 0, begun: false })
    }

    /// Hands rows to the workers. `sizes` are the bytes of each column, `loads` what each worker has been given so far.
    pub(super) fn write(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        batch: &RecordBatch,
        sizes: &[usize],
        ticket: &Arc<Ticket>,
    ) -> Result<()> {
        let costs: Vec<usize> = batch.columns().iter().zip(sizes).map(|(array, size)| cost(array, *size)).collect();
        if self.shares.is_empty() {
            self.shares = deal(&costs, loads);
        }
        if !self.begun {
            self.begin()?;
        }
        for share in &self.shares {
            let fields = batch.schema_ref().fields().iter();
            let columns = fields.zip(batch.columns()).enumerate().filter(|(column, _)| share.columns.contains(column));
            let columns: Vec<_> = columns.map(|(_, (field, array))| (field.clone(), array.clone())).collect();
            if let Some(load) = loads.get_mut(share.worker) {
                *load += share.columns.iter().filter_map(|&column| costs.get(column)).sum::<usize>();
            }
            let (writers, path) = (share.writers.clone(), self.path.clone());
            workers.submit(share.worker, Some(ticket.clone()), move || {
                encode(&columns, &mut lock(&writers)).map_err(failure::parquet(&path))
            })?;
        }
        Ok(())
    }

    /// Writes a row group, while none is open. One worker holds the ticket until it is done.
    pub(super) fn whole(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        batches: Vec<RecordBatch>,
        ticket: Arc<Ticket>,
    ) -> Result<()> {
        let worker = least(loads);
        if let Some(load) = loads.get_mut(worker) {
            *load += ticket.bytes;
        }
        let (factory, output, path, group) = (self.factory.clone(), self.output.clone(), self.path.clone(), self.ended);
        let roots = self.roots.clone();
        self.ended += 1;
        workers.do_small(worker, Some(ticket), move || {
            let make = || {
                let writers = roots.into_iter().zip(factory.create_column_writers(group)?);
                let chunks = encode_by_column(batches, writers.enumerate())?;
                lock(&output).deliver(group, 1, chunks)
            };
            make().map_err(failure::parquet(&path))
        })
    }

    /// Ends the current row group.
    pub(super) fn cut(&mut self, workers: &Workers) -> Result<()> {
        let (group, shares) = (self.ended, self.shares.len());
        for share in &mut self.shares {
            let (writers, output, path) = (std::mem::take(&mut share.writers), self.output.clone(), self.path.clone());
            workers.submit(share.worker, None, move || {
                let chunks = close_all(std::mem::take(&mut *lock(&writers)));
                chunks.and_then(|chunks| lock(&output).deliver(group, shares, chunks)).map_err(failure::parquet(&path))
            })?;
        }
        self.ended += 1;
        self.begun = false;
        Ok(())
    }

    /// Ends the table, while no row group is open, with `metadata` in its footer.
    pub(super) fn close(&mut self, workers: &Workers, loads: &mut [usize], metadata: Vec<KeyValue>) -> Result<()> {
        let worker = least(loads);
        if let Some(load) = loads.get_mut(worker) {
            *load += EMPTY_COST;
        }
        let (output, path, groups) = (self.output.clone(), self.path.clone(), self.ended);
        workers.do_small(worker, None, move || {
            let mut output = lock(&output);
            output.end = Some((groups, metadata));
            output.write().map_err(failure::parquet(&path))
        })
    }

    /// Bytes of the file so far.
    pub(super) fn written(&self) -> u64 {
        lock(&self.output).writer.inner().written()
    }

    /// Gives each share the writers of its columns for a new row group.
    fn begin(&mut self) -> Result<()> {
        // New cells each time: a worker may still be at the row group before.
        for share in &mut self.shares {
            share.writers = Arc::default();
        }
        let writers = self.factory.create_column_writers(self.ended).map_err(failure::parquet(&self.path))?;
        for ((leaf, writer), root) in writers.into_iter().enumerate().zip(&self.roots) {
            if let Some(share) = self.shares.iter().find(|share| share.columns.contains(root)) {
                lock(&share.writers).push((leaf, writer));
            }
        }
        self.begun = true;
        Ok(())
    }
}

impl Output {
    /// Takes columns of a row group that comes in this many shares, and writes what can be written.
    fn deliver(
        &mut self,
        group: usize,
        shares: usize,
        chunks: Vec<(usize, ArrowColumnChunk)>,
    ) -> std::result::Result<(), ParquetError> {
        let none = || Delivered { missing: shares, chunks: Vec::new() };
        let delivered = self.incomplete.entry(group).or_insert_with(none);
        delivered.missing -= 1;
        delivered.chunks.extend(chunks);
        self.write()
    }

    /// Writes row groups in order as far as they are complete, and the footer behind the last one.
    fn write(&mut self) -> std::result::Result<(), ParquetError> {
        while let Some(first) = self.incomplete.first_entry()
            && *first.key() == self.next
            && first.get().missing == 0
        {
            let mut chunks = first.remove().chunks;
            chunks.sort_by_key(|(leaf, _)| *leaf);
            let mut row_group = self.writer.next_row_group()?;
            for (_, chunk) in chunks {
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close()?;
            self.next += 1;
        }
        if let Some((_, metadata)) = self.end.take_if(|(groups, _)| *groups == self.next) {
            metadata.into_iter().for_each(|pair| self.writer.append_key_value_metadata(pair));
            self.writer.finish()?;
        }
        self.writer.inner_mut().release();
        Ok(())
    }
}

fn encode(
    columns: &[(FieldRef, ArrayRef)],
    writers: &mut [(usize, ArrowColumnWriter)],
) -> std::result::Result<(), ParquetError> {
    let mut writers = writers.iter_mut();
    for (field, array) in columns {
        for leaf in compute_leaves(field, array)? {
            match writers.next() {
                Some((_, writer)) => writer.write(&leaf)?,
                None => return Err(ParquetError::General(format!("column {} has a leaf too many", field.name()))),
            }
        }
    }
    Ok(())
}

/// Encodes all rows of a row group, one column after the other, so that few rows and encoders are there at a time. The
/// writers are those of all leaves, each with the number of its top-level column.
fn encode_by_column(
    batches: Vec<RecordBatch>,
    writers: impl Iterator<Item = (usize, (usize, ArrowColumnWriter))>,
) -> std::result::Result<Vec<(usize, ArrowColumnChunk)>, ParquetError> {
    let fields = batches.first().map(|batch| batch.schema_ref().fields().clone()).unwrap_or_default();
    let mut columns: Vec<_> = batches.into_iter().map(|batch| batch.into_parts().1.into_iter()).collect();
    let mut writers = writers.peekable();
    let mut chunks = Vec::new();
    for (column, field) in fields.iter().enumerate() {
        let own = std::iter::from_fn(|| writers.next_if(|(_, (root, _))| *root == column));
        let mut own: Vec<(usize, ArrowColumnWriter)> = own.map(|(leaf, (_, writer))| (leaf, writer)).collect();
        for array in columns.iter_mut().filter_map(Iterator::next) {
            encode(&[(field.clone(), array)], &mut own)?;
        }
        chunks.extend(close_all(own)?);
    }
    Ok(chunks)
}

fn close_all(
    writers: Vec<(usize, ArrowColumnWriter)>,
) -> std::result::Result<Vec<(usize, ArrowColumnChunk)>, ParquetError> {
    writers.into_iter().map(|(leaf, writer)| Ok((leaf, writer.close()?))).collect()
}

/// Deals the columns out, the dearest first, each to the worker that has least of this table; among equals to the one
/// that has least of all tables.
fn deal(costs: &[usize], loads: &[usize]) -> Vec<Share> {
    let mut dearest: Vec<(usize, usize)> = costs.iter().copied().enumerate().collect();
    dearest.sort_by_key(|&(column, cost)| (std::cmp::Reverse(cost), column));
    let mut hands: Vec<(usize, Vec<usize>)> = loads.iter().map(|_| (0, Vec::new())).collect();
    for (column, cost) in dearest {
        let hand = hands.iter_mut().zip(loads).min_by_key(|((own, _), load)| (*own, **load));
        if let Some(((own, columns), _)) = hand {
            *own += cost.max(1);
            columns.push(column);
        }
    }
    let shares = hands.into_iter().enumerate().filter(|(_, (_, columns))| !columns.is_empty());
    shares
        .map(|(worker, (_, mut columns))| {
            columns.sort_unstable();
            Share { worker, columns, writers: Arc::default() }
        })
        .collect()
}

/// The cost of encoding a column, in bytes of plain numbers: each text is hashed, which costs as much as twelve bytes.
fn cost(array: &ArrayRef, size: usize) -> usize {
    let hashed = matches!(
        array.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary | DataType::Dictionary(..)
    );
    if hashed { size + 12 * array.len() } else { size }
}
