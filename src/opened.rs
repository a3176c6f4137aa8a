//! Opens IN as a dataset: IN itself, or a temporary dataset converted from a recording.

use std::path::{Path, PathBuf};

use tracequet::analyze::heap::{self, KeptWalk};
use tracequet::dataset::read::Dataset;
use tracequet::facts::code::own::OwnCode;
use tracequet::{Convert, DatasetLayout, KeepWalk, LIFETIMES, Progress, StoredDataset, TemporaryDataset, expand};

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
    /// The heap dump that was asked for, when a recording was converted: the dataset has no rows of its objects and references then.
    pub walk: Option<KeptWalk>,
    /// What was converted: removed with this.
    converted: Option<TemporaryDataset>,
}

impl Opened {
    /// Whether it was made of a recording just now.
    pub fn is_converted(&self) -> bool {
        self.converted.is_some()
    }
}

/// Opens the dataset at `input`, or converts these tables of the recording there.
pub fn open(input: &Path, tables: &[&str]) -> anyhow::Result<Opened> {
    open_as(input, tables, Convert::default().unhashed(true))
}

/// The same for what shows metrics: sampled objects are followed, because the scores of rules are among them.
pub fn open_measured(input: &Path, tables: &[&str]) -> anyhow::Result<Opened> {
    open_as(input, tables, Convert::default().lifetimes(LIFETIMES).unhashed(true))
}

/// The same for what shows a heap dump: that of a recording is kept in memory.
pub fn open_with_walk(input: &Path, tables: &[&str], walk: KeepWalk) -> anyhow::Result<Opened> {
    open_as(input, tables, Convert::default().keep_walk(walk).unhashed(true))
}

/// The same, with source lines by the symbols in these folders, and patterns of own code. A dataset has those of its conversion.
pub fn open_with_symbols(input: &Path, tables: &[&str], symbols: &[PathBuf], own: OwnCode) -> anyhow::Result<Opened> {
    own_of_recording(input, tables, own, Convert::default().symbols(symbols.iter().cloned()).unhashed(true))
}

/// The same for what shows findings: sampled objects are followed, too.
pub fn open_explained(input: &Path, tables: &[&str], symbols: &[PathBuf], own: OwnCode) -> anyhow::Result<Opened> {
    own_of_recording(input, tables, own, Convert::default().symbols(symbols.iter().cloned()).lifetimes(LIFETIMES))
}

/// The same for a page, which shows the last heap dump, too (that of a recording is kept in memory), and the hash of the recording.
pub fn open_for_page(
    input: &Path,
    tables: &[&str],
    symbols: &[PathBuf],
    own: OwnCode,
    walk: KeepWalk,
) -> anyhow::Result<Opened> {
    let request = Convert::default().symbols(symbols.iter().cloned()).lifetimes(LIFETIMES).keep_walk(walk);
    own_of_recording(input, tables, own, request)
}

fn own_of_recording(input: &Path, tables: &[&str], own: OwnCode, request: Convert) -> anyhow::Result<Opened> {
    let asked = own != OwnCode::default();
    let opened = open_as(input, tables, request.own(own))?;
    if asked && opened.converted.is_none() {
        let what = "a dataset has the own code of its conversion, expected --own and --not-own with a recording, or with convert";
        return Err(tracequet::Error::Usage(what.into()).into());
    }
    Ok(opened)
}

fn open_as(input: &Path, tables: &[&str], request: Convert) -> anyhow::Result<Opened> {
    if input.is_dir() {
        return Ok(Opened { dataset: Dataset::open(input)?, losses: false, stored: None, walk: None, converted: None });
    }
    if let Some(OpenDataset { dataset, stored }) = stored::dataset(input, tables)? {
        return Ok(Opened { dataset, losses: false, stored, walk: None, converted: None });
    }
    converted(input, tables, request.inputs([input]))
}

/// The same of one recording or several: of a directory without a dataset those in it and below, of a pattern those that it names.
pub fn open_all(input: &Path, tables: &[&str], own: OwnCode) -> anyhow::Result<Opened> {
    let is_dataset = input.is_dir() && input.join("manifest.json").exists();
    if is_dataset || tracequet::trace::source::store::is_address(input) {
        return open_with_symbols(input, tables, &[], own);
    }
    let found = expand(&[input.to_owned()], Path::new(""))?;
    let layout = if found.several { DatasetLayout::Hive } else { DatasetLayout::default() };
    converted(input, tables, Convert::default().own(own).lifetimes(LIFETIMES).inputs(found.inputs).layout(layout))
}

/// Converts the recordings of a request into a temporary dataset. `input` is how they are shown.
fn converted(input: &Path, tables: &[&str], request: Convert) -> anyhow::Result<Opened> {
    interrupt::end_at_interrupt()?;
    let folder = tempfile::tempdir()?;
    interrupt::remove_at_end(folder.path());
    // What is kept in memory is not written.
    let keep = request.kept_walk().cloned();
    let is_written = |table: &&&str| keep.is_none() || !heap::LARGE_TABLES.contains(*table);
    // A table of events can only be asked for where there are such events.
    let tables = tables.iter().filter(is_written).filter(|table| !table.starts_with("event/"));
    let tables = tables.map(|table| (*table).to_owned());
    let request = request.tables(tables);
    let mut bar = Bar::new(false);
    let name = tracequet::trace::source::store::shown(input).to_string_lossy().into_owned();
    let mut show = |progress: Progress| bar.show(&name, progress.position, progress.total);
    let result = TemporaryDataset::convert(folder, request, &mut show);
    bar.clear();
    let converted = result?;
    let losses = converted.summary.inputs.iter().any(|input| input.has_losses());
    let walk = keep.and_then(|keep| keep.take());
    Ok(Opened { dataset: converted.dataset.clone(), losses, stored: None, walk, converted: Some(converted) })
}
