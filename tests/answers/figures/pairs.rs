//! The list of pairs: what a view says, and the same figure on the page, in a metric, in a finding.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::surfaces::{Surfaces, samples};
use crate::support::expected::shared_folder;
use crate::support::python::python;

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

const PAIRS: &[Pair] = &[
    Pair {
        view: "contention_by_site",
        select: "sum(how_often)",
        of: &[|s| s.metric("contention.count"), |s| sum(s, "locks-table", "waits")],
    },
    Pair {
        view: "contention_by_site",
        select: "sum(total_ms) * 1e6",
        of: &[|s| s.metric("contention.duration"), |s| sum(s, "locks-table", "waited")],
    },
    Pair { view: "contention_by_site", select: "max(longest_ms) * 1e6", of: &[|s| s.metric("contention.max")] },
    Pair {
        view: "waits_by_site",
        select: "sum(how_often)",
        of: &[|s| s.metric("wait.count"), |s| sum(s, "waits-table", "waits")],
    },
    Pair { view: "waits_by_site", select: "sum(total_ms) * 1e6", of: &[|s| sum(s, "waits-table", "waited")] },
    Pair {
        view: "thread_pool_work",
        select: "quantile_disc(wait_ns, 0.99)",
        of: &[
            |s| s.metric("threadpool.queue.p99"),
            |s| Some(s.figures("queue_delay")).filter(|all| all.len() == 1)?.first().copied(),
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

#[test]
fn what_stands_on_several_surfaces_is_one_number() {
    let test = "what_stands_on_several_surfaces_is_one_number";
    let Some(python) = python(test) else { return };
    let mut recordings = samples();
    recordings.extend(shared_folder(test, "fourth/right").map(|folder| folder.join("one240.nettrace.zst")));
    let mut compared: BTreeMap<String, u32> = BTreeMap::new();
    for recording in recordings {
        let surfaces = Surfaces::of(&recording);
        let mut pairs = Vec::new();
        for Pair { view, select, of } in PAIRS {
            for (place, of) in of.iter().enumerate() {
                let what = format!("{select} of {view}, {place}");
                if let Some(value) = of(&surfaces) {
                    *compared.entry(what.clone()).or_default() += u32::from(value > 0.0);
                    pairs.push(json!([format!("{} {what}", surfaces.name), view, select, value]));
                } else {
                    compared.entry(what).or_default();
                }
            }
        }
        let requests = requests(&surfaces);
        *compared.entry("requests".into()).or_default() += u32::from(requests.is_some());
        let file = surfaces.dataset.path().join("expected.json");
        std::fs::write(&file, json!({ "pairs": pairs, "requests": requests }).to_string()).unwrap();
        crate::dataset::readers::run(&python, "pairs.py", &[surfaces.dataset.path(), file]);
    }
    let empty: Vec<_> = compared.iter().filter(|(_, count)| **count == 0).map(|(what, _)| what).collect();
    assert!(empty.is_empty(), "no sample has {empty:?}");
}
