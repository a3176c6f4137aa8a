//! Compacts a dataset of several recordings, and takes recordings out of packs where they are to go.

use std::time::Duration;

use crate::compact::{
    Compacted, HeldRecording, Limits, PackOptions, compact as compact_lake, put_held as put_as_packs, take_out,
};
use crate::files::{Lake, NewRecording, Put};
use crate::prelude::*;
use tracequet_dataset::format::{Format, TableInfo};
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::write::Compression;

use super::described::describe;
use super::head::head_of;
use super::located::at;

/// Puts the tables of the recordings of a dataset of several together in few large files: the rows stay the same, and
/// each recording can be asked for and removed as before. Other programs may add and read meanwhile. The files that
/// were there stay under a hidden name for `grace`, for readers that have begun. A recording that cannot be read stays
/// as it is.
pub fn compact(dataset: &Path, grace: Duration) -> Result<Compacted> {
    compact_in(&at(dataset)?, &Limits { threads: threads(), ..Limits::default() }, grace)
}

/// Compacts a dataset wherever it lies.
pub(crate) fn compact_in(lake: &Lake, limits: &Limits, grace: Duration) -> Result<Compacted> {
    let written = head_of(lake)?;
    if written.format != Format::Parquet {
        let message = format!("{}: only Parquet files are compacted", lake.storage().shown().display());
        return Err(Error::Usage(message));
    }
    lake.storage().open()?;
    let done = compact_lake(lake, SCHEMA_VERSION, limits);
    // Packs that were made before a failure are in the dataset.
    let described = describe(lake, written, false);
    let done = done?;
    described?;
    let _turn = lake.storage().turn_for(&[])?;
    lake.storage().settle(grace)?;
    Ok(done)
}

/// The number of recordings of a dataset of several that have files of their own, which [`compact`] may put together:
/// none in a dataset of Arrow IPC.
pub fn unpacked(dataset: &Path) -> Result<usize> {
    let lake = at(dataset)?;
    Ok(if head_of(&lake)?.format == Format::Parquet { lake.storage().list()?.len() } else { 0 })
}

/// Threads that merge tables.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(4)
}

/// Puts recordings into a dataset. Those that they replace go first, if they are in packs.
pub fn put(lake: &Lake, recordings: &[NewRecording]) -> Result<Vec<Put>> {
    let replaced: Vec<String> = recordings.iter().flat_map(|new| new.replaced.clone()).collect();
    if !replaced.is_empty() {
        take_out(lake, &replaced, threads())?;
    }
    lake.put(recordings)
}

/// Puts recordings whose rows are in memory into a dataset, as packs.
pub fn put_held(
    lake: &Lake,
    recordings: &[HeldRecording],
    compression: Compression,
) -> Result<(Vec<Put>, Vec<TableInfo>)> {
    let options = PackOptions { schema_version: SCHEMA_VERSION, compression, threads: threads() };
    put_as_packs(lake, recordings, options)
}
