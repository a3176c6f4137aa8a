//! Expands paths to recordings, as on the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use tracequet::trace::source::RecordingPath;

use super::interrupt::interruptible;

/// The recordings of paths, directories and patterns, and how many recordings are in them: an archive may hold
/// several.
#[pyfunction]
pub fn expand(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<(Vec<OsString>, usize)> {
    interruptible(py, move |stop| {
        let inputs = tracequet::expand(&paths, Path::new(""))?.inputs;
        let mut recordings = 0;
        for input in &inputs {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            recordings += RecordingPath::all_in(input).len();
        }
        Ok((inputs.into_iter().map(PathBuf::into_os_string).collect(), recordings))
    })
}

/// Whether a file has the name of a recording.
#[pyfunction]
pub fn is_recording_name(path: PathBuf) -> bool {
    tracequet::is_recording_name(&path)
}
