//! Reading a table: which columns, which rows may be left out, and batch by batch.

use std::fmt::Display;
use std::fs::File;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::Table;
use super::arrow_file::ArrowBatches;
use super::parquet_file::{self, ParquetBatches};
use crate::error::{Error, Result};
use crate::sink::Format;

/// Rows that a batch has at most.
pub(super) const BATCH_ROWS: usize = 16 << 10;

/// What is to be read of a table.
#[derive(Clone, Debug)]
#[must_use = "a scan reads nothing before `batches` is called"]
pub struct Scan<'t> {
    table: &'t Table,
    columns: Option<Vec<String>>,
    between: Vec<Between>,
}

/// Rows whose value of a column lies outside these bounds are not needed.
#[derive(Clone, Debug)]
pub(super) struct Between {
    pub column: String,
    pub low: u64,
    pub high: u64,
}

impl<'t> Scan<'t> {
    pub(super) fn new(table: &'t Table) -> Scan<'t> {
        Scan { table, columns: None, between: Vec::new() }
    }

    /// Reads only these columns. Batches have them in the order of the table.
    pub fn columns<C: Into<String>>(mut self, names: impl IntoIterator<Item = C>) -> Scan<'t> {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves out parts of the file in which a column of whole numbers has no value in this range, by the least and the
    /// greatest value of each row group in Parquet. **Rows are not filtered**: others may come as well, and all come
    /// from an Arrow file, which has no such statistics. Signed columns are compared by the same bits
    /// (`--address-type int64`).
    pub fn between(mut self, column: &str, range: RangeInclusive<u64>) -> Scan<'t> {
        self.between.push(Between { column: column.into(), low: *range.start(), high: *range.end() });
        self
    }

    /// Opens the file and reads it batch by batch. A batch has at most 16,384 rows. Of a Parquet file, a page of each
    /// column is in memory at a time; of an Arrow file, a batch as it was written.
    pub fn batches(&self) -> Result<Batches> {
        let Table { path, format, .. } = self.table;
        let file = File::open(path).map_err(Error::io(path))?;
        Ok(Batches(match format {
            Format::Parquet => Kind::Parquet(parquet_file::open(path, file, self)?),
            Format::Arrow => Kind::Arrow(Box::new(ArrowBatches::open(path, file, self)?)),
        }))
    }

    pub(super) fn ranges(&self) -> &[Between] {
        &self.between
    }

    /// The places of the wanted columns in a table; `None` means all.
    pub(super) fn projection(&self, schema: &SchemaRef) -> Result<Option<Vec<usize>>> {
        let Some(names) = &self.columns else { return Ok(None) };
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            places.push(schema.index_of(name).map_err(|_| self.no_column(name))?);
        }
        places.sort_unstable();
        places.dedup();
        Ok(Some(places))
    }

    fn no_column(&self, name: &str) -> Error {
        let expected = format!("it to be a column of the table {}", self.table.name);
        Error::Dataset { path: self.table.path.clone(), what: format!("there is no column {name}"), expected }
    }
}

/// The error for a file that is no whole file of its format.
pub(super) fn damaged(path: &Path, format: &str, what: impl Into<String>) -> Error {
    Error::Dataset { path: path.to_owned(), what: what.into(), expected: format.into() }
}

/// Calls a reader of arrow-rs. Those panic over some damaged files; here that is an error as any other.
pub(super) fn guarded<T, E: Display>(
    path: &Path,
    format: &str,
    read: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    // Unwind safe: what panicked is not used again.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|e| damaged(path, format, e.to_string())),
        Err(_) => Err(damaged(path, format, "the reader gave up on the file")),
    }
}

/// The batches of a [`Scan`]. After an error there are no more.
pub struct Batches(Kind);

enum Kind {
    Parquet(ParquetBatches),
    Arrow(Box<ArrowBatches>),
}

impl Batches {
    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        match &self.0 {
            Kind::Parquet(batches) => batches.schema(),
            Kind::Arrow(batches) => batches.schema(),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        match &mut self.0 {
            Kind::Parquet(batches) => batches.next(),
            Kind::Arrow(batches) => batches.next(),
        }
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("schema", &self.schema()).finish_non_exhaustive()
    }
}
