//! Joins the layers: recordings through reader, events, facts, tables and files. The only files that know them all.
//!
//! | folder | what is in it |
//! |---|---|
//! | `one/` | a recording through the layers |
//! | `many/` | recordings side by side, each with its own outcome |
//! | `growing/` | a recording that grows while it is converted |
//! | `lake/` | a dataset of several recordings, in a directory or a store |
//! | `stored/` | recordings and datasets in object stores |
//! | [`inspect`] | a look into a recording without converting it |

mod alone;
mod batches;
mod expand;
mod growing;
mod hashed;
mod identities;
mod inputs;
pub mod inspect;
mod keep_walk;
mod lake;
mod many;
mod names;
mod one;
mod request;
mod stored;
mod summary;
mod temporary;

use std::path::{Path, PathBuf};

use tracequet_dataset::error::{Error, Result};
use tracequet_trace::event::Resolver;
use tracequet_trace::reader;
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::reader::symbols::Symbols;
use tracequet_trace::source::FileIdentity;
use tracequet_trace::source::live::Live;

use alone::into_dataset;
pub use batches::{FoundTable, Rows, batches, tables};
pub use expand::{Expanded, expand};
pub use growing::{Collected, collect_port};
pub use identities::Identities;
pub use keep_walk::KeepWalk;
pub use lake::{Expire, Expired, Relabel};
pub use names::is_recording_name;
pub use one::Watch;
use one::{Conversion, EventRun};
pub use request::{Convert, DatasetLayout, Progress, Step};
use stored::{Fetches, Target, address_of};
pub use stored::{StoredDataset, fetch_dataset};
pub use summary::{Done, FailedInput, InputSummary, SkippedInput, Summary, TableSummary};
pub use temporary::TemporaryDataset;
pub use tracequet_dataset::compact::{Compacted, LeftOut};
pub use tracequet_dataset::format::{AddressType, Format};
pub use tracequet_dataset::write::{Compression, GRACE};

/// Converts recordings into one dataset. The dataset appears whole or not at all; with [`Convert::append`] each
/// recording does.
///
/// A recording of several that cannot be read becomes a row of `trace` and one of [`Summary::failed`]; one that is
/// given alone, or all of them, are an error.
///
/// `progress` is called now and then, on the calling thread.
pub fn convert(request: &Convert, progress: &mut dyn FnMut(Progress)) -> Result<Summary> {
    convert_each(request, &mut |step| {
        if let Step::Progress(now) = step {
            progress(now);
        }
    })
}

/// Converts as [`convert`] does, and reports each of several recordings when it is done.
pub fn convert_each(request: &Convert, watch: &mut dyn FnMut(Step<'_>)) -> Result<Summary> {
    if request.inputs.is_empty() {
        return Err(Error::Usage("no recording was given".into()));
    }
    Symbols::open(&request.symbols)?;
    if request.append {
        address_of(request)?;
    } else if let Some(target) = Target::of(request)? {
        return target.make(request, |local| convert_here(local, watch));
    }
    convert_here(request, watch)
}

/// Converts into a directory, or adds to a dataset wherever it lies.
fn convert_here(request: &Convert, watch: &mut dyn FnMut(Step<'_>)) -> Result<Summary> {
    let fetches = Fetches::default();
    let recordings = inputs::recordings(&request.inputs, &fetches);
    let recording = match recordings.as_slice() {
        [(_, one)] if !request.append && request.layout != DatasetLayout::Hive => &fetches.here(one)?,
        _ => return many::run(request, &recordings, &fetches, watch),
    };
    let manifests = EventManifests::open(&request.manifests)?;
    into_dataset(request, &recording.name(), &mut |shape, selection, dataset| {
        let mut progress =
            |position, total, events| watch(Step::Progress(Progress { input: 0, position, total, events }));
        // The hash is taken while the recording is read: both are in the page cache then.
        let hashing = (!request.unhashed).then(|| hashed::identity_aside(recording));
        let identity = || match hashing {
            Some(hashing) => hashed::joined(hashing).unwrap_or_default(),
            None => hashed::unhashed(recording),
        };
        one::read_one(request, &manifests, recording, (shape, selection), dataset, &mut progress, identity)
    })
}

/// Removes recordings of a dataset of several, each whole. Fails when one is not there.
pub fn remove(dataset: &Path, keys: &[String]) -> Result<()> {
    lake::remove(dataset, keys)
}

/// Lets old recordings of a dataset of several go, whole or but for the tables that are to stay. Returns those that
/// went.
pub fn expire(dataset: &Path, wanted: &Expire) -> Result<Vec<Expired>> {
    lake::expire(dataset, wanted)
}

/// Puts the tables of the recordings of a dataset of several together in few large files: the rows stay the same, and
/// each recording can be asked for and removed as before. Other programs may add and read meanwhile. The files that
/// were there stay under a hidden name for `grace`, for readers that have begun. A recording that cannot be read stays
/// as it is.
pub fn compact(dataset: &Path, grace: std::time::Duration) -> Result<Compacted> {
    lake::compact(dataset, grace)
}

/// The number of recordings of a dataset of several that have files of their own, which [`compact`] may put together.
pub fn unpacked(dataset: &Path) -> Result<usize> {
    lake::unpacked(dataset)
}

/// Gives recordings of a dataset of several other labels. Returns the keys of those whose labels are others than
/// before.
pub fn relabel(dataset: &Path, wanted: &Relabel) -> Result<Vec<String>> {
    lake::relabel(dataset, wanted)
}

/// Writes `manifest.json` and `views.sql` of a dataset of several recordings anew, by the entries of the recordings,
/// and removes what killed runs left there. Returns the entries that are damaged, each with what is wrong.
pub fn repair(dataset: &Path) -> Result<Vec<String>> {
    lake::repair(dataset)
}

/// Writes the events of a session that runs into a dataset, as [`convert`] does with those of a recording, until the
/// session ends. `inputs` of the request are not looked at. The session is begun by `start` when what else the request
/// names was found sound.
pub fn collect_etw(
    request: &Convert,
    start: impl FnOnce() -> Result<Live>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary> {
    let manifests = EventManifests::open(&request.manifests)?;
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
