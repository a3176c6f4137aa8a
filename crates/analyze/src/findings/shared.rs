//! What several rules share: how few rows give no verdict, and queries.

use super::rule::Look;

/// With fewer collections or pauses there is no verdict, as in JDK Mission Control.
pub(super) const LEAST_COLLECTIONS: u64 = 10;

/// The same for samples of allocations.
pub(super) const LEAST_SAMPLES: u64 = 100;

/// The collections for which a condition of SQL holds.
pub(super) fn collections(look: &Look<'_>, condition: &str) -> String {
    format!(
        "SELECT gc_id, start_ts, generation, reason, kind, pause_ns / 1e6 AS pause_ms FROM gc WHERE {} AND {condition} \
         ORDER BY pause_ns DESC LIMIT 20",
        look.of_process
    )
}

/// The largest pauses by a column.
pub(super) fn pauses(look: &Look<'_>, column: &str) -> String {
    format!(
        "SELECT p.gc_id, p.start_ts, p.duration_ns / 1e6 AS pause_ms, p.suspend_ns / 1e6 AS suspend_ms, g.generation, g.reason, \
         g.promoted_bytes FROM gc_pause p LEFT JOIN gc g ON g.trace_id = p.trace_id AND g.gc_id = p.gc_id \
         WHERE {} AND p.kind = 'gc' ORDER BY p.{column} DESC LIMIT 20",
        look.of("p")
    )
}
