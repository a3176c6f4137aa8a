//! The request of a conversion.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::{AddressType, Format, Options};
use tracequet_dataset::table::Shape;
use tracequet_dataset::table::select::without_groups;
use tracequet_dataset::write::Compression;
use tracequet_facts::code::own::OwnCode;
use tracequet_lake::Written;

use super::hashed::HashKind;
use super::identities::Identities;
use super::keep::Keep;
use super::summary::Done;

/// A layout of the files of a dataset in its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatasetLayout {
    /// `OUT/<table>.parquet` for one input, `Hive` for several.
    #[default]
    Auto,
    /// `OUT/<table>/trace=<key>/part-0.parquet`, with a column `trace_id`.
    Hive,
}

/// A request for a conversion. Each method sets what it names; what is not set has the default of its type.
#[derive(Clone, Debug, Default)]
pub struct Convert {
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) output: PathBuf,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    pub(crate) layout: DatasetLayout,
    pub(crate) tables: Vec<String>,
    pub(crate) providers: Vec<String>,
    pub(crate) processes: Vec<String>,
    pub(crate) manifests: Vec<PathBuf>,
    pub(crate) symbols: Vec<PathBuf>,
    pub(crate) own: OwnCode,
    pub(crate) from_ns: Option<i64>,
    pub(crate) to_ns: Option<i64>,
    pub(crate) address_type: AddressType,
    pub(crate) overwrite: bool,
    pub(crate) strict: bool,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) append: bool,
    pub(crate) refresh: bool,
    pub(crate) fail_fast: bool,
    pub(crate) jobs: usize,
    pub(crate) pack: bool,
    pub(crate) memory: Option<u64>,
    pub(crate) dominators: Option<u64>,
    pub(crate) cohorts: Option<u64>,
    pub(crate) lifetimes: Option<u64>,
    pub(crate) follow: Option<Duration>,
    pub(crate) identities: Identities,
    pub(crate) unhashed: bool,
    pub(crate) temporary: bool,
    pub(crate) sha256: bool,
    pub(crate) keep: Option<Keep>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Convert {
    /// All tables of these recordings, as Parquet in the directory `output`. The methods below change what they name.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, output: impl Into<PathBuf>) -> Convert {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Convert { inputs, output: output.into(), ..Convert::default() }
    }

    /// The recordings that are named, before archives and patterns are expanded.
    pub fn input_paths(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The hashes that are taken of recordings.
    pub(crate) fn hash_kind(&self) -> HashKind {
        if self.sha256 { HashKind::Both } else { HashKind::Blake3 }
    }

    /// The shape of the tables of a recording, with its key in each row if it is given.
    pub(crate) fn shape(&self, trace_id: Option<String>) -> Shape {
        Shape { trace_id, signed: self.address_type == AddressType::Int64 }
    }

    /// The directory of the dataset.
    pub fn output_path(&self) -> &Path {
        &self.output
    }

    /// Whether these inputs become a dataset of several recordings, each with its key.
    pub fn is_of_several(&self) -> bool {
        self.append || self.layout == DatasetLayout::Hive || self.inputs.len() > 1
    }

    /// Recordings; `-` is standard input.
    pub fn inputs<P: Into<PathBuf>>(self, inputs: impl IntoIterator<Item = P>) -> Convert {
        Convert { inputs: inputs.into_iter().map(Into::into).collect(), ..self }
    }

    /// Only these tables; `event` stands for all payload tables, `event/<provider>` and `event/<provider>/<event>` for
    /// some, and `figures` for what rules and comparisons need. Empty: all.
    pub fn tables<T: Into<String>>(self, tables: impl IntoIterator<Item = T>) -> Convert {
        Convert { tables: without_groups(tables.into_iter().map(Into::into)), ..self }
    }

    /// Only these tables, for an answer that reads them where they are. What is kept is not written, too; tables of events are left out,
    /// because a recording may not have such events.
    pub fn tables_to_read(self, tables: &[&str]) -> Convert {
        let keep = self.keep.clone();
        let is_kept = |table: &str| keep.as_ref().is_some_and(|keep| keep.replaces(table));
        let is_written = |table: &&&str| !table.starts_with("event/") && !is_kept(table);
        self.tables(tables.iter().filter(is_written).map(|table| (*table).to_owned()))
    }

    /// Only events of these providers. Empty: all. What is normalised from others is then missing too.
    pub fn providers<T: Into<String>>(self, providers: impl IntoIterator<Item = T>) -> Convert {
        Convert { providers: providers.into_iter().map(Into::into).collect(), ..self }
    }

    /// Only events of these processes, by name or id. Empty: all.
    pub fn processes<T: Into<String>>(self, processes: impl IntoIterator<Item = T>) -> Convert {
        Convert { processes: processes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Instrumentation manifests (.man) of providers whose events an .etl does not describe itself.
    pub fn manifests<P: Into<PathBuf>>(self, manifests: impl IntoIterator<Item = P>) -> Convert {
        Convert { manifests: manifests.into_iter().map(Into::into).collect(), ..self }
    }

    /// Folders with symbols (portable PDBs, or assemblies that embed them; PDBs of native Windows files; ELF files),
    /// which give frames of call stacks their source lines, and native ones their names. With one or more, symbols are
    /// also looked for beside the modules that the recording names.
    pub fn symbols<P: Into<PathBuf>>(self, symbols: impl IntoIterator<Item = P>) -> Convert {
        Convert { symbols: symbols.into_iter().map(Into::into).collect(), ..self }
    }

    /// Labels of the recordings, name and value: rows of the table `trace_label`.
    pub fn labels(self, labels: impl IntoIterator<Item = (String, String)>) -> Convert {
        Convert { labels: labels.into_iter().collect(), ..self }
    }

    /// The request to keep some of the recording for the caller.
    pub fn kept(&self) -> Option<&Keep> {
        self.keep.as_ref()
    }

    /// The part of the request that decides what the tables of a recording hold: recordings that were converted with
    /// another one are not alike.
    pub(super) fn options(&self) -> Options {
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
        Options {
            tables: self.tables.clone(),
            providers: self.providers.clone(),
            processes: self.processes.clone(),
            manifests: paths(&self.manifests),
            symbols: paths(&self.symbols),
            own: self.own.own.clone(),
            not_own: self.own.not_own.clone(),
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            dominators: self.dominators.is_some(),
            cohorts: self.cohorts.is_some(),
            lifetimes: self.lifetimes.is_some(),
        }
    }

    /// An error when the conversion is to stop.
    pub(super) fn check_stop(&self) -> Result<()> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let source = std::io::Error::new(std::io::ErrorKind::Interrupted, "the conversion was stopped");
        Err(Error::Io { path: self.inputs.first().cloned().unwrap_or_default(), source })
    }

    /// The format of the tables, where they become those of a dataset of several recordings.
    pub(super) fn written(&self) -> Written {
        Written { format: self.format, address_type: self.address_type }
    }

    /// Whether a moment lies between `from_ns` and `to_ns`.
    pub(super) fn covers(&self, ts_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| ts_ns >= from) && self.to_ns.is_none_or(|to| ts_ns < to)
    }
}

