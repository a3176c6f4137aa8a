//! The list of pairs: what a view says, and the same figure on the page, in a metric, in a finding.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::surfaces::Surfaces;
use crate::answers::export::sums;

/// A figure of a view, and where else it stands.
struct Pair {
    view: &'static str,
    /// What is selected of the view.
    select: &'static str,
    /// Where the same figure stands: `None` of a recording on which it does not.
    of: &'static [fn(&Surfaces) -> Option<f64>],
}

/// Rows of a table of the page: what is beyond is left out.
const PAGE_ROWS: usize = 100;

/// The sum of a column of a table of the page that has all rows.
fn sum(surfaces: &Surfaces, table: &str, head: &str) -> Option<f64> {
    let values = surfaces.column(table, head);
    let is_whole = !values.is_empty() && values.len() < PAGE_ROWS;
    is_whole.then(|| values.into_iter().flatten().sum::<i64>() as f64)
}

/// The largest value of a column of a table that has all collections.
fn largest(surfaces: &Surfaces, head: &str) -> Option<f64> {
    let values = surfaces.column("collections-table", head);
    let is_whole = values.len() < 300 && !surfaces.html.contains("more have collections");
    values.into_iter().flatten().max().filter(|_| is_whole).map(|most| most as f64)
}

/// The number that stands between two texts of the page.
fn between(surfaces: &Surfaces, before: &str, after: &str) -> Option<f64> {
    let (_, rest) = surfaces.html.split_once(before)?;
    rest.split_once(after)?.0.replace(',', "").parse().ok()
}

fn total(surfaces: &Surfaces, metrics: &[&str]) -> Option<f64> {
    metrics.iter().map(|name| surfaces.metric(name)).sum()
}

/// The sum of a profile in each format, where all rows of its table have a call stack.
fn exported(surfaces: &Surfaces, what: &str) -> Option<f64> {
    let sites = surfaces.dataset.table(what).numbers("callsite_id");
    if sites.is_empty() || sites.contains(&0) {
        return None;
    }
    let [first, rest @ ..] = sums(&[surfaces.dataset.path().to_str().unwrap(), "--what", what]);
    assert_eq!(rest, [first; 4], "{}: {what}", surfaces.name);
    Some(first as f64)
}

