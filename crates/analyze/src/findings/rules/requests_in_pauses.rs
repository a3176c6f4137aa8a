//! The slowest requests are those that a pause fell into.

use crate::findings::prelude::*;
use crate::samples::least_share;
use crate::subjects::pool::percentile;

pub(super) const RULE: Rule = Rule {
    name: "requests_in_pauses",
    title: "The slowest requests stood still for GCs",
    about: "The slowest requests are slow because the GC paused them.",
    measure: "Of the requests that took longer than 99 of 100, those that were in pauses for half of their time or more. At least 1,000 requests; where \
        the 99th percentile is below 10 ms it is fine, from 100 ms on a warning is possible.",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &["server_requests"],
    record: "gc,requests",
    advice: "Shorten the pauses: allocate less in what runs often, and keep fewer objects alive.",
    causes: &["pause_share", "long_pause"],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["requests", "timeline"], sort: None },
    query: "SELECT r.start_ts, r.duration_ms, count(p.gc_id) AS pauses, sum(p.duration_ns) / 1e6 AS pause_ms FROM requests r \
        LEFT JOIN gc_pause p ON p.trace_id = r.trace_id AND p.process_id = r.process_id AND p.kind = 'gc' \
        AND p.start_ts_ns < r.start_ts_ns + r.duration_ms * 1e6 AND p.start_ts_ns + p.duration_ns > r.start_ts_ns \
        WHERE {process of r} AND r.side = 'server' AND r.duration_ms IS NOT NULL GROUP BY ALL ORDER BY r.duration_ms DESC LIMIT 20",
    example: Example::of("habits/counter", "habits/counter-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let requests = look.process.requests();
    let rows = requests.len() as u64;
    let mut times: Vec<u64> = requests.iter().map(|(_, duration)| (*duration).max(0).cast_unsigned()).collect();
    times.sort_unstable();
    let p99 = percentile(&times, 99).map_or(i64::MAX, u64::cast_signed);
    let pauses = &look.picture.collections.pauses;
    // A pause that is a small part of a slow request does not make it slow.
    let in_pause = |start: i64, ns: i64| pauses.within_ns(look.id, start, start.saturating_add(ns)) >= ns / 2;
    let slow: Vec<_> = requests.iter().filter(|(_, duration)| *duration > p99).collect();
    let hit = slow.iter().filter(|(start, duration)| in_pause(*start, *duration)).count();
    let value = hit as f64 / slow.len().max(1) as f64;
    let lack = Lack::rows(rows, 1000, "requests");
    let few = (rows < 1000).then(|| Few { least: least_share(value, slow.len() as u64), lack });
    let sentence = format!(
        "{hit} of the {} slowest requests (over {}) stood still for GCs half of their time or more.",
        slow.len(),
        words::time(p99 as f64)
    );
    // Where pauses are short, a request that is slow by them is slow by nothing.
    let at_most = Some(score(p99 as f64, 1e7, 1e8));
    Figure { value, rows, at_most, few, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Activity, FactSink, GcPause};

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        for n in 0..2000 {
            let duration_ns = if n % 50 == 0 { 300 * MS + n } else { MS };
            let row = Activity {
                start_ts_ns: n * 30 * MS,
                end_ts_ns: Some(n * 30 * MS + duration_ns),
                process_id: 7,
                provider_name: "Microsoft.AspNetCore.Hosting",
                name: "Request",
                ..Activity::default()
            };
            made.tables.add(&row);
            if n % 50 == 0 && f64::from(n as u32 / 50) < 40.0 * x {
                let row = GcPause {
                    gc_id: 1,
                    process_id: 7,
                    kind: "gc",
                    start_ts_ns: n * 30 * MS,
                    duration_ns: 200 * MS,
                    ..GcPause::default()
                };
                made.tables.add(&row);
            }
        }
    }
}
