//! The footer of a file, by which its rows are known to come from a recording.

use std::path::Path;

use tracequet_facts::fact::Trace;

use super::schema::SCHEMA_VERSION;
use crate::format::VERSION;

/// Pairs for the footer of each file of a recording: where its rows came from.
pub fn source_footer(trace: &Trace<'_>) -> Vec<(String, String)> {
    let source = Path::new(trace.path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let pairs = [
        ("tracequet.version", VERSION.to_owned()),
        ("tracequet.schema_version", SCHEMA_VERSION.to_string()),
        ("tracequet.source_name", source),
        ("tracequet.source_size_bytes", trace.size_bytes.to_string()),
        ("tracequet.source_sha256", trace.sha256.to_owned()),
        ("tracequet.trace_start", tracequet_trace::time::format_utc(trace.start_ts)),
        ("tracequet.clock_frequency", trace.clock_frequency.to_string()),
        ("tracequet.pointer_size", trace.pointer_size.to_string()),
        ("tracequet.dropped_event_count", trace.dropped_event_count.to_string()),
        ("tracequet.complete", trace.complete.to_string()),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}
