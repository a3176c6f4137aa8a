//! The recordings of the inputs of a request.

use std::path::{Path, PathBuf};

use tracequet_trace::source::RecordingPath;
use tracequet_trace::source::store::{is_address, shown};

use super::names::is_named_so;
use super::stored::Fetches;

/// The recordings of the inputs, each with which input holds it: an archive may hold several. An archive in a store is
/// fetched for that, unless its name says that it holds one (`app.nettrace.zip`).
pub(super) fn recordings(inputs: &[PathBuf], fetches: &Fetches) -> Vec<(usize, RecordingPath)> {
    let archive = |path: &Path| {
        let name = shown(path).to_string_lossy().to_ascii_lowercase();
        if name.strip_suffix(".zip").is_none_or(is_named_so) {
            return None;
        }
        // A fetch that fails here is made again where the file is read, and reported there.
        let address = RecordingPath::of_file(path).address()?.ok()?;
        fetches.fetch(&address, None).ok()?.map(RecordingPath::all_of_copy)
    };
    let held = |path: &Path| match is_address(path) {
        true => archive(path).unwrap_or_else(|| vec![RecordingPath::of_file(path)]),
        false => RecordingPath::all_in(path),
    };
    let of_input = |(input, path): (usize, &PathBuf)| held(path).into_iter().map(move |recording| (input, recording));
    inputs.iter().enumerate().flat_map(of_input).collect()
}
