//! Opens a dataset that a conversion wrote: its recordings, its tables, and chosen columns of them in batches.
//!
//! A [`Dataset`] is a directory with a `manifest.json`. Its tables are Parquet or Arrow IPC files, one for the whole
//! dataset (flat) or one for each recording (hive). What is below reads both formats and both layouts alike.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use tracequet::pipeline::{Convert, convert};
//! use tracequet::dataset::{Column, Dataset};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("out");
//! # convert(&Convert::new(["samples/gc-churn.nettrace"], &path), &mut |_| {})?;
//! let dataset = Dataset::open(&path)?;
//! let recording = dataset.recording(None)?;
//! let mut bytes = 0;
//! for batch in recording.table("gc_surviving_range")?.scan().columns(["gc_id", "range_length"]).batches()? {
//!     let batch = batch?;
//!     let length = Column::of(&batch, "range_length")?;
//!     bytes += (0..batch.num_rows()).filter_map(|row| length.number(row)).sum::<u64>();
//! }
//! assert!(bytes > 0);
//! # Ok(())
//! # }
//! ```

mod arrow_file;
mod column;
mod manifest;
mod parquet_file;
mod scan;

use std::path::{Component, Path, PathBuf};

pub use arrow_array;
pub use arrow_schema;

pub use crate::sink::Format;
pub use column::Column;
pub use manifest::{RecordingInfo, TableInfo};
pub use scan::{Batches, Scan};

use crate::error::{Error, Result};
use manifest::Manifest;

/// Keys of recordings that an error lists.
const MAX_LISTED: usize = 20;

/// How the files of a dataset lie in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// `<table>.parquet`: the dataset has one recording.
    Flat,
    /// `<table>/trace=<key>/part-0.parquet`, with the key also in the column `trace_id`.
    Hive,
}

/// A dataset that was opened.
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Manifest,
}

impl Dataset {
    /// Opens the dataset in a directory by its `manifest.json`. No table is opened yet.
    ///
    /// Fails when the directory has no manifest of tracequet, or one of another version of the tables: their columns
    /// may have other names or meanings. Converting the recording again makes a dataset of this version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Dataset> {
        let root = path.into();
        let manifest = Manifest::read(&root)?;
        Ok(Dataset { root, manifest })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// File format of the tables.
    pub fn format(&self) -> Format {
        self.manifest.format
    }

    /// How the files lie in the directory.
    pub fn layout(&self) -> Layout {
        self.manifest.layout
    }

    /// The recordings, in the order in which they were converted.
    pub fn recordings(&self) -> &[RecordingInfo] {
        &self.manifest.recordings
    }

    /// The tables, with the rows and bytes that they have over all recordings. Payload tables are named
    /// `event/<provider>/<event>`; a recording without such an event has no file for it.
    pub fn tables(&self) -> &[TableInfo] {
        &self.manifest.tables
    }

    /// One recording by its `trace_id`, which may be left out when there is only one.
    pub fn recording(&self, trace_id: Option<&str>) -> Result<Recording<'_>> {
        let all = self.recordings();
        let found = match trace_id {
            Some(wanted) => all.iter().find(|recording| recording.trace_id == wanted),
            None => all.first().filter(|_| all.len() == 1),
        };
        if let Some(info) = found {
            return Ok(Recording { dataset: self, info });
        }
        let mut listed: Vec<_> = all.iter().map(|recording| recording.trace_id.as_str()).collect();
        listed.sort_unstable();
        listed.truncate(MAX_LISTED);
        let more = if all.len() > listed.len() { ", ..." } else { "" };
        let what = trace_id.map_or("it has several recordings".into(), |key| format!("it has no recording {key}"));
        let choose = format!("choose one with --trace: {}{more}", listed.join(", "));
        Err(Error::Usage(format!("{}: {what}, {choose}", self.root.display())))
    }
}

/// One recording of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'d> {
    dataset: &'d Dataset,
    info: &'d RecordingInfo,
}

impl<'d> Recording<'d> {
    /// What the manifest says of it.
    pub fn info(&self) -> &'d RecordingInfo {
        self.info
    }

    /// The tables that it has a file of: those of every recording, then those of its events.
    pub fn tables(&self) -> impl Iterator<Item = &'d TableInfo> {
        let Recording { dataset, info } = *self;
        dataset.tables().iter().filter(move |table| dataset.file(info, &table.name).is_file())
    }

    /// Finds the file of a table; it is opened by [`Scan::batches`].
    pub fn table(&self, name: &str) -> Result<Table> {
        let dataset = self.dataset;
        let is_safe = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let path = dataset.file(self.info, name);
        if is_safe && path.is_file() {
            return Ok(Table { name: name.to_owned(), path, format: dataset.format() });
        }
        let what = if dataset.tables().iter().any(|table| table.name == name) {
            "the file is missing".to_owned()
        } else {
            format!("the dataset has no table {name}; it may have been left out by --tables")
        };
        Err(Error::Dataset { path, what, expected: format!("the table {name}") })
    }
}

impl Dataset {
    fn file(&self, recording: &RecordingInfo, table: &str) -> PathBuf {
        let extension = match self.format() {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        };
        match self.layout() {
            Layout::Flat => self.root.join(format!("{table}.{extension}")),
            Layout::Hive => {
                let part = format!("trace={}", recording.trace_id);
                self.root.join(table).join(part).join(format!("part-0.{extension}"))
            }
        }
    }
}

/// A table of one recording.
#[derive(Clone, Debug)]
pub struct Table {
    name: String,
    path: PathBuf,
    format: Format,
}

impl Table {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to read it: all columns of all rows, unless the [`Scan`] is told otherwise.
    pub fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }
}
