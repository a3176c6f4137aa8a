//! Joins the layers: one recording through reader, event, normalize, table and sink. The only file that knows them all.

mod callback_run;
mod event_run;
mod output;
mod process_filter;
mod threads;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, Severity};
use crate::normalize::fact::Diagnostic;
use crate::reader::etl::Manifests;
use crate::reader::{self, Order, TraceInfo};
pub use crate::sink::{Compression, Format};
use crate::sink::{Dataset, DatasetOptions};
use crate::source::live::Live;
use crate::source::{FileIdentity, Input};
use crate::table::schema::SCHEMA_VERSION;
use crate::table::select::Selection;
use crate::table::views;
use crate::table::{Shape, Tables};
use callback_run::CallbackRun;
pub use callback_run::PROVIDER as CALLBACK_PROVIDER;
use event_run::EventRun;

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
    /// Size and hash of the file.
    pub identity: FileIdentity,
    /// Its header.
    pub info: TraceInfo,
    /// Whether its end mark was reached.
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

impl ProblemSummary {
    /// Rows of the kind of this one, none of them counted yet.
    pub(crate) fn of(row: &Diagnostic<'_>) -> ProblemSummary {
        ProblemSummary {
            code: row.code,
            severity: row.level(),
            rows: 0,
            count: 0,
            message: row.message.to_owned(),
            offset: row.byte_offset,
        }
    }

    /// Counts one more.
    pub(crate) fn add(&mut self, row: &Diagnostic<'_>) {
        self.severity = self.severity.max(row.level());
        self.rows += 1;
        self.count = self.count.saturating_add(row.count);
    }

    /// Counts one more in a list in the order of first sight.
    pub(crate) fn note(list: &mut Vec<ProblemSummary>, row: &Diagnostic<'_>) {
        match list.iter_mut().find(|known| known.code == row.code) {
            Some(known) => known.add(row),
            None => {
                let mut first = ProblemSummary::of(row);
                first.add(row);
                list.push(first);
            }
        }
    }
}

impl Convert {
    /// All tables of these recordings, as Parquet in the directory `output`. Set further fields as you need them.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, output: impl Into<PathBuf>) -> Convert {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Convert { inputs, output: output.into(), ..Convert::default() }
    }

    /// Whether a moment lies between `from_ns` and `to_ns`.
    fn covers(&self, ts_ns: i64) -> bool {
        self.from_ns.is_none_or(|from| ts_ns >= from) && self.to_ns.is_none_or(|to| ts_ns < to)
    }
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
///
/// `progress` is called now and then, on the calling thread.
pub fn convert(request: &Convert, progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
    if request.inputs.is_empty() {
        return Err(Error::Usage("no recording was given".into()));
    }
    let manifests = Manifests::open(&request.manifests)?;
    into_dataset(request, &request.inputs, &mut |index, shape, selection, dataset| {
        let path = request.inputs.get(index).map_or(Path::new(""), PathBuf::as_path);
        one_input(request, &manifests, path, shape, selection, dataset, &mut |position, total, events| {
            progress(Progress { input: index, position, total, events });
        })
    })
}

/// Writes the events of a session that runs into a dataset, as [`convert`] does with those of a recording, until the
/// session ends. `inputs` of the request are not looked at. The session is begun by `start` when what else the request names
/// was found sound.
pub fn collect(
    request: &Convert,
    start: impl FnOnce() -> Result<Live>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary> {
    let manifests = Manifests::open(&request.manifests)?;
    let mut live = start()?;
    let name = PathBuf::from(format!("etw-{}", live.name()));
    into_dataset(request, std::slice::from_ref(&name), &mut |input, shape, selection, dataset| {
        let mut progress = |position, total, events| progress(Progress { input, position, total, events });
        let mut run = EventRun::new(
            Conversion { request, selection, shape, dataset, progress: &mut progress, total: None },
            &manifests,
        );
        let end = reader::etl::read_live(&mut live, &mut run)?;
        run.finish(&name, &end, &FileIdentity::default())
    })
}

/// Reads one of the inputs into the dataset.
type OneInput<'f> = dyn FnMut(usize, Shape, &Selection, &mut Dataset) -> Result<(InputSummary, Vec<TableSummary>)> + 'f;

fn into_dataset(request: &Convert, names: &[PathBuf], one: &mut OneInput<'_>) -> Result<Summary> {
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    let hive = request.layout == DatasetLayout::Hive || names.len() > 1;
    let keys = trace_keys(names);
    let mut dataset = Dataset::create(
        &request.output,
        DatasetOptions {
            format: request.format,
            compression: request.compression,
            overwrite: request.overwrite,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            partition: None,
        },
    )?;
    let mut inputs = Vec::new();
    let mut tables: Vec<TableSummary> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        dataset.set_partition(hive.then(|| format!("trace={key}")));
        let shape = Shape { trace_id: hive.then(|| key.clone()), signed: request.address_type == AddressType::Int64 };
        let (summary, written) = one(index, shape, &selection, &mut dataset)?;
        inputs.push(InputSummary { trace_id: key.clone(), ..summary });
        for table in written {
            match tables.iter_mut().find(|t| t.name == table.name) {
                Some(known) => {
                    known.rows += table.rows;
                    known.bytes += table.bytes;
                }
                None => tables.push(table),
            }
        }
    }
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    if request.format == Format::Parquet {
        dataset.file("views.sql", views::sql(&names, hive).as_bytes())?;
    }
    let summary = Summary { inputs, output: request.output.clone(), tables, elapsed_ns: 0 };
    dataset.file("manifest.json", manifest(request, &summary, hive).as_bytes())?;
    dataset.commit()?;
    Ok(Summary { elapsed_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX), ..summary })
}

