//! Footers of files in which many recordings have rows: read once, and not for each recording.

use crate::prelude::*;
use std::sync::{Mutex, PoisonError};

use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::guard::damaged;
use super::parquet_file::footer;
use super::shared_file::SharedFile;

/// The number of footers that are kept, the ones that were asked for last.
const MOST: usize = 64;

/// The footers that were read.
#[derive(Clone, Debug, Default)]
pub struct Footers(Arc<Mutex<Vec<(PathBuf, ArrowReaderMetadata)>>>);

impl Footers {
    /// The footer of a file that has this many rows. The file of a pack never changes.
    pub(super) fn footer_of(&self, file: &SharedFile, path: &Path, rows: u64) -> Result<ArrowReaderMetadata> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(own, _)| own == path);
        if let Some(found) = found.map(|place| known.remove(place)) {
            let footer = found.1.clone();
            known.push(found);
            return Ok(footer);
        }
        let footer = footer(file, path)?;
        let own = u64::try_from(footer.metadata().file_metadata().num_rows()).unwrap_or_default();
        if own != rows {
            return Err(damaged(path, "the rows of its pack", format!("has {own} rows, and its entry says {rows}")));
        }
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push((path.to_owned(), footer.clone()));
        Ok(footer)
    }
}
