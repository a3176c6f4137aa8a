//! The contents of a recording, without decoding it: one pass that counts, and looks only into the few payloads that
//! say something of collections and of the process.
//!
//! Events come in the order of the file, nothing is held back or sorted, and an event costs a few additions into arrays
//! indexed by kind and by thread.

mod callbacks;
mod events;
mod frames;
mod gc_list;
mod gcdump;
mod process;
mod report;

use crate::prelude::*;

use tracequet_trace::reader::Format;
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::source::{Input, RecordingPath};

pub use frames::{FrameNames, frame_names};
pub use gc_list::{Collection, CollectionKind, GcList};
pub use process::ProcessInfo;
pub use report::{
    DecodedBy, EventTypeCount, HeapCount, HeapTypeCount, Inspection, ProcessCount, ProviderCount, ThreadCount,
};

/// Reads a recording of any format (`-`: standard input) and says what is in it. `progress` is called with the bytes of
/// the (unpacked) recording that are read, and with how many there are, when that is known.
pub fn inspect(path: &Path, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Inspection> {
    inspect_with(path, &EventManifests::default(), progress)
}

/// Inspects with manifests of providers whose events an .etl does not describe itself.
pub fn inspect_with(
    path: &Path,
    manifests: &EventManifests,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Inspection> {
    inspect_input(path, Input::open(path)?, manifests, progress)
}

/// Inspects one recording of an archive that holds several.
pub fn inspect_recording(
    recording: &RecordingPath,
    manifests: &EventManifests,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Inspection> {
    inspect_input(&recording.name(), recording.open()?, manifests, progress)
}

fn inspect_input(
    path: &Path,
    input: Input,
    manifests: &EventManifests,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<Inspection> {
    match Format::detect(input.head()) {
        Some(Format::Callbacks) => callbacks::inspect(path, input, progress),
        Some(Format::GcDump) => gcdump::inspect(path, input, progress),
        _ => events::inspect(path, input, manifests, progress),
    }
}
