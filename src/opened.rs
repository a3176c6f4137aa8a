//! Opens IN as a dataset: IN itself, or a temporary dataset converted from a recording.

use std::path::Path;

use tracequet::analyze::kept::Kept;
use tracequet::dataset::read::Dataset;
use tracequet::trace::source::store::{is_address, shown};
use tracequet::{Convert, DatasetLayout, LIFETIMES, Progress, StoredDataset, TemporaryDataset, expand};

use super::asked::AskedArgs;
use super::interrupt;
use super::own::OwnArgs;
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
    /// Rows that the conversion of a recording kept as the request asks: the dataset has no tables of them then.
    pub kept: Kept,
    /// The temporary dataset of a conversion, removed with this.
    converted: Option<TemporaryDataset>,
}

impl Opened {
    /// Whether it was made of a recording just now.
    pub fn is_converted(&self) -> bool {
        self.converted.is_some()
    }

    /// A recording of it on a command line: a path, and the key where there are several at that path. `input` is what
    /// was opened.
    pub fn argument(&self, input: &Path, trace_id: &str) -> (String, Option<String>) {
        let all = self.dataset.recordings();
        // A directory or a pattern names recordings.
        let is_of_several = self.is_converted() && !input.is_file() && !is_address(input);
        let own = all.iter().find(|info| is_of_several && info.trace_id == trace_id);
        let path = own.map_or_else(|| shown(input), |info| info.path.clone());
        let key = (!self.is_converted() && all.len() > 1).then(|| trace_id.to_owned());
        (path.display().to_string(), key)
    }
}

/// Opens the dataset at `input`, or converts these tables of the recording there as the request says: what is asked
/// about, and what a command needs beside it. A dataset has the options of its conversion.
pub fn open(input: &Path, tables: &[&str], asked: &AskedArgs, request: Convert) -> anyhow::Result<Opened> {
    let opened = open_as(input, tables, request)?;
    if asked.is_for_recordings() && !opened.is_converted() {
        let what = "a dataset has the processes and the own code of its conversion, expected --process, --own and --not-own with a \
                    recording, or with convert";
        return Err(tracequet::Error::Usage(what.into()).into());
    }
    Ok(opened)
}

fn of_dataset(dataset: Dataset, stored: Option<StoredDataset>) -> Opened {
    Opened { dataset, losses: false, stored, kept: Kept::default(), converted: None }
}

fn open_as(input: &Path, tables: &[&str], request: Convert) -> anyhow::Result<Opened> {
    if input.is_dir() {
        return Ok(of_dataset(Dataset::open(input)?, None));
    }
    if let Some(OpenDataset { dataset, stored }) = stored::dataset(input, tables)? {
        return Ok(of_dataset(dataset, stored));
    }
    converted(input, tables, request.inputs([input]))
}

/// Opens one recording or several: of a directory without a dataset those in it and below, of a pattern those that it
/// names.
pub fn open_all(input: &Path, tables: &[&str], own: &OwnArgs) -> anyhow::Result<Opened> {
    let is_dataset = input.is_dir() && input.join("manifest.json").exists();
    if is_dataset || is_address(input) {
        let asked = AskedArgs { own: own.clone(), ..AskedArgs::default() };
        return open(input, tables, &asked, asked.request());
    }
    let found = expand(&[input.to_owned()], Path::new(""))?;
    let layout = if found.several { DatasetLayout::Hive } else { DatasetLayout::default() };
    converted(
        input,
        tables,
        Convert::default().own(own.patterns()).lifetimes(LIFETIMES).inputs(found.inputs).layout(layout),
    )
}

/// Converts the recordings of a request into a temporary dataset. `input` is how they are shown.
fn converted(input: &Path, tables: &[&str], request: Convert) -> anyhow::Result<Opened> {
    interrupt::end_at_interrupt()?;
    let folder = tempfile::tempdir()?;
    interrupt::remove_at_end(folder.path());
    let keep = request.kept().cloned();
    let mut bar = Bar::new(false);
    let name = shown(input).to_string_lossy().into_owned();
    let mut show = |progress: Progress| bar.show(&name, progress.position, progress.total);
    let result = TemporaryDataset::convert(folder, request.tables_to_read(tables), &mut show);
    bar.clear();
    let converted = result?;
    let losses = converted.summary.inputs.iter().any(|input| input.has_losses());
    let kept = keep.map(|keep| keep.take()).unwrap_or_default();
    Ok(Opened { dataset: converted.dataset.clone(), losses, stored: None, kept, converted: Some(converted) })
}
