//! Arguments that are addresses of stores.

use std::path::Path;

use tracequet::dataset::read::Dataset;
use tracequet::{StoredDataset, fetch_dataset};

use super::interrupt;
use super::output::print_note;
use super::text::clean;

/// A dataset that was opened, where it is.
pub struct OpenDataset {
    /// The dataset on this machine.
    pub dataset: Dataset,
    /// The one in a store that it is a copy of.
    pub stored: Option<StoredDataset>,
}

/// The dataset at an address, with copies of these tables; without names of all tables. Nothing if the name is not an
/// address of a store, or if there is no dataset.
pub fn dataset(input: &Path, tables: &[&str]) -> anyhow::Result<Option<OpenDataset>> {
    let Some(opened) = entries(input)? else { return Ok(None) };
    if let Some(stored) = &opened.stored {
        stored.copy_tables(tables)?;
    }
    Ok(Some(opened))
}

/// The dataset at an address, or in a directory; of an address without copies of its tables.
pub fn dataset_or_folder(input: &Path) -> anyhow::Result<OpenDataset> {
    if let Some(opened) = entries(input)? {
        return Ok(opened);
    }
    if tracequet::trace::source::store::is_address(input) {
        let what = "is not there".to_owned();
        let path = tracequet::trace::source::store::shown(input);
        let expected = "a dataset: an address with a manifest.json below".to_owned();
        return Err(tracequet::Error::Dataset { path, what, expected }.into());
    }
    Ok(OpenDataset { dataset: Dataset::open(input)?, stored: None })
}

/// Says which entries of a dataset cannot be read. `input` is where it is. Returns whether there are any.
pub fn note_damaged(dataset: &Dataset, input: &Path) -> anyhow::Result<bool> {
    let shown = tracequet::trace::source::store::shown(input);
    for damaged in dataset.damaged() {
        print_note(&format!("tracequet: {}\n", clean(&damaged.at(&shown).to_string())))?;
    }
    Ok(!dataset.damaged().is_empty())
}

fn entries(input: &Path) -> anyhow::Result<Option<OpenDataset>> {
    if !tracequet::trace::source::store::is_address(input) {
        return Ok(None);
    }
    interrupt::end_at_interrupt()?;
    let Some(stored) = fetch_dataset(input)? else { return Ok(None) };
    Ok(Some(OpenDataset { dataset: Dataset::open(stored.path())?, stored: Some(stored) }))
}
