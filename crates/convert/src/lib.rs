//! Joins the layers: recordings through reader, events, facts, tables and files. The only files that know them all.
//!
//! | folder | what is in it |
//! |---|---|
//! | `one/` | a recording through the layers |
//! | `many/` | recordings side by side, each with its own outcome |
//! | `growing/` | a recording that grows while it is converted |
//! | `stored/` | recordings in object stores, and a dataset that goes to one |
//! | [`inspect`] | a look into a recording without converting it |

#![cfg_attr(not(feature = "live"), allow(dead_code, reason = "what only a recording that grows needs"))]

mod alone;
mod batches;
mod entries;
mod expand;
#[cfg(feature = "live")]
mod growing;
mod hashed;
mod identities;
mod inputs;
pub mod inspect;
mod keep;
mod many;
mod names;
mod one;
mod prelude;
mod request;
mod stored;
mod summary;
mod temporary;

use std::path::PathBuf;

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
#[cfg(feature = "live")]
pub use growing::{Collected, collect_port};
pub use identities::Identities;
pub use keep::Keep;
pub use names::is_recording_name;
pub use one::Watch;
use one::{Conversion, EventRun};
pub use request::{Convert, DatasetLayout, Progress, Step};
use stored::{Fetches, Target, address_of};
pub use summary::{Done, FailedInput, InputSummary, SkippedInput, Summary, TableSummary};
pub use temporary::{LIFETIMES, TemporaryDataset};
pub use tracequet_dataset::format::{AddressType, Format};
pub use tracequet_dataset::write::Compression;

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
        let hashing = (!request.unhashed).then(|| hashed::identity_aside(recording, request.hash_kind()));
        let identity = || match hashing {
            Some(hashing) => hashed::joined(hashing).unwrap_or_default(),
            None => hashed::unhashed(recording),
        };
        one::read_one(request, &manifests, recording, (shape, selection), dataset, &mut progress, identity)
    })
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
