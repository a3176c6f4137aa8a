//! Opens IN as a dataset: IN itself, or a temporary dataset converted from a recording.

use std::path::{Path, PathBuf};

use crate::dataset::read::Dataset;
use crate::{Convert, StoredDataset, convert};
use tempfile::TempDir;

use super::interrupt;
use super::progress::Bar;
use super::stored::{self, OpenDataset};

/// A dataset that can be asked.
pub struct Opened {
    /// The dataset.
    pub dataset: Dataset,
    /// Whether the recording that was converted for it has losses.
    pub losses: bool,
    /// The copy of what lies in an object store.
    pub stored: Option<StoredDataset>,
    /// Where it is, if it is temporary: removed with this.
    folder: Option<TempDir>,
}

impl Opened {
    /// Whether it was made of a recording just now.
    pub fn is_converted(&self) -> bool {
        self.folder.is_some()
    }
}

/// Opens the dataset at `input`, or converts these tables of the recording there.
pub fn open(input: &Path, tables: &[&str]) -> anyhow::Result<Opened> {
    open_with_symbols(input, tables, &[])
}

/// The same, with source lines by the symbols in these folders.
pub fn open_with_symbols(input: &Path, tables: &[&str], symbols: &[PathBuf]) -> anyhow::Result<Opened> {
    if input.is_dir() {
        return Ok(Opened { dataset: Dataset::open(input)?, losses: false, stored: None, folder: None });
    }
    if let Some(OpenDataset { dataset, stored }) = stored::dataset(input, tables)? {
        return Ok(Opened { dataset, losses: false, stored, folder: None });
    }
    interrupt::end_at_interrupt()?;
    let folder = tempfile::tempdir()?;
    interrupt::remove_at_end(folder.path());
    let tables = tables.iter().map(|table| (*table).to_owned());
    let request = Convert::new([input], folder.path().join("dataset")).tables(tables).symbols(symbols.iter().cloned());
    let mut bar = Bar::new(false);
    let name = crate::trace::source::store::shown(input).to_string_lossy().into_owned();
    let result = convert(&request, &mut |progress| bar.show(&name, progress.position, progress.total));
    bar.clear();
    let losses = result?.inputs.iter().any(|input| input.has_losses());
    Ok(Opened { dataset: Dataset::open(&request.output)?, losses, stored: None, folder: Some(folder) })
}
