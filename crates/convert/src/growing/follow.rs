//! `--follow`: a recording of a dataset of several, whose parts appear one by one.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::{VERSION, paths};
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::{Encoders, WrittenTable};
use tracequet_lake::{self as lake, Directory, Empty, Parts, check_head, describe};
use tracequet_trace::source::store::Address;

use crate::alone::OneInput;
use crate::entries;
use crate::hashed::{hex, trace_key};
use crate::many::known::Known;
use crate::one::options;
use crate::request::Convert;
use crate::summary::{InputSummary, Summary, TableSummary};

/// Adds a recording to the dataset of a request, and publishes a part of it each time `every` has passed.
pub(crate) fn into_lake(request: &Convert, name: &Path, every: Duration, one: &mut OneInput<'_>) -> Result<Summary> {
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    if Address::parse(&request.output).is_some() {
        let message =
            "--follow publishes into a directory, not into an object store; record without it, or upload the directory";
        return Err(Error::Usage(message.into()));
    }
    let directory = Directory::new(&request.output, true);
    let lake = lake::of(directory.clone());
    let version = check_head(&lake, request.written())?;
    let was_there = request.output.exists();
    lake.storage().open()?;
    Known::of(request, lake.summed(false)?)?;
    let key = key(name);
    let empty = Empty::of(request.address_type, &selection, options(request, &[]))?;
    let encoders = Encoders::start(options(request, &[]).threads);
    let made = recording(request, name, every, one, (&directory, &key, &selection), &encoders, (&empty, version));
    let (input, tables) = match made {
        Ok(made) => made,
        Err(error) => {
            directory.leave(was_there);
            return Err(error);
        }
    };
    describe(&lake, request.written(), request.refresh)?;
    Ok(Summary::of_one(input, tables, request.output.clone(), started))
}

fn recording(
    request: &Convert,
    name: &Path,
    every: Duration,
    one: &mut OneInput<'_>,
    (directory, key, selection): (&Directory, &str, &Selection),
    encoders: &Arc<Encoders>,
    (empty, version): (&Empty, Option<u32>),
) -> Result<(InputSummary, Vec<TableSummary>)> {
    let mut options = options(request, &[]);
    options.partition = Some(paths::partition(key));
    options.elsewhere = Arc::new(empty.names().map(str::to_owned).collect());
    let metadata = [
        ("tracequet.version", VERSION.to_owned()),
        ("tracequet.schema_version", SCHEMA_VERSION.to_string()),
        ("tracequet.source_name", name.display().to_string()),
        ("tracequet.complete", "false".to_owned()),
    ];
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let parts_of = directory.without_syncing();
    let (lake, lake_of_parts) = (lake::of(directory.clone()), lake::of(parts_of.clone()));
    // Not before there is something to publish: a recording that cannot be had leaves nothing.
    let is_first = Cell::new(true);
    let put_empty = || if is_first.take() { empty.put(&lake, encoders, version) } else { Ok(()) };
    let mut announce = |tables: &[WrittenTable]| {
        put_empty()?;
        parts_of.note(key, &entries::unfinished_entry(request, key, name, &summaries(tables)))?;
        describe(&lake_of_parts, request.written(), request.refresh)
    };
    let mut parts = Parts::new(&parts_of, key, (options, encoders.clone()), every, metadata, &mut announce)?;
    let shape = request.shape(Some(key.to_owned()));
    let (summary, tables) = one(shape, selection, &mut parts)?;
    let input = InputSummary { trace_id: key.to_owned(), ..summary };
    let before = entries::unfinished_entry(request, key, name, &tables);
    put_empty()?;
    directory.finish(key, parts.whole, &before, &entries::entry(request, &input, &tables, None))?;
    Ok((input, tables))
}

fn summaries(tables: &[WrittenTable]) -> Vec<TableSummary> {
    tables.iter().cloned().map(TableSummary::from).collect()
}

/// The key of a recording whose bytes are not known yet: no other recording gets it, in any process.
pub(super) fn key(name: &Path) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let unique = Sha256::digest(format!("{} {} {now}", name.display(), std::process::id()));
    trace_key(name, &hex(&unique))
}
