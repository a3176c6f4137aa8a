//! `manifest.json`: what a dataset was made of, and its tables.

use serde_json::json;

use super::request::Convert;
use super::summary::Summary;
use crate::sink::Format;
use crate::table::schema::SCHEMA_VERSION;

/// The text of the file. `hive` says that the dataset holds several recordings.
pub(super) fn text(request: &Convert, summary: &Summary, hive: bool) -> String {
    let extension = match request.format {
        Format::Parquet => "parquet",
        Format::Arrow => "arrow",
    };
    let failed: Vec<_> =
        summary.failed.iter().map(|f| json!({ "path": f.path.display().to_string(), "error": f.error })).collect();
    let inputs: Vec<_> = summary
        .inputs
        .iter()
        .map(|i| {
            let problems: Vec<_> = i
                .problems
                .iter()
                .map(|p| json!({ "code": p.code, "severity": p.severity.as_str(), "rows": p.rows, "count": p.count }))
                .collect();
            json!({
                "trace_id": i.trace_id, "path": i.path.display().to_string(), "size_bytes": i.identity.size_bytes,
                "sha256": i.identity.sha256, "start": crate::time::format_utc(i.info.clock.sync_utc_ns),
                "events": i.events, "dropped_events": i.dropped_events, "complete": i.complete, "problems": problems,
            })
        })
        .collect();
    let tables: Vec<_> =
        summary.tables.iter().map(|t| json!({ "name": t.name, "rows": t.rows, "bytes": t.bytes })).collect();
    let manifest = json!({
        "tool": "tracequet", "version": env!("CARGO_PKG_VERSION"), "schema_version": SCHEMA_VERSION,
        "layout": if hive { "hive" } else { "flat" }, "format": extension, "inputs": inputs,
        "failed": failed, "tables": tables,
    });
    let mut text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
    text.push('\n');
    text
}
