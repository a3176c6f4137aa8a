//! The summary of a conversion.

use std::path::PathBuf;
use std::time::Instant;

use tracequet_dataset::error::Error;
use tracequet_dataset::format::{Status, TableInfo};
use tracequet_dataset::write::WrittenTable;
use tracequet_facts::{FrameCounts, ProblemSummary};
use tracequet_trace::error::{Error as TraceError, Severity};
use tracequet_trace::reader::TraceInfo;
use tracequet_trace::source::FileIdentity;

use super::hashed::key_of_place;

/// The outcome of one recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InputSummary {
    /// The recording.
    pub path: PathBuf,
    /// Key of the recording in a dataset of several.
    pub trace_id: String,
    /// Size and hash of the file.
    pub identity: FileIdentity,
    /// The header.
    pub info: TraceInfo,
    /// Whether its end mark was reached and nothing before it is damaged.
    pub complete: bool,
    /// Bytes of the (unpacked) recording.
    pub bytes: u64,
    /// Events read (after `--providers`, `--process`, `--from` and `--to`).
    pub events: u64,
    /// Events that sequence numbers prove lost.
    pub dropped_events: u64,
    /// Time of the first and the last event, nanoseconds since the recording began.
    pub first_ns: i64,
    /// See `first_ns`.
    pub last_ns: i64,
    /// Kinds of events, and how many events of them were decoded fully, in part, and kept raw.
    pub event_types: u64,
    /// Events whose fields say all that the payload says.
    pub decoded_full: u64,
    /// Events of which a part was decoded.
    pub decoded_partial: u64,
    /// Events kept raw.
    pub raw: u64,
    /// Collections, and those among them whose end is not in the recording.
    pub collections: u64,
    /// See `collections`.
    pub incomplete_collections: u64,
    /// Frames of call stacks, and how many of them have a name.
    pub frames: FrameCounts,
    /// Rows of the `diagnostic` table by kind: code, severity, rows, sum of counts. In the order of codes.
    pub problems: Vec<ProblemSummary>,
}

impl InputSummary {
    /// `status` of the table `trace`.
    pub(super) fn status(&self) -> Status {
        if self.has_losses() { Status::Losses } else { Status::Ok }
    }

    /// Whether anything was lost, damaged or not decoded.
    pub fn has_losses(&self) -> bool {
        !self.complete || self.problems.iter().any(|p| p.severity > Severity::Info)
    }
}

/// One table of a dataset.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableSummary {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Adds the tables of a recording to those of the ones before it.
pub(crate) fn add_tables(all: &mut Vec<TableSummary>, more: impl IntoIterator<Item = TableSummary>) {
    for table in more {
        match all.iter_mut().find(|known| known.name == table.name) {
            Some(known) => {
                known.rows += table.rows;
                known.bytes += table.bytes;
            }
            None => all.push(table),
        }
    }
}

/// A recording of several that could not be read. All that is in the dataset of it is its row in `trace`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedInput {
    /// The recording.
    pub path: PathBuf,
    /// The key in the dataset.
    pub trace_id: String,
    /// Size and hash of the file; empty when it could not be read to its end.
    pub identity: FileIdentity,
    /// The failure: what was wrong, where, and what was expected.
    pub error: String,
    /// Byte offset in the (unpacked) recording, when it was a matter of its bytes.
    pub offset: Option<u64>,
}

impl FailedInput {
    /// Of a recording that nothing more is known of.
    pub(super) fn of(path: PathBuf, error: &Error) -> FailedInput {
        let offset = if let Error::Trace(TraceError::Unreadable { offset, .. }) = error { Some(*offset) } else { None };
        FailedInput {
            trace_id: key_of_place(&path),
            path,
            identity: FileIdentity::default(),
            error: error.to_string(),
            offset,
        }
    }
}

/// A recording that was not converted because the dataset has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkippedInput {
    /// The recording.
    pub path: PathBuf,
    /// The key under which the dataset has it.
    pub trace_id: String,
    /// Whether it was converted with other options than the request's (`--tables`, `--providers` and so on).
    pub differs: bool,
    /// Whether it has other labels than those that are given now. They stay as they are.
    pub other_labels: bool,
}

/// The outcome of one recording of several.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one for each recording")]
pub enum Done {
    /// The recording is in the dataset now.
    Converted(InputSummary),
    /// The recording could not be read.
    Failed(FailedInput),
    /// The recording is in the dataset already.
    Skipped(SkippedInput),
}

/// The outcome of a conversion.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The recordings.
    pub inputs: Vec<InputSummary>,
    /// Recordings among several that could not be read.
    pub failed: Vec<FailedInput>,
    /// Recordings that the dataset has already.
    pub skipped: Vec<SkippedInput>,
    /// The dataset's directory.
    pub output: PathBuf,
    /// The tables, with the rows and bytes that this conversion wrote.
    pub tables: Vec<TableSummary>,
    /// The entries of the dataset that cannot be read, each with what is wrong. Their recordings are not in the dataset
    /// until they are converted again.
    pub damaged_entries: Vec<String>,
    /// Wall time in nanoseconds.
    pub elapsed_ns: u64,
}

impl From<TableInfo> for TableSummary {
    fn from(table: TableInfo) -> TableSummary {
        TableSummary { name: table.name, rows: table.rows, bytes: table.bytes }
    }
}

impl From<WrittenTable> for TableSummary {
    fn from(table: WrittenTable) -> TableSummary {
        TableSummary { name: table.name, rows: table.rows, bytes: table.bytes }
    }
}

/// Nanoseconds since a conversion began.
pub(super) fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Summary {
    /// The outcome of a single recording whose conversion began at `started`.
    pub(super) fn of_one(input: InputSummary, tables: Vec<TableSummary>, output: PathBuf, started: Instant) -> Summary {
        let elapsed_ns = elapsed_ns(started);
        let (failed, skipped, damaged_entries) = (Vec::new(), Vec::new(), Vec::new());
        Summary { inputs: vec![input], failed, skipped, output, tables, damaged_entries, elapsed_ns }
    }

    /// Whether anything of the recordings was lost, damaged or not decoded, or one of them, or an entry of the dataset,
    /// could not be read.
    pub fn has_losses(&self) -> bool {
        !self.failed.is_empty() || !self.damaged_entries.is_empty() || self.inputs.iter().any(InputSummary::has_losses)
    }

    /// Whether there were recordings, and all of them failed.
    pub fn has_nothing(&self) -> bool {
        !self.failed.is_empty() && self.inputs.is_empty() && self.skipped.is_empty()
    }
}