const PAIRS: &[Pair] = &[
    Pair {
        view: "contention_by_site",
        select: "sum(how_often)",
        of: &[|s| s.metric("contention.count"), |s| sum(s, "locks-table", "waits")],
    },
    Pair {
        view: "contention_by_site",
        select: "sum(total_ms) * 1e6",
        of: &[|s| s.metric("contention.duration"), |s| sum(s, "locks-table", "waited"), |s| exported(s, "contention")],
    },
    Pair { view: "contention_by_site", select: "max(longest_ms) * 1e6", of: &[|s| s.metric("contention.max")] },
    Pair {
        view: "waits_by_site",
        select: "sum(how_often)",
        of: &[|s| s.metric("wait.count"), |s| sum(s, "waits-table", "waits")],
    },
    Pair {
        view: "waits_by_site",
        select: "sum(total_ms) * 1e6",
        of: &[|s| sum(s, "waits-table", "waited"), |s| exported(s, "wait")],
    },
    Pair {
        view: "thread_pool_work",
        select: "quantile_disc(wait_ns, 0.99)",
        of: &[
            |s| s.metric("threadpool.queue.p99"),
            // Where no work item is recorded, the rule takes the counters: the metric has no value then.
            |s| {
                s.metric("threadpool.queue.p99")?;
                Some(s.figures("queue_delay")).filter(|all| all.len() == 1)?.first().copied()
            },
        ],
    },
    Pair {
        view: "thread_pool",
        select: "max(worker_count) FILTER (kind IN ('worker_start', 'worker_stop', 'worker_wait'))",
        of: &[
            |s| s.metric("threadpool.workers.max"),
            |s| s.metric("threadpool.workers.max").and_then(|_| between(s, "<span>workers, at most ", "</span>")),
        ],
    },
    Pair {
        view: "thread_pool",
        select: "count(*) FILTER (starvation)",
        of: &[
            |s| s.metric("threadpool.starvation.count"),
            |s| s.html.contains("<p>No starvation: ").then_some(0.0).or_else(|| between(s, "<p>Starvation: ", " ")),
        ],
    },
    Pair {
        view: "gc_summary",
        select: "count(*)",
        of: &[
            |s| s.metric("gc.count"),
            |s| Some(s.column("collections-table", "gc_id").len() as f64).filter(|_| largest(s, "gc_id").is_some()),
        ],
    },
    Pair {
        view: "gc_summary",
        select: "max(size_after_bytes)",
        of: &[|s| s.metric("heap.size.max"), |s| s.metric("heap.size.max").and_then(|_| largest(s, "after"))],
    },
    Pair { view: "gc_summary", select: "sum(promoted_bytes)", of: &[|s| s.metric("gc.survived.bytes")] },
    Pair {
        view: "survival_by_generation",
        select: "sum(survived_bytes)",
        of: &[|s| sum(s, "survival-table", "survived").filter(|_| largest(s, "gc_id").is_some())],
    },
    Pair {
        view: "jit",
        select: "count(*)",
        of: &[|s| total(s, &["jit.foreground.count", "jit.tier_up.count"]), |s| sum(s, "jit-table", "times")],
    },
    Pair {
        view: "jit",
        select: "sum(jit_ms) * 1e6",
        of: &[|s| total(s, &["jit.foreground.duration", "jit.tier_up.duration"]), |s| sum(s, "jit-table", "took")],
    },
    Pair {
        view: "exceptions",
        select: "sum(how_often)",
        of: &[|s| s.metric("exception.count"), |s| sum(s, "exceptions-table", "thrown")],
    },
    Pair {
        view: "allocation_by_type",
        select: "sum(allocation_bytes)",
        of: &[|s| s.metric("allocation.bytes"), |s| sum(s, "allocations-table", "bytes")],
    },
    Pair { view: "blocked_on", select: "count(*)", of: &[|s| sum(s, "awaits-table", "waits")] },
    Pair { view: "blocked_on", select: "sum(duration_ms) * 1e6", of: &[|s| sum(s, "awaits-table", "together")] },
];

/// What the slowest requests that came in spent their time on, as the page has it, and how often a call is sent in a request.
fn requests(surfaces: &Surfaces) -> Option<Value> {
    let rows = surfaces.shown("slowest-table")?;
    let (_, rest) = surfaces.html.split_once(" Requests of the server by ")?;
    let note = rest.split_once('<')?.0;
    let source = note.split(". ").next()?.trim_end_matches('.');
    let heads = ["start s", "CPU", "waits", "locks", "queries", "calls", "awaits", "in pauses"];
    let columns = heads.map(|head| surfaces.column("slowest-table", head));
    let of_server = rows.iter().enumerate().filter(|(_, row)| row[1].1 == "server");
    let values = of_server.map(|(at, _)| columns.iter().map(|column| json!(column[at])).collect::<Value>());
    let calls = surfaces.figures("n_plus_one_calls").into_iter().next();
    Some(json!({ "source": source, "rows": values.collect::<Value>(), "calls": calls }))
}

/// How often each pair had something to compare.
pub type Compared = BTreeMap<String, u32>;

/// Holds the figures of a recording against its views.
pub fn check(surfaces: &Surfaces, python: &Path, compared: &mut Compared) {
    let mut pairs = Vec::new();
    for Pair { view, select, of } in PAIRS {
        for (place, of) in of.iter().enumerate() {
            let what = format!("{select} of {view}, {place}");
            let value = of(surfaces);
            *compared.entry(what.clone()).or_default() += u32::from(value > Some(0.0));
            pairs.extend(value.map(|value| json!([what, view, select, value])));
        }
    }
    let requests = requests(surfaces);
    *compared.entry("requests".into()).or_default() += u32::from(requests.is_some());
    let file = surfaces.dataset.path().join("pairs.json");
    std::fs::write(&file, json!({ "pairs": pairs, "requests": requests }).to_string()).unwrap();
    crate::dataset::readers::run(python, "pairs.py", &[surfaces.dataset.path(), file]);
}
