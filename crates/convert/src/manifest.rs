//! `manifest.json`: what a dataset was made of, and its tables. Of a dataset of several recordings it sums up their
//! entries, `manifest/<key>.json`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use tracequet_dataset::table::schema::{self, SCHEMA_VERSION};
use tracequet_dataset::write::{Summed, SummedTable, UNFINISHED};
use tracequet_trace::error::Result;

use super::request::{AddressType, Convert};
use super::summary::{FailedInput, InputSummary, TableSummary};

/// Version of this program, as manifests have it.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of the file of a dataset of one recording.
pub(super) fn of_one(request: &Convert, input: &InputSummary, tables: &[TableSummary]) -> String {
    let mut manifest: Map<String, Value> =
        head(request, "flat").into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let lists = [("inputs", json!([recording(request, input)])), ("failed", json!([])), ("tables", list(tables))];
    manifest.extend(lists.map(|(name, value)| (name.to_owned(), value)));
    let mut text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    text.push('\n');
    text
}

/// The entry of a recording in a dataset of several. `etag` is that of the object that it was read from, if it was one.
pub(super) fn entry(request: &Convert, input: &InputSummary, tables: &[TableSummary], etag: Option<&str>) -> Vec<u8> {
    let mut entry = recording(request, input);
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("options".to_owned(), request.options().into());
        if let Some(etag) = etag {
            entry.insert("etag".to_owned(), etag.into());
        }
    }
    with_tables(entry, tables)
}

/// The entry of a recording that could not be read.
pub(super) fn failed_entry(request: &Convert, failed: &FailedInput, tables: &[TableSummary]) -> Vec<u8> {
    let entry = json!({
        "trace_id": failed.trace_id, "path": failed.path.display().to_string(),
        "size_bytes": failed.identity.size_bytes, "sha256": failed.identity.sha256, "status": "failed",
        "error": failed.error, "offset": failed.offset, "labels": labels(request),
    });
    with_tables(entry, tables)
}

/// The entry of a recording that is still written: these rows of its tables can be read.
pub(super) fn unfinished_entry(request: &Convert, key: &str, name: &Path, tables: &[TableSummary]) -> Vec<u8> {
    let events = tables.iter().filter(|table| table.name.starts_with("event/")).map(|table| table.rows).sum::<u64>();
    let entry = json!({
        "trace_id": key, "path": name.display().to_string(), "size_bytes": 0, "sha256": "", "events": events,
        "dropped_events": 0, "complete": false, "status": UNFINISHED, "labels": labels(request), "problems": [],
        "options": request.options(),
    });
    with_tables(entry, tables)
}

/// The text of the file of a dataset of several, by its entries; and the names of its tables, those of facts first. Of the tables
/// `empty` there is a file without rows, whether a recording has such a table or not.
pub(super) fn of_several(request: &Convert, summed: &Summed, empty: &[String]) -> Result<(String, Vec<String>)> {
    let mut tables: Vec<SummedTable> = summed.tables().collect();
    let known: HashSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let more: Vec<&String> = empty.iter().filter(|name| !known.contains(name.as_str())).collect();
    tables.extend(more.into_iter().map(|name| SummedTable { name: name.clone(), rows: 0, bytes: 0 }));
    let order: HashMap<&str, usize> =
        schema::all()?.iter().enumerate().map(|(place, table)| (table.name.as_str(), place)).collect();
    let place = |table: &SummedTable| order.get(table.name.as_str()).copied().unwrap_or(order.len());
    tables.sort_by(|a, b| (place(a), &a.name).cmp(&(place(b), &b.name)));
    let text = summed.manifest(&head(request, "hive"), &tables);
    Ok((text, tables.into_iter().map(|table| table.name).collect()))
}

fn recording(request: &Convert, input: &InputSummary) -> Value {
    let problems: Vec<_> = input
        .problems
        .iter()
        .map(|p| json!({ "code": p.code, "severity": p.severity.as_str(), "rows": p.rows, "count": p.count }))
        .collect();
    json!({
        "trace_id": input.trace_id, "path": input.path.display().to_string(),
        "size_bytes": input.identity.size_bytes, "sha256": input.identity.sha256,
        "start": tracequet_trace::time::format_utc(input.info.clock.sync_utc_ns),
        "events": input.events, "dropped_events": input.dropped_events, "complete": input.complete,
        "status": input.status(), "labels": labels(request), "problems": problems,
    })
}

fn with_tables(mut entry: Value, tables: &[TableSummary]) -> Vec<u8> {
    if let Some(entry) = entry.as_object_mut() {
        let more = [("version", VERSION.into()), ("schema_version", SCHEMA_VERSION.into()), ("tables", list(tables))];
        entry.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    let mut text = entry.to_string();
    text.push('\n');
    text.into_bytes()
}

/// The labels of the recordings of a request, as entries have them.
pub(super) fn labels(request: &Convert) -> Value {
    request
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn list(tables: &[TableSummary]) -> Value {
    tables.iter().map(|t| json!({ "name": t.name, "rows": t.rows, "bytes": t.bytes })).collect()
}

/// What a manifest begins with: who wrote it, and how the tables are written.
fn head(request: &Convert, layout: &str) -> [(&'static str, Value); 6] {
    [
        ("tool", "tracequet".into()),
        ("version", VERSION.into()),
        ("schema_version", SCHEMA_VERSION.into()),
        ("layout", layout.into()),
        ("format", request.format.name().into()),
        ("address_type", address_type(request.address_type).into()),
    ]
}

/// The word of an address type.
pub(super) fn address_type(address_type: AddressType) -> &'static str {
    match address_type {
        AddressType::Uint64 => "uint64",
        AddressType::Int64 => "int64",
    }
}
