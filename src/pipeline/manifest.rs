//! `manifest.json`: what a dataset was made of, and its tables. Of a dataset of several recordings it sums up their
//! entries, `manifest/<key>.json`.

use std::path::Path;

use serde_json::{Value, json};

use super::request::{AddressType, Convert};
use super::summary::{FailedInput, InputSummary, TableSummary};
use crate::error::{Error, Result};
use crate::sink::{UNFINISHED, entry_path};
use crate::table::schema::{self, SCHEMA_VERSION};

/// Version of this program, as manifests have it.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of the file of a dataset of one recording.
pub(super) fn of_one(request: &Convert, input: &InputSummary, tables: &[TableSummary]) -> String {
    let inputs = [recording(request, input)];
    text(request, "flat", &inputs, &[], list(tables))
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

/// The entry of a recording that is still written: so many rows of its tables can be read.
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
pub(super) fn of_several(
    request: &Convert,
    entries: &[(String, Vec<u8>)],
    empty: &[String],
) -> Result<(String, Vec<String>)> {
    let (mut inputs, mut failed) = (Vec::new(), Vec::new());
    let mut tables: Vec<TableSummary> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (key, bytes) in entries {
        let parsed = serde_json::from_slice(bytes);
        let mut entry: Value = parsed.map_err(|e| Error::Dataset {
            path: request.output.join(entry_path(key)),
            what: e.to_string(),
            expected: "the entry of a recording".into(),
        })?;
        let own = entry.as_object_mut().and_then(|entry| entry.remove("tables"));
        for table in own.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let number = |key: &str| table.get(key).and_then(Value::as_u64).unwrap_or_default();
            let name = table.get("name").and_then(Value::as_str).unwrap_or_default();
            let place = *places.entry(name.to_owned()).or_insert_with(|| {
                tables.push(TableSummary { name: name.to_owned(), rows: 0, bytes: 0 });
                tables.len() - 1
            });
            if let Some(known) = tables.get_mut(place) {
                known.rows = known.rows.saturating_add(number("rows"));
                known.bytes = known.bytes.saturating_add(number("bytes"));
            }
        }
        if entry.get("status").and_then(Value::as_str) == Some("failed") {
            failed.push(entry)
        } else {
            inputs.push(entry)
        }
    }
    for name in empty.iter().filter(|name| !places.contains_key(*name)) {
        tables.push(TableSummary { name: name.clone(), rows: 0, bytes: 0 });
    }
    let order: Vec<&str> = schema::all()?.iter().map(|table| table.name.as_str()).collect();
    let place = |table: &TableSummary| order.iter().position(|name| *name == table.name).unwrap_or(order.len());
    tables.sort_by(|a, b| (place(a), &a.name).cmp(&(place(b), &b.name)));
    let names = tables.iter().map(|table| table.name.clone()).collect();
    Ok((text(request, "hive", &inputs, &failed, list(&tables)), names))
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
        "start": crate::time::format_utc(input.info.clock.sync_utc_ns),
        "events": input.events, "dropped_events": input.dropped_events, "complete": input.complete,
        "status": input.status(), "labels": labels(request), "problems": problems,
    })
}

fn with_tables(mut entry: Value, tables: &[TableSummary]) -> Vec<u8> {
    if let Some(entry) = entry.as_object_mut() {
        let more = [("version", VERSION.into()), ("schema_version", SCHEMA_VERSION.into()), ("tables", list(tables))];
        entry.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    pretty(&entry).into_bytes()
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

fn text(request: &Convert, layout: &str, inputs: &[Value], failed: &[Value], tables: Value) -> String {
    let format = request.format.name();
    pretty(&json!({
        "tool": "tracequet", "version": VERSION, "schema_version": SCHEMA_VERSION,
        "layout": layout, "format": format, "address_type": address_type(request.address_type), "inputs": inputs,
        "failed": failed, "tables": tables,
    }))
}

/// The word of an address type.
pub(super) fn address_type(address_type: AddressType) -> &'static str {
    match address_type {
        AddressType::Uint64 => "uint64",
        AddressType::Int64 => "int64",
    }
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
