//! One recording into a dataset of its own.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tracequet_dataset::error::Result;
use tracequet_dataset::format::{Summed, paths, tag_of};
use tracequet_dataset::table::Shape;
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::views;
use tracequet_dataset::write::{DatasetWriter, TableSink};

use super::entries;
use super::hashed::trace_key;
use super::one;
use super::request::{Convert, DatasetLayout};
use super::stored::Target;
use super::summary::{InputSummary, Summary, TableSummary};

/// Reads the input into the dataset.
pub(crate) type OneInput<'f> =
    dyn FnMut(Shape, &Selection, &mut dyn TableSink) -> Result<(InputSummary, Vec<TableSummary>)> + 'f;

/// One recording into a dataset of its own, which appears whole or not at all.
pub(crate) fn into_dataset(request: &Convert, name: &Path, one: &mut OneInput<'_>) -> Result<Summary> {
    if let Some(target) = Target::of(request)? {
        return target.make(request, |local| into_dataset(local, name, one));
    }
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    // A session that runs: the key of any other recording of a dataset of several is made by `batch`.
    let hive = (request.layout == DatasetLayout::Hive).then(|| trace_key(name, ""));
    let files: Vec<PathBuf> = request.inputs.iter().cloned().chain([name.to_owned()]).collect();
    let mut dataset = DatasetWriter::create(&request.output, one::options(request, &files))?;
    dataset.set_partition(hive.as_deref().map(paths::partition));
    let shape = request.shape(hive.clone());
    let (summary, tables) = one(shape, &selection, &mut dataset)?;
    let trace_id = hive.clone().unwrap_or_else(|| trace_key(&summary.path, summary.identity.hash()));
    let input = InputSummary { trace_id, ..summary };
    let manifest = match &hive {
        Some(key) => {
            let entry = entries::entry(request, &input, &tables, None);
            dataset.file(&paths::entry(key), &entry)?;
            let mut summed = Summed::new(SCHEMA_VERSION);
            summed.add(key, &tag_of(&entry), &entry);
            tracequet_lake::manifest(request.written(), &summed, &[])?.0
        }
        None => entries::of_one(request, &input, &tables),
    };
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let only_trace = hive.is_none().then_some(input.trace_id.as_str());
    let files = views::Files { only_trace, read_by: request.format.into() };
    dataset.file(paths::VIEWS, views::sql(&names, files).as_bytes())?;
    dataset.file(paths::MANIFEST, manifest.as_bytes())?;
    dataset.commit()?;
    Ok(Summary::of_one(input, tables, request.output.clone(), started))
}
