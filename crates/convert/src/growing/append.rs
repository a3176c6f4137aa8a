//! A live recording that is added to a dataset of several when it has ended.

use std::time::Instant;

use tracequet_dataset::format::paths;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::{DatasetWriter, Encoders};
use tracequet_lake::{self as lake, Directory, Empty, Lake, NewRecording, check_head, describe};
use tracequet_trace::source::store::Address;

use super::follow::key;
use crate::alone::OneInput;
use crate::entries;
use crate::many::known::Known;
use crate::one::options;
use crate::prelude::*;
use crate::request::Convert;
use crate::summary::{InputSummary, Summary};

/// Adds a recording to the dataset of a request, wherever that lies. It appears whole or not at all.
pub(crate) fn into_lake(request: &Convert, name: &Path, one: &mut OneInput<'_>) -> Result<Summary> {
    let was_there = Address::parse(&request.output).is_some() || request.output.exists();
    let lake = lake::at(&request.output)?;
    let made = add(request, name, &lake, one);
    if made.is_err() && !was_there {
        Directory::new(&request.output, false).leave(was_there);
    }
    made
}

fn add(request: &Convert, name: &Path, lake: &Lake, one: &mut OneInput<'_>) -> Result<Summary> {
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    let version = check_head(lake, request.written())?;
    lake.storage().open()?;
    Known::of(request, lake.summed(false)?)?;
    let key = key(name);
    let mut options = options(request, &[]);
    let empty = Empty::of(request.address_type, &selection, options.clone())?;
    let encoders = Encoders::start(options.threads);
    options.partition = Some(paths::partition(&key));
    options.elsewhere = std::sync::Arc::new(empty.names().map(str::to_owned).collect());
    let mut part = DatasetWriter::part_of(lake.storage().folder(), encoders.clone(), options)?;
    let shape = request.shape(Some(key.clone()));
    let (summary, tables) = one(shape, &selection, &mut part)?;
    let input = InputSummary { trace_id: key.clone(), ..summary };
    empty.put(lake, &encoders, version)?;
    let entry = entries::entry(request, &input, &tables, None);
    // No other recording has its key.
    lake.put(&[NewRecording::new(&key, part, &entry, Vec::new())?])?;
    describe(lake, request.written(), request.refresh)?;
    Ok(Summary::of_one(input, tables, request.output.clone(), started))
}
