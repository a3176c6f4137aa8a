//! One recording of a request, from its first byte into the tables of a sink.

use super::callback_run::CallbackRun;
use super::conversion::Conversion;
use super::event_run::EventRun;
use super::inputs;
use super::request::Convert;
use super::summary::{InputSummary, TableSummary};
use crate::error::Result;
use crate::event::Resolver;
use crate::reader::etl::Manifests;
use crate::reader::{self, Order};
use crate::sink::TableSink;
use crate::source::RecordingPath;
use crate::table::Shape;
use crate::table::select::Selection;

/// Reads one recording. Without `wants_hash`, size and hash of its file stay unknown.
#[allow(clippy::too_many_arguments, reason = "what a request says, and the place of one input in it")]
pub(super) fn one_input(
    request: &Convert,
    manifests: &Manifests,
    recording: &RecordingPath,
    shape: Shape,
    selection: &Selection,
    dataset: &mut dyn TableSink,
    wants_hash: bool,
    progress: &mut dyn FnMut(u64, Option<u64>, u64),
) -> Result<(InputSummary, Vec<TableSummary>)> {
    // The hash is taken while the recording is read: both are in the page cache then.
    let hashing = if wants_hash { inputs::identity_of(recording) } else { None };
    let path = &recording.name();
    let input = recording.open()?;
    let total = input.size();
    let is_callbacks = reader::Format::detect(input.head()) == Some(reader::Format::Callbacks);
    // What cannot be hashed was read nevertheless: it has no identity, and costs nothing else.
    let identity = || hashing.and_then(|thread| thread.join().ok().flatten()).unwrap_or_default();
    let conversion = Conversion { request, selection, shape, dataset, progress, total };
    if is_callbacks {
        let mut run = CallbackRun::new(conversion);
        let end = reader::callback::read(input, &mut run)?;
        return run.finish(path, &end, &identity());
    }
    let mut run = EventRun::new(conversion);
    let mut resolver = Resolver::new(&mut run).with_manifests(manifests);
    let end = reader::read(input, Order::Time, &mut resolver)?;
    let resolved = resolver.finish();
    run.finish(path, &end, &identity(), &resolved)
}
