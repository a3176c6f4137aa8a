//! The page of a dataset, for `report` and for `check --report`.

use std::path::Path;

use tracequet::analyze::heap::KeptWalk;
use tracequet::dataset::read::Dataset;
use tracequet::report::{lake, page_with};

/// The page of one recording of a dataset, or of all where it has several and none is chosen; with a text at its top,
/// and the heap dump that its conversion kept.
pub fn page_of(
    dataset: &Dataset,
    input: &Path,
    trace: Option<&str>,
    verdict: &str,
    walk: Option<KeptWalk>,
) -> anyhow::Result<String> {
    if trace.is_none() && dataset.recordings().len() + dataset.failed().len() > 1 {
        let name = input.file_name().map_or_else(|| "dataset".into(), |name| name.to_string_lossy());
        return Ok(lake(dataset, &name, verdict)?);
    }
    Ok(page_with(&dataset.recording(trace)?, verdict, walk)?)
}
