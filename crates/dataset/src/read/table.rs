//! A table of one recording, read batch by batch.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tracequet_trace::error::{Error, Result};

use super::arrow_file::ArrowBatches;
use super::parquet_file::{self, ParquetBatches};
use super::wanted::{Between, Wanted};
use crate::format::Format;

/// A table of one recording.
#[derive(Clone, Debug)]
pub struct Table {
    name: String,
    path: PathBuf,
    format: Format,
}

impl Table {
    pub(super) fn new(name: &str, path: PathBuf, format: Format) -> Table {
        Table { name: name.to_owned(), path, format }
    }

    /// The table in a file that is no part of a dataset that was opened.
    pub fn of_file(name: &str, path: PathBuf, format: Format) -> Table {
        Table::new(name, path, format)
    }

    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to read it: all columns of all rows, unless the [`Scan`] is changed.
    pub fn scan(&self) -> Scan {
        let wanted = Wanted { path: self.path.clone(), columns: None, between: Vec::new() };
        Scan { format: self.format, wanted }
    }
}

/// What is to be read of a table.
#[derive(Clone, Debug)]
#[must_use = "a scan reads nothing before `batches` is called"]
pub struct Scan {
    format: Format,
    wanted: Wanted,
}

impl Scan {
    /// Reads only these columns. Batches have them in the order of the table.
    pub fn columns<C: Into<String>>(mut self, names: impl IntoIterator<Item = C>) -> Scan {
        self.wanted.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves out parts of the file in which a column of whole numbers has no value in this range, by the least and the
    /// greatest value of each row group in Parquet. **Rows are not filtered**: others may come as well, and all come
    /// from an Arrow file, which has no such statistics. Signed columns are compared by the same bits
    /// (`--address-type int64`).
    pub fn between(mut self, column: &str, range: RangeInclusive<u64>) -> Scan {
        self.wanted.between.push(Between { column: column.into(), low: *range.start(), high: *range.end() });
        self
    }

    /// Opens the file and reads it batch by batch. A batch has at most 16,384 rows. Of a Parquet file, a page of each
    /// column is in memory at a time; of an Arrow file, a batch as it was written.
    pub fn batches(&self) -> Result<Batches> {
        let path = &self.wanted.path;
        let file = File::open(path).map_err(Error::io(path))?;
        Ok(Batches(match self.format {
            Format::Parquet => Kind::Parquet(parquet_file::open(file, &self.wanted)?),
            Format::Arrow => Kind::Arrow(Box::new(ArrowBatches::open(file, &self.wanted)?)),
        }))
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
