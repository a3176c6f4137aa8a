//! The slowest requests are those that a pause fell into.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "requests_in_pauses",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &["server_requests"],
    record: "gc,requests",
    next: "tracequet stats IN",
    causes: &["pause_share", "long_pause"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let requests = look.process.requests();
    let rows = requests.len() as u64;
    if rows < 1000 {
        return Judged::too_little(format!("{rows} requests are too few."));
    }
    let mut times: Vec<i64> = requests.iter().map(|(_, duration)| *duration).collect();
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or(i64::MAX);
    let pauses = &look.picture.collections.pauses;
    let in_pause = |start: i64, end: i64| pauses.within_ns(look.id, start, end) > 0;
    let slow: Vec<_> = requests.iter().filter(|(_, duration)| *duration > p99).collect();
    let hit = slow.iter().filter(|(start, duration)| in_pause(*start, start.saturating_add(*duration))).count();
    let value = hit as f64 / slow.len().max(1) as f64;
    let sentence = format!(
        "{hit} of the {} slowest requests (over {}) had a pause of the collector in them.",
        slow.len(),
        words::time(p99 as f64)
    );
    let evidence = format!(
        "SELECT r.start_ts, r.duration_ms, count(p.gc_id) AS pauses, sum(p.duration_ns) / 1e6 AS pause_ms FROM requests r \
         LEFT JOIN gc_pause p ON p.trace_id = r.trace_id AND p.process_id = r.process_id AND p.kind = 'gc' \
         AND p.start_ts_ns < r.start_ts_ns + r.duration_ms * 1e6 AND p.start_ts_ns + p.duration_ns > r.start_ts_ns \
         WHERE {} AND r.side = 'server' AND r.duration_ms IS NOT NULL GROUP BY ALL ORDER BY r.duration_ms DESC LIMIT 20",
        look.of("r")
    );
    // Where pauses are short, a request that is slow by them is slow by nothing.
    let at_most = Some(score(p99 as f64, 1e7, 1e8));
    Figure { value, rows, at_most, sentence, evidence, ..Figure::default() }.into()
}
