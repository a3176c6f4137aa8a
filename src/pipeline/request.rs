//! What is to be converted, and how.

use std::path::PathBuf;

use crate::sink::{Compression, Format};

/// How the files of a dataset lie in its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatasetLayout {
    /// `OUT/<table>.parquet` for one input, `Hive` for several.
    #[default]
    Auto,
    /// `OUT/<table>/trace=<key>/part-0.parquet`, with a column `trace_id`.
    Hive,
}

/// The type of unsigned 64-bit columns in the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressType {
    /// Unsigned, as they are.
    #[default]
    Uint64,
    /// Signed with the same bits, for readers that know no unsigned numbers.
    Int64,
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
    /// Only events of these processes, by name or id. Empty: all.
    pub processes: Vec<String>,
    /// Instrumentation manifests (.man) of providers whose events an .etl does not describe itself.
    pub manifests: Vec<PathBuf>,
    /// Only events at or after this many nanoseconds since the recording began.
    pub from_ns: Option<i64>,
    /// Only events before this many nanoseconds since the recording began.
    pub to_ns: Option<i64>,
    /// How addresses, lengths and ids of 64 bits are written.
    pub address_type: AddressType,
    /// Replace a dataset that is there already.
    pub overwrite: bool,
}

impl Convert {
    /// All tables of these recordings, as Parquet in the directory `output`. Set further fields as you need them.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, output: impl Into<PathBuf>) -> Convert {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Convert { inputs, output: output.into(), ..Convert::default() }
    }

    /// Whether a moment lies between `from_ns` and `to_ns`.
    pub(super) fn covers(&self, ts_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| ts_ns >= from) && self.to_ns.is_none_or(|to| ts_ns < to)
    }
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
