//! Joins the layers: one recording through reader, event, normalize, table and sink. The only file that knows them all.

mod batches;
mod callback_run;
mod conversion;
mod event_run;
mod inputs;
mod live;
mod manifest;
mod one_input;
mod output;
mod process_filter;
mod request;
mod summary;
mod threads;
mod watched;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::event::Resolver;
use crate::reader;
use crate::reader::etl::Manifests;
pub use crate::sink::{Compression, Format};
use crate::sink::{Dataset, DatasetOptions};
use crate::source::FileIdentity;
use crate::source::live::Live;
use crate::table::Shape;
use crate::table::select::Selection;
use crate::table::views;
pub use batches::{FoundTable, Rows, batches, tables};
pub use callback_run::PROVIDER as CALLBACK_PROVIDER;
use conversion::Conversion;
use event_run::EventRun;
pub use live::{Recorded, record};
use one_input::one_input;
pub use request::{AddressType, Convert, DatasetLayout, Progress};
pub use summary::{FailedInput, InputSummary, ProblemSummary, Summary, TableSummary};
pub use watched::Watch;

/// Converts recordings into one dataset. The dataset appears whole or not at all.
///
/// `progress` is called now and then, on the calling thread.
pub fn convert(request: &Convert, progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
    if request.inputs.is_empty() {
        return Err(Error::Usage("no recording was given".into()));
    }
    let manifests = Manifests::open(&request.manifests)?;
    let recordings = inputs::recordings(&request.inputs);
    let names: Vec<PathBuf> = recordings.iter().map(|(_, recording)| recording.name()).collect();
    into_dataset(request, &names, &mut |index, shape, selection, dataset| {
        let Some((input, recording)) = recordings.get(index) else {
            return Err(Error::Internal("a recording without an input".into()));
        };
        one_input(request, &manifests, recording, shape, selection, dataset, true, &mut |position, total, events| {
            progress(Progress { input: *input, position, total, events });
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
        let mut run =
            EventRun::new(Conversion { request, selection, shape, dataset, progress: &mut progress, total: None });
        let mut resolver = Resolver::new(&mut run).with_manifests(&manifests);
        let end = reader::etl::read_live(&mut live, &mut resolver)?;
        let resolved = resolver.finish();
        run.finish(&name, &end, &FileIdentity::default(), &resolved)
    })
}

/// Reads one of the inputs into the dataset.
type OneInput<'f> = dyn FnMut(usize, Shape, &Selection, &mut Dataset) -> Result<(InputSummary, Vec<TableSummary>)> + 'f;

fn into_dataset(request: &Convert, names: &[PathBuf], one: &mut OneInput<'_>) -> Result<Summary> {
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    let hive = request.layout == DatasetLayout::Hive || names.len() > 1;
    let keys = inputs::trace_keys(names);
    let mut dataset = Dataset::create(
        &request.output,
        DatasetOptions {
            format: request.format,
            compression: request.compression,
            overwrite: request.overwrite,
            inputs: names.iter().chain(&request.inputs).chain(&request.manifests).cloned().collect(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            partition: None,
        },
    )?;
    let (mut converted, mut failed) = (Vec::new(), Vec::new());
    let mut tables: Vec<TableSummary> = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        dataset.set_partition(hive.then(|| format!("trace={key}")));
        let shape = Shape { trace_id: hive.then(|| key.clone()), signed: request.address_type == AddressType::Int64 };
        let (summary, written) = match one(index, shape, &selection, &mut dataset) {
            Ok(made) => made,
            Err(error) => {
                let path = names.get(index).map_or(Path::new(""), PathBuf::as_path);
                if names.len() == 1 || !costs_itself_only(&error, path, &dataset) {
                    return Err(error);
                }
                failed.push((path.to_owned(), error));
                continue;
            }
        };
        converted.push(InputSummary { trace_id: key.clone(), ..summary });
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
    if converted.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let failed = failed.into_iter().map(|(path, error)| FailedInput { path, error: error.to_string() }).collect();
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let only_trace = keys.first().filter(|_| !hive).map(String::as_str);
    let files = views::Files { only_trace, arrow: request.format == Format::Arrow };
    dataset.file("views.sql", views::sql(&names, files).as_bytes())?;
    let summary = Summary { inputs: converted, failed, output: request.output.clone(), tables, elapsed_ns: 0 };
    dataset.file("manifest.json", manifest::text(request, &summary, hive).as_bytes())?;
    dataset.commit()?;
    Ok(Summary { elapsed_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX), ..summary })
}

/// Whether what went wrong with one of several recordings leaves the others and the dataset as they are.
fn costs_itself_only(error: &Error, recording: &Path, dataset: &Dataset) -> bool {
    let of_recording = match error {
        Error::Unreadable { path, .. } | Error::Io { path, .. } => path == recording,
        _ => false,
    };
    of_recording && !dataset.has_open_tables()
}