/// A key for each input: its file name, begun with a letter and unique. (A bare number would be read as one.)
fn trace_keys(inputs: &[PathBuf]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for path in inputs {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split(".nettrace").next().unwrap_or_default().split(".netperf").next().unwrap_or_default();
        let stem = stem.split(".etl").next().unwrap_or_default().split(".corprof").next().unwrap_or_default();
        let mut key = crate::table::names::safe(if stem.is_empty() || stem == "-" { "stdin" } else { stem });
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            key.insert(0, 't');
        }
        keys.push(crate::table::payload::unique(key, &keys));
    }
    keys
}

/// One input of a request on its way into the dataset.
struct Conversion<'r> {
    request: &'r Convert,
    selection: &'r Selection,
    shape: Shape,
    dataset: &'r mut Dataset,
    progress: &'r mut dyn FnMut(u64, Option<u64>, u64),
    /// Size of the input, if it is known.
    total: Option<u64>,
}

impl Conversion<'_> {
    /// The tables of a recording whose header was read.
    fn tables(&self, info: &TraceInfo) -> Result<Tables> {
        Tables::new(self.selection.clone(), info.clock, info.pointer_size, self.shape.clone())
    }
}

fn one_input(
    request: &Convert,
    manifests: &Manifests,
    path: &Path,
    shape: Shape,
    selection: &Selection,
    dataset: &mut Dataset,
    progress: &mut dyn FnMut(u64, Option<u64>, u64),
) -> Result<(InputSummary, Vec<TableSummary>)> {
    // The hash is taken while the recording is read: both are in the page cache then.
    let hashing = identity_of(path);
    let input = Input::open(path)?;
    let total = input.size();
    let is_callbacks = reader::Format::detect(input.head()) == Some(reader::Format::Callbacks);
    let identity = || {
        hashing.map_or_else(
            || Ok(FileIdentity::default()),
            |handle| handle.join().unwrap_or_else(|_| Err(Error::Internal("the hashing thread died".into()))),
        )
    };
    let conversion = Conversion { request, selection, shape, dataset, progress, total };
    if is_callbacks {
        let mut run = CallbackRun::new(conversion);
        let end = reader::callback::read(input, &mut run)?;
        return run.finish(path, &end, &identity()?);
    }
    let mut run = EventRun::new(conversion, manifests);
    let end = reader::read(input, Order::Time, &mut run)?;
    run.finish(path, &end, &identity()?)
}

/// Size and SHA-256 of a regular file, taken by a thread of its own.
fn identity_of(path: &Path) -> Option<std::thread::JoinHandle<Result<FileIdentity>>> {
    if !path.is_file() {
        return None;
    }
    let path = path.to_owned();
    Some(std::thread::spawn(move || {
        let mut file = std::fs::File::open(&path).map_err(Error::io(&path))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0u8; 256 << 10];
        let mut size_bytes = 0u64;
        loop {
            let n = file.read(&mut buffer).map_err(Error::io(&path))?;
            if n == 0 {
                break;
            }
            size_bytes += n as u64;
            hash.update(buffer.get(..n).unwrap_or_default());
        }
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(FileIdentity { size_bytes, sha256 })
    }))
}

fn manifest(request: &Convert, summary: &Summary, hive: bool) -> String {
    let extension = match request.format {
        Format::Parquet => "parquet",
        Format::Arrow => "arrow",
    };
    let inputs: Vec<_> = summary
        .inputs
        .iter()
        .map(|i| {
            let problems: Vec<_> = i
                .problems
                .iter()
                .map(|p| json!({ "code": p.code, "severity": p.severity.as_str(), "rows": p.rows, "count": p.count }))
                .collect();
            json!({
                "trace_id": i.trace_id, "path": i.path.display().to_string(), "size_bytes": i.identity.size_bytes,
                "sha256": i.identity.sha256, "start": crate::time::format_utc(i.info.clock.sync_utc_ns),
                "events": i.events, "dropped_events": i.dropped_events, "complete": i.complete, "problems": problems,
            })
        })
        .collect();
    let tables: Vec<_> =
        summary.tables.iter().map(|t| json!({ "name": t.name, "rows": t.rows, "bytes": t.bytes })).collect();
    let manifest = json!({
        "tool": "tracequet", "version": env!("CARGO_PKG_VERSION"), "schema_version": SCHEMA_VERSION,
        "layout": if hive { "hive" } else { "flat" }, "format": extension, "inputs": inputs, "tables": tables,
    });
    let mut text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    text.push('\n');
    text
}
