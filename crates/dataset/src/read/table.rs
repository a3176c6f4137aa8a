//! A table of one recording, read batch by batch.

use std::fs::File;
use std::ops::{Range, RangeInclusive};

use arrow_schema::SchemaRef;

use super::arrow_file::ArrowBatches;
use super::footers::Footers;
use super::parquet_file::{self, ParquetBatches};
use super::shared_file::SharedFile;
use super::wanted::{Between, Wanted};
use crate::format::Format;
use crate::prelude::*;
use crate::write::place_of;

/// A part of a table: a file, or some rows of one.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The dataset that it is in, and its name there, by which it is looked for when it is not in its place.
    place: Option<(PathBuf, String)>,
    path: PathBuf,
    /// The rows that belong to the table; without it all.
    rows: Option<Range<u64>>,
    /// The number of rows of the file, if some belong to others.
    of: u64,
}

impl Piece {
    fn whole(path: PathBuf) -> Piece {
        Piece { place: None, path, rows: None, of: 0 }
    }

    /// The file of this name in the dataset at `root`.
    pub(super) fn of_dataset(root: &Path, name: String) -> Piece {
        let path = root.join(&name);
        Piece { place: Some((root.to_owned(), name)), path, rows: None, of: 0 }
    }

    /// Some of the `of` rows of the file.
    pub(super) fn with_rows(self, rows: Range<u64>, of: u64) -> Piece {
        Piece { rows: Some(rows), of, ..self }
    }

    /// Opens the file. While a pack takes the place of others, and for a while after, files lie elsewhere.
    fn open(&self) -> Result<File> {
        match (File::open(&self.path), &self.place) {
            (Err(e), Some((root, name))) if e.kind() == std::io::ErrorKind::NotFound => {
                // The recording may move between two looks.
                let moved =
                    (0..3).find_map(|_| File::open(place_of(root, name).unwrap_or_else(|| self.path.clone())).ok());
                moved.ok_or_else(|| Error::io(&self.path)(e))
            }
            (opened, _) => opened.map_err(Error::io(&self.path)),
        }
    }
}

/// A table of one recording.
#[derive(Clone, Debug)]
pub struct Table {
    name: String,
    pieces: Vec<Piece>,
    format: Format,
    footers: Footers,
}

impl Table {
    /// `footers` are those of files that several tables share.
    pub(super) fn new(name: &str, pieces: Vec<Piece>, format: Format, footers: Footers) -> Table {
        Table { name: name.to_owned(), pieces, format, footers }
    }

    /// The table in a file that is no part of a dataset that was opened.
    pub fn of_file(name: &str, path: PathBuf, format: Format) -> Table {
        Table::new(name, vec![Piece::whole(path)], format, Footers::default())
    }

    /// These rows of a Parquet file, which has `of` in all. The footers that are read stay in `footers`.
    pub fn of_rows(name: &str, path: PathBuf, rows: Range<u64>, of: u64, footers: &Footers) -> Table {
        Table::new(name, vec![Piece::whole(path).with_rows(rows, of)], Format::Parquet, footers.clone())
    }

    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, or the first of several. Others may have rows in it, too.
    pub fn path(&self) -> &Path {
        self.pieces.first().map_or(Path::new(""), |piece| &piece.path)
    }

    /// Begins to read it: all columns of all rows, unless the [`Scan`] is changed.
    pub fn scan(&self) -> Scan {
        Scan { table: self.clone(), columns: None, between: Vec::new() }
    }
}

/// A scan of a table: the columns and the parts of the files that are to be read.
#[derive(Clone, Debug)]
#[must_use = "a scan reads nothing before `batches` is called"]
pub struct Scan {
    table: Table,
    columns: Option<Vec<String>>,
    between: Vec<Between>,
}

impl Scan {
    /// Reads only these columns. Batches have them in the order of the table.
    pub fn columns<C: Into<String>>(mut self, names: impl IntoIterator<Item = C>) -> Scan {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves out parts of the file in which a column of whole numbers has no value in this range, by the least and the
    /// greatest value of each row group in Parquet. **Rows are not filtered**: others may come as well, and all come
    /// from an Arrow file, which has no such statistics. Signed columns are compared by the same bits
    /// (`--address-type int64`).
    pub fn between(mut self, column: &str, range: RangeInclusive<u64>) -> Scan {
        self.between.push(Between { column: column.into(), low: *range.start(), high: *range.end() });
        self
    }

    /// Opens the file and reads it batch by batch. A batch has at most 16,384 rows. Of a Parquet file, a page of each
    /// column is in memory at a time; of an Arrow file, a batch as it was written.
    pub fn batches(&self) -> Result<Batches> {
        let mut pieces = self.table.pieces.clone().into_iter();
        let Some(first) = pieces.next() else {
            return Err(Error::Internal(format!("the table {} has no file", self.table.name)));
        };
        let current = self.open(&first)?;
        Ok(Batches { schema: current.schema(), current, scan: self.clone(), pieces })
    }

    fn open(&self, piece: &Piece) -> Result<Kind> {
        let path = &piece.path;
        let file = piece.open()?;
        let (columns, between) = (self.columns.clone(), self.between.clone());
        let wanted = Wanted { path: path.clone(), columns, between, rows: piece.rows.clone() };
        Ok(match self.table.format {
            Format::Parquet => {
                let file = SharedFile::new(file).map_err(Error::io(path))?;
                let footer = match piece.rows {
                    Some(_) => self.table.footers.footer_of(&file, path, piece.of)?,
                    None => parquet_file::footer(&file, path)?,
                };
                Kind::Parquet(parquet_file::open(file, &footer, &wanted)?)
            }
            Format::Arrow => Kind::Arrow(Box::new(ArrowBatches::open(file, &wanted)?)),
        })
    }
}

/// The batches of a [`Scan`]. After an error there are no more.
pub struct Batches {
    schema: SchemaRef,
    current: Kind,
    scan: Scan,
    /// The pieces that come next.
    pieces: std::vec::IntoIter<Piece>,
}

enum Kind {
    Parquet(ParquetBatches),
    Arrow(Box<ArrowBatches>),
}

impl Kind {
    fn schema(&self) -> SchemaRef {
        match self {
            Kind::Parquet(batches) => batches.schema(),
            Kind::Arrow(batches) => batches.schema(),
        }
    }
}

impl Batches {
    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let batch = match &mut self.current {
                Kind::Parquet(batches) => batches.next(),
                Kind::Arrow(batches) => batches.next(),
            };
            match batch {
                Some(Err(error)) => {
                    self.pieces = Vec::new().into_iter();
                    return Some(Err(error));
                }
                Some(batch) => return Some(batch),
                None => {}
            }
            let piece = self.pieces.next()?;
            match self.scan.open(&piece) {
                Ok(next) => self.current = next,
                Err(error) => {
                    self.pieces = Vec::new().into_iter();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("schema", &self.schema()).finish_non_exhaustive()
    }
}
