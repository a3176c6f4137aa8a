//! Joins the rooms: one recording through reader, event, normalize, table and sink. The only file that knows them all.

use std::path::PathBuf;

use crate::error::{Error, Result, Severity};
use crate::reader::TraceInfo;
pub use crate::sink::{Compression, Format};

/// How the files of a dataset lie in its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatasetLayout {
    /// `OUT/<table>.parquet` for one input, `Hive` for several.
    #[default]
    Auto,
    /// `OUT/<table>/trace=<key>/part-0.parquet`, with a column `trace_id`.
    Hive,
}

/// What is to be converted, and how.
#[derive(Clone, Debug, Default)]
pub struct Convert {
    /// Recordings; `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// Directory of the dataset.
    pub output: PathBuf,
    /// File format.
    pub format: Format,
    /// Compression.
    pub compression: Compression,
    /// Layout of the directory.
    pub layout: DatasetLayout,
    /// Only these tables; `event` stands for all payload tables, `event/<provider>` and `event/<provider>/<event>` for
    /// some. Empty: all.
    pub tables: Vec<String>,
    /// Only events of these providers. Empty: all. What is normalised from others is then missing too.
    pub providers: Vec<String>,
    /// Only events at or after this many nanoseconds since the recording began.
    pub from_ns: Option<i64>,
    /// Only events before this many nanoseconds since the recording began.
    pub to_ns: Option<i64>,
    /// Replace a dataset that is there already.
    pub overwrite: bool,
}

/// How far a conversion is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Which of the inputs.
    pub input: usize,
    /// Bytes of the (unpacked) recording that are read.
    pub position: u64,
    /// Bytes in all, when known.
    pub total: Option<u64>,
    /// Events read.
    pub events: u64,
}

/// What became of one recording.
#[derive(Clone, Debug)]
pub struct InputSummary {
    /// The recording.
    pub path: PathBuf,
    /// Key of the recording in a dataset of several.
    pub trace_id: String,
    /// Its header.
    pub info: TraceInfo,
    /// Whether its end mark was reached.
    pub complete: bool,
    /// Bytes of the (unpacked) recording.
    pub bytes: u64,
    /// Events read (after `--providers`, `--from` and `--to`).
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
    /// Rows of the `diagnostic` table by kind: code, severity, rows, sum of counts. In the order of codes.
    pub problems: Vec<ProblemSummary>,
}

/// All diagnostics of one kind.
#[derive(Clone, Debug)]
pub struct ProblemSummary {
    /// The code.
    pub code: &'static str,
    /// The worst severity.
    pub severity: Severity,
    /// Rows of the `diagnostic` table.
    pub rows: u64,
    /// Sum of their counts.
    pub count: u64,
    /// The first message.
    pub message: String,
    /// Where the first one is.
    pub offset: u64,
}

impl InputSummary {
    /// Whether anything was lost, damaged or not decoded.
    pub fn has_losses(&self) -> bool {
        !self.complete || self.problems.iter().any(|p| p.severity > Severity::Info)
    }
}

/// One table of a dataset.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// What a conversion made.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The recordings.
    pub inputs: Vec<InputSummary>,
    /// The dataset's directory.
    pub output: PathBuf,
    /// Its tables.
    pub tables: Vec<TableSummary>,
    /// Wall time in nanoseconds.
    pub elapsed_ns: u64,
}

/// Converts recordings into one dataset. The dataset appears whole or not at all.
pub fn convert(_request: &Convert, _progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
    Err(Error::Internal("not written yet".into()))
}
