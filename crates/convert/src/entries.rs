//! Entries of recordings that a conversion has read, and the manifest of a dataset of one.

use std::path::Path;

use tracequet_dataset::format::{
    Entry, Head, Labels, Layout, Lists, ProblemCount, Recorded, Status, TableInfo, VERSION, flat,
};
use tracequet_dataset::table::schema::SCHEMA_VERSION;

use crate::request::Convert;
use crate::summary::{FailedInput, InputSummary, TableSummary};

/// The text of the file of a dataset of one recording.
pub(crate) fn of_one(request: &Convert, input: &InputSummary, tables: &[TableSummary]) -> String {
    let lists =
        Lists { inputs: vec![recording(request, input)], failed: Vec::new(), packs: Vec::new(), tables: list(tables) };
    flat(&Head::of_now(SCHEMA_VERSION, Layout::Flat, request.format, request.address_type), &lists)
}

/// The entry of a recording in a dataset of several. `etag` is that of the object that it was read from, if it was one.
pub(crate) fn entry(request: &Convert, input: &InputSummary, tables: &[TableSummary], etag: Option<&str>) -> Vec<u8> {
    of_tables(with_options(request, input, etag), tables)
}

/// The entry without its tables, for a recording of a pack.
pub(crate) fn recorded(request: &Convert, input: &InputSummary, etag: Option<&str>) -> Recorded {
    of_now(with_options(request, input, etag))
}

fn with_options(request: &Convert, input: &InputSummary, etag: Option<&str>) -> Recorded {
    Recorded { etag: etag.map(str::to_owned), options: Some(request.options()), ..recording(request, input) }
}

/// The entry of a recording that could not be read.
pub(crate) fn failed_entry(request: &Convert, failed: &FailedInput, tables: &[TableSummary]) -> Vec<u8> {
    let recorded = Recorded {
        trace_id: failed.trace_id.clone(),
        blake3: failed.identity.blake3.clone(),
        sha256: failed.identity.sha256.clone(),
        path: failed.path.display().to_string(),
        size_bytes: failed.identity.size_bytes,
        status: Status::Failed,
        error: Some(failed.error.clone()),
        offset: failed.offset,
        labels: labels(request),
        ..Recorded::default()
    };
    of_tables(recorded, tables)
}

/// The entry of a recording that is still written: these rows of its tables can be read.
pub(crate) fn unfinished_entry(request: &Convert, key: &str, name: &Path, tables: &[TableSummary]) -> Vec<u8> {
    let tables_of_events = list(tables).into_iter().filter(TableInfo::is_payload);
    let recorded = Recorded {
        trace_id: key.to_owned(),
        path: name.display().to_string(),
        status: Status::Unfinished,
        events: Some(tables_of_events.map(|table| table.rows).sum()),
        dropped_events: Some(0),
        complete: Some(false),
        labels: labels(request),
        options: Some(request.options()),
        ..Recorded::default()
    };
    of_tables(recorded, tables)
}

fn recording(request: &Convert, input: &InputSummary) -> Recorded {
    let problems = input.problems.iter().map(|p| ProblemCount {
        code: p.code.to_owned(),
        severity: p.severity.as_str().to_owned(),
        rows: p.rows,
        count: p.count,
    });
    Recorded {
        trace_id: input.trace_id.clone(),
        blake3: input.identity.blake3.clone(),
        sha256: input.identity.sha256.clone(),
        path: input.path.display().to_string(),
        size_bytes: input.identity.size_bytes,
        start: input.info.start_known.then(|| tracequet_trace::time::format_utc(input.info.clock.sync_utc_ns)),
        status: input.status(),
        events: Some(input.events),
        dropped_events: Some(input.dropped_events),
        complete: Some(input.complete),
        problems: problems.collect(),
        labels: labels(request),
        ..Recorded::default()
    }
}

fn of_tables(recorded: Recorded, tables: &[TableSummary]) -> Vec<u8> {
    Entry { recorded: of_now(recorded), tables: list(tables) }.text()
}

/// An entry as this version writes it.
fn of_now(recorded: Recorded) -> Recorded {
    Recorded { version: VERSION.to_owned(), schema_version: Some(SCHEMA_VERSION), ..recorded }
}

/// The labels of the recordings of a request, as entries have them.
pub(crate) fn labels(request: &Convert) -> Labels {
    request.labels.iter().cloned().collect()
}

fn list(tables: &[TableSummary]) -> Vec<TableInfo> {
    tables.iter().map(|table| TableInfo::new(&table.name, table.rows, table.bytes)).collect()
}
