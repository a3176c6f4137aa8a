//! The footer of a file, by which its rows are known to come from a recording.

use std::path::Path;

use tracequet_facts::fact::Trace;
use tracequet_trace::source::FileIdentity;

use super::schema::SCHEMA_VERSION;
use crate::format::VERSION;

/// The row of a recording, as far as its file alone gives it.
pub fn of_file<'t>(path: &'t str, identity: &'t FileIdentity) -> Trace<'t> {
    let taken = |hash: &'t str| (!hash.is_empty()).then_some(hash);
    let FileIdentity { size_bytes, blake3, sha256 } = identity;
    Trace { path, size_bytes: *size_bytes, blake3: taken(blake3), sha256: taken(sha256), ..Trace::default() }
}

/// Pairs for the footer of each file of a recording: where its rows came from.
pub fn source_footer(trace: &Trace<'_>) -> Vec<(String, String)> {
    let source = Path::new(trace.path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let pairs = [
        ("tracequet.version", VERSION.to_owned()),
        ("tracequet.schema_version", SCHEMA_VERSION.to_string()),
        ("tracequet.source_name", source),
        ("tracequet.source_size_bytes", trace.size_bytes.to_string()),
        ("tracequet.source_blake3", trace.blake3.unwrap_or_default().to_owned()),
        ("tracequet.source_sha256", trace.sha256.unwrap_or_default().to_owned()),
        ("tracequet.trace_start", tracequet_trace::time::format_utc(trace.start_ts)),
        ("tracequet.clock_frequency", trace.clock_frequency.to_string()),
        ("tracequet.pointer_size", trace.pointer_size.to_string()),
        ("tracequet.dropped_event_count", trace.dropped_event_count.to_string()),
        ("tracequet.complete", trace.complete.to_string()),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}
