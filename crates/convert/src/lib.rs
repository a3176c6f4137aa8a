//! Joins the layers: recordings through reader, event, normalize, table and sink. The only files that know them all.

mod batch;
mod batches;
mod callback_run;
mod chosen;
mod conversion;
mod course;
mod describe;
mod empty;
mod event_run;
mod expand;
mod failed;
mod follow;
mod gcdump_run;
mod hashes;
mod identities;
mod inputs;
pub mod inspect;
mod known;
mod late;
mod live;
mod manifest;
mod memory;
mod names;
mod one;
mod output;
mod process_filter;
mod repair;
mod request;
mod stored;
mod summary;
mod threads;
mod together;
mod watched;

use std::path::{Path, PathBuf};
use std::time::Instant;

use tracequet_dataset::format::{Summed, paths, tag_of};
use tracequet_dataset::table::Shape;
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::views;
use tracequet_dataset::write::{Dataset, TableSink};
use tracequet_trace::error::{Error, Result};
use tracequet_trace::event::Resolver;
use tracequet_trace::reader;
use tracequet_trace::reader::etl::Manifests;
use tracequet_trace::reader::symbols::Symbols;
use tracequet_trace::source::FileIdentity;
use tracequet_trace::source::live::Live;
use tracequet_trace::source::store::Address;

pub use batches::{FoundTable, Rows, batches, tables};
use conversion::Conversion;
use event_run::EventRun;
pub use expand::{Expanded, expand};
pub use identities::Identities;
pub use live::{Recorded, record};
pub use names::is_recording_name;
pub use request::{Convert, DatasetLayout, Progress, Step};
use stored::{Fetches, StoreLake, Target};
pub use stored::{StoredDataset, fetch_dataset};
pub use summary::{Done, FailedInput, InputSummary, SkippedInput, Summary, TableSummary};
pub use tracequet_dataset::format::{AddressType, Format};
pub use tracequet_dataset::write::Compression;
pub use watched::Watch;

/// Converts recordings into one dataset. The dataset appears whole or not at all; with [`Convert::append`] each recording
/// does.
///
/// A recording of several that cannot be read becomes a row of `trace` and one of [`Summary::failed`]; one that is given
/// alone, or all of them, are an error.
///
/// `progress` is called now and then, on the calling thread.
pub fn convert(request: &Convert, progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
    convert_each(request, &mut |step| {
        if let Step::Progress(now) = step {
            progress(now);
        }
    })
}

/// The same, and reports each of several recordings when it is done.
pub fn convert_each(request: &Convert, watch: &mut dyn FnMut(Step<'_>)) -> Result<Summary> {
    if request.inputs.is_empty() {
        return Err(Error::Usage("no recording was given".into()));
    }
    Symbols::open(&request.symbols)?;
    let Some(target) = Target::of(request)? else { return into_folder(request, None, watch) };
    let mut note = None;
    let made = target.make(request, |local, store| into_folder(local, store, watch), |text| note = Some(text));
    if let Some(note) = note {
        watch(Step::Note(&note));
    }
    made
}

/// Converts into a folder of this machine, and from there into a store if there is one.
fn into_folder(request: &Convert, store: Option<&StoreLake>, watch: &mut dyn FnMut(Step<'_>)) -> Result<Summary> {
    let fetches = Fetches::default();
    let recordings = inputs::recordings(&request.inputs, &fetches);
    let recording = match recordings.as_slice() {
        [(_, one)] if !request.append && request.layout != DatasetLayout::Hive => &fetches.here(one)?,
        _ => return batch::run(request, &recordings, &fetches, store, watch),
    };
    let manifests = Manifests::open(&request.manifests)?;
    into_dataset(request, &recording.name(), &mut |shape, selection, dataset| {
        let mut progress =
            |position, total, events| watch(Step::Progress(Progress { input: 0, position, total, events }));
        // The hash is taken while the recording is read: both are in the page cache then.
        let hashing = inputs::identity_aside(recording);
        let identity = || inputs::joined(hashing).unwrap_or_default();
        one::read_one(request, &manifests, recording, (shape, selection), dataset, &mut progress, identity)
    })
}

/// Removes recordings of a dataset of several, each whole. Fails when one is not there.
pub fn remove(dataset: &Path, keys: &[String]) -> Result<()> {
    match Address::parse(dataset) {
        Some(address) => stored::remove(&address?, keys),
        None => batch::remove(dataset, keys),
    }
}

/// Writes `manifest.json` and `views.sql` of a dataset of several recordings anew, by the entries of the recordings, and removes
/// what killed runs left there. Returns the entries that are damaged, each with what is wrong.
pub fn repair(dataset: &Path) -> Result<Vec<String>> {
    match Address::parse(dataset) {
        Some(address) => stored::repair(&address?),
        None => repair::run(dataset),
    }
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
    Symbols::open(&request.symbols)?;
    let mut live = start()?;
    let name = PathBuf::from(format!("etw-{}", live.name()));
    into_dataset(request, &name, &mut |shape, selection, dataset| {
        let mut progress = |position, total, events| progress(Progress { input: 0, position, total, events });
        let mut run =
            EventRun::new(Conversion { request, selection, shape, dataset, progress: &mut progress, total: None });
        let mut resolver = Resolver::new(&mut run).with_manifests(&manifests);
        let end = reader::etl::read_live(&mut live, &mut resolver)?;
        let resolved = resolver.finish();
        run.finish(&name, &end, &FileIdentity::default(), &resolved)
    })
}

/// Reads the input into the dataset.
type OneInput<'f> = dyn FnMut(Shape, &Selection, &mut dyn TableSink) -> Result<(InputSummary, Vec<TableSummary>)> + 'f;

/// One recording into a dataset of its own, which appears whole or not at all.
fn into_dataset(request: &Convert, name: &Path, one: &mut OneInput<'_>) -> Result<Summary> {
    if let Some(target) = Target::of(request)? {
        return target.make(request, |local, _| into_dataset(local, name, one), |_| ());
    }
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    // A session that runs: the key of any other recording of a dataset of several is made by `batch`.
    let hive = (request.layout == DatasetLayout::Hive).then(|| inputs::trace_key(name, ""));
    let files: Vec<PathBuf> = request.inputs.iter().cloned().chain([name.to_owned()]).collect();
    let mut dataset = Dataset::create(&request.output, one::options(request, &files))?;
    dataset.set_partition(hive.as_deref().map(paths::partition));
    let shape = Shape { trace_id: hive.clone(), signed: request.address_type == AddressType::Int64 };
    let (summary, tables) = one(shape, &selection, &mut dataset)?;
    let trace_id = hive.clone().unwrap_or_else(|| inputs::trace_key(&summary.path, &summary.identity.sha256));
    let input = InputSummary { trace_id, ..summary };
    let manifest = match &hive {
        Some(key) => {
            let entry = manifest::entry(request, &input, &tables, None);
            dataset.file(&paths::entry(key), &entry)?;
            let mut summed = Summed::new(SCHEMA_VERSION);
            summed.add(key, &tag_of(&entry), &entry);
            manifest::of_several(request, &summed, &[])?.0
        }
        None => manifest::of_one(request, &input, &tables),
    };
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let only_trace = hive.is_none().then_some(input.trace_id.as_str());
    let files = views::Files { only_trace, arrow: request.format == Format::Arrow };
    dataset.file(paths::VIEWS, views::sql(&names, files).as_bytes())?;
    dataset.file(paths::MANIFEST, manifest.as_bytes())?;
    dataset.commit()?;
    Ok(Summary::of_one(input, tables, request.output.clone(), started))
}