/// Makes the methods that set one field each.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $kind:ty;)+) => {
        impl Convert {
            $($(#[$doc])*
            pub fn $field(self, $field: $kind) -> Convert {
                Convert { $field: $field.into(), ..self }
            })+
        }
    };
}

setters! {
    /// Directory of the dataset.
    output: impl Into<PathBuf>;
    /// File format.
    format: Format;
    /// Compression.
    compression: Compression;
    /// Layout of the directory.
    layout: DatasetLayout;
    /// Patterns that decide which code is the user's own (`frame.is_framework`), beside folders and names.
    own: OwnCode;
    /// Only events at or after this many nanoseconds since the recording began. Modules, methods, types and what is
    /// known of processes are those of the whole recording.
    from_ns: impl Into<Option<i64>>;
    /// Only events before this many nanoseconds since the recording began.
    to_ns: impl Into<Option<i64>>;
    /// Sets the type of addresses, lengths and ids of 64 bits.
    address_type: AddressType;
    /// Replace a dataset that is there already.
    overwrite: bool;
    /// Stop at the first damage in a recording, with [`Error::Damaged`] and without a dataset. Lost events are no
    /// damage.
    ///
    /// [`Error::Damaged`]: tracequet_trace::error::Error::Damaged
    strict: bool;
    /// Fill the table `heap_dominator`, with this limit in bytes of memory for the walks of a recording: some 56 for
    /// each object, 96 for each root, and 16 for each reference. Beyond that the table stays empty, and a diagnostic
    /// says so.
    dominators: impl Into<Option<u64>>;
    /// Fill the table `gc_cohort`, with this limit in bytes of memory for the ranges of a recording: 64 for each range.
    /// Beyond that the table is not whole, and a diagnostic says so.
    cohorts: impl Into<Option<u64>>;
    /// Fill the table `allocation_lifetime`, with this limit in bytes of memory for the ranges of a recording, as
    /// [`Convert::cohorts`], and as much again for its samples: 512 for each. Of more samples some are left out, and
    /// the others count more.
    lifetimes: impl Into<Option<u64>>;
    /// With [`crate::collect_port`]: the recording is added to a dataset of several, as with `append`, and what there
    /// is of it is published at this interval.
    follow: impl Into<Option<Duration>>;
    /// Add to the dataset that is there, or begin one. Recordings that it has (by their hash) are skipped.
    append: bool;
    /// With `append`: convert again what another version of tracequet wrote, or what was converted with other options.
    refresh: bool;
    /// Stop at the first of several recordings that cannot be read.
    fail_fast: bool;
    /// Number of recordings that are converted at the same time; 0: as many as processors. The output does not depend
    /// on it.
    jobs: usize;
    /// Write the tables of small recordings of a dataset of several together in few Parquet files, as
    /// `compact` would make of them.
    pack: bool;
    /// Bytes of memory that recordings converted side by side are meant to keep to: fewer run at once when they would
    /// need more. `None`: half of what is free.
    memory: impl Into<Option<u64>>;
    /// The hashes of recordings that [`crate::batches`] has taken: with the same ones, another reading of the same
    /// recordings takes none.
    identities: Identities;
    /// Take no hash of a recording that is converted alone: for a dataset that is read once and not kept.
    unhashed: bool;
    /// Keep little of the dataset in memory while it is written, by small pages and row groups: for a dataset that is read
    /// once and not kept.
    temporary: bool;
    /// Take the SHA-256 of each recording beside its BLAKE3, for the column `sha256` of `trace`.
    sha256: bool;
    /// Stop reading when this becomes true: the conversion fails, and there is no dataset.
    stop: Arc<AtomicBool>;
    /// Keep some of the one recording for the caller, beside what is written.
    keep: impl Into<Option<Keep>>;
}

/// A step that [`crate::convert_each`] reports on its way.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step<'s> {
    /// A recording is being read.
    Progress(Progress),
    /// A recording is done, with its outcome. With several jobs the order is that of their ends.
    Done {
        /// Which of the inputs.
        input: usize,
        /// The outcome.
        done: &'s Done,
    },
    /// Something about the run that a person has to know.
    Note(&'s str),
}

/// The progress of a conversion.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
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
