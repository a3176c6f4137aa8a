//! Recordings as a temporary dataset, for commands that read a recording as they read a dataset.

use crate::prelude::*;

use tempfile::TempDir;
use tracequet_dataset::format::Format;
use tracequet_dataset::read::Dataset;
use tracequet_dataset::write::Compression;

use super::convert;
use super::request::{Convert, Progress};
use super::summary::Summary;

/// Recordings up to this many bytes are converted into a temporary dataset of Arrow files, larger ones into one of
/// Parquet files. Arrow files take less processor time to write and read than Parquet files without compression, but
/// three to five times the room on the disk. Under WASI that room is memory: all become Parquet there.
const SMALL: u64 = if cfg!(target_os = "wasi") { 0 } else { 256 << 20 };

/// The dataset is read once, and soon: to compress it would take longer than to read and write more bytes, which are memory under WASI.
const COMPRESSION: Compression = if cfg!(target_os = "wasi") { Compression::Snappy } else { Compression::None };

/// Bytes of memory for following sampled objects through collections, which findings about leaks are made of
/// ([`Convert::lifetimes`]).
pub const LIFETIMES: u64 = 1 << 30;

/// A dataset that is removed with this.
#[derive(Debug)]
pub struct TemporaryDataset {
    /// The dataset.
    pub dataset: Dataset,
    /// The outcome of the conversion.
    pub summary: Summary,
    folder: TempDir,
}

impl TemporaryDataset {
    /// Converts the recordings of a request into a folder of this temporary one. `output`, `format` and `compression`
    /// of the request are not looked at. Fails as [`convert`] does.
    pub fn convert(folder: TempDir, request: Convert, progress: &mut dyn FnMut(Progress)) -> Result<TemporaryDataset> {
        let format = if are_small(request.input_paths()) { Format::Arrow } else { Format::Parquet };
        let request =
            request.output(folder.path().join("dataset")).compression(COMPRESSION).format(format).temporary(true);
        let summary = convert(&request, progress)?;
        Ok(TemporaryDataset { dataset: Dataset::open(request.output_path())?, summary, folder })
    }

    /// The temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether the files of recordings have at most [`SMALL`] bytes together. What is no file, such as an object of a
/// store, has an unknown size.
fn are_small(recordings: &[PathBuf]) -> bool {
    let mut sizes = recordings.iter().map(|path| std::fs::metadata(path).map(|file| file.len()));
    sizes.try_fold(0u64, |sum, size| Some(sum.saturating_add(size.ok()?))).is_some_and(|bytes| bytes <= SMALL)
}
