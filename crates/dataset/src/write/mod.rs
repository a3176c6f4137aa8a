//! Where Arrow batches become files: a dataset is a directory of Parquet or Arrow IPC tables that appears whole or not
//! at all. Nothing here knows what the tables are about.
//!
//! Equal calls in one order make equal bytes. Everything that shapes a file (where a row group ends, which
//! thread encodes a column) is decided on the caller's thread from counted rows and bytes, never from timing.

mod arrow;
mod batches;
#[doc(hidden)]
pub mod dataset_writer;
#[doc(hidden)]
pub mod durable;
#[doc(hidden)]
pub mod entries;
#[doc(hidden)]
pub mod failure;
mod file;
#[doc(hidden)]
pub mod first_rows;
#[doc(hidden)]
pub mod folders;
#[doc(hidden)]
pub mod growing;
#[doc(hidden)]
pub mod leftovers;
pub mod limits;
#[doc(hidden)]
pub mod measure;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod pack_places;
mod parquet;
mod plain;
#[doc(hidden)]
pub mod properties;
mod replaceable;
mod shelf;
#[doc(hidden)]
pub mod staging;
mod table;
mod waiting;
mod workers;

use std::collections::HashSet;

use crate::format::paths;
use crate::prelude::*;

pub use crate::format::Format;
pub use crate::table_spec::{Encoding, TableSpec};
pub use batches::{BatchSink, TableSink};
pub use dataset_writer::DatasetWriter;
pub use entries::{EntryBytes, entries_but, pack_head, read as entry, read_manifest, read_small};
pub use growing::Growing as Unfinished;
pub use growing::abandon_all;
pub use pack_places::{names_in as packs, place_of};
pub use shelf::Shelf;
pub use workers::Encoders;

/// Compression of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Zstandard at a level from 1 to 22.
    Zstd(i32),
    /// Snappy (Parquet only), for old readers.
    Snappy,
    /// None.
    None,
}

impl Default for Compression {
    fn default() -> Self {
        Compression::Zstd(1)
    }
}

/// A table of a [`DatasetWriter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId(#[doc(hidden)] pub usize);

/// The options of a dataset that is written.
#[derive(Clone, Debug, Default)]
pub struct DatasetOptions {
    /// File format.
    pub format: Format,
    /// Compression.
    pub compression: Compression,
    /// Replace the dataset that is there already.
    pub overwrite: bool,
    /// Files that are read for the dataset: a directory that holds one of them is not replaced.
    pub inputs: Vec<PathBuf>,
    /// Threads that encode; at least one is used.
    pub threads: usize,
    /// `trace=<key>` puts the tables that follow at `<name>/trace=<key>/part-0.parquet`, else at `<name>.parquet`.
    pub partition: Option<String>,
    /// Whether small row groups are encoded by the thread that writes the dataset: where there is such a thread for
    /// each processor, handing them to others takes longer than it saves.
    pub small_here: bool,
    /// Keep little of the dataset in memory while it is written, by small pages and row groups: for one that is read once
    /// and not kept.
    pub temporary: bool,
    /// Tables that have a file elsewhere ([`NO_RECORDING`](crate::format::paths::NO_RECORDING)) for the case that there
    /// are no rows. Without rows they have none here.
    pub elsewhere: Arc<HashSet<String>>,
}

/// A table that has been written to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTable {
    /// Name as in its [`TableSpec`].
    pub name: String,
    /// File, relative to the dataset's directory, with `/` between its parts.
    pub path: String,
    /// Rows.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// The file of a table, relative to the dataset's directory.
fn table_path(name: &str, partition: Option<&str>, format: Format) -> String {
    match partition {
        Some(partition) => paths::in_partition(name, partition, format),
        None => paths::flat(name, format),
    }
}
