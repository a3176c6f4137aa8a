//! One recording through the layers: a file that is read from its beginning to its end.

use tracequet_dataset::table::Shape;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::{DatasetOptions, TableSink};
use tracequet_trace::event::Resolver;
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::reader::{self, Order};
use tracequet_trace::source::{FileIdentity, RecordingPath};

use super::callback_run::CallbackRun;
use super::conversion::Conversion;
use super::event_run::EventRun;
use super::gcdump_run;
use crate::prelude::*;
use crate::request::Convert;
use crate::summary::{InputSummary, TableSummary};

/// The options of the dataset of a request. `inputs` are files that it may not replace.
pub(crate) fn options(request: &Convert, inputs: &[PathBuf]) -> DatasetOptions {
    DatasetOptions {
        format: request.format,
        compression: request.compression,
        temporary: request.temporary,
        overwrite: request.overwrite,
        inputs: inputs.iter().chain(&request.manifests).cloned().collect(),
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        ..DatasetOptions::default()
    }
}

/// Reads a recording into the dataset. `identity` is asked for at the end.
pub(crate) fn read_one(
    request: &Convert,
    manifests: &EventManifests,
    recording: &RecordingPath,
    (shape, selection): (Shape, &Selection),
    dataset: &mut dyn TableSink,
    progress: &mut dyn FnMut(u64, Option<u64>, u64),
    identity: impl FnOnce() -> FileIdentity,
) -> Result<(InputSummary, Vec<TableSummary>)> {
    let path = &recording.name();
    let input = recording.open()?;
    let total = input.size();
    let format = reader::Format::detect(input.head());
    let conversion = Conversion { request, selection, shape, dataset, progress, total };
    if format == Some(reader::Format::GcDump) {
        let dump = reader::gcdump::read(input)?;
        return gcdump_run::run(conversion, &dump, path, &identity());
    }
    if format == Some(reader::Format::Callbacks) {
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
