//! Pauses and collections.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::surfaces::Surfaces;

/// A pause for a collection, by the table.
struct Pause {
    process: u64,
    gc_id: u64,
    start: i64,
    end: i64,
}

fn pauses(surfaces: &Surfaces) -> Vec<Pause> {
    let table = surfaces.dataset.table("gc_pause");
    let (processes, ids, kinds) = (table.numbers("process_id"), table.numbers("gc_id"), table.texts("kind"));
    let (starts, durations) = (table.signed("start_ts_ns"), table.signed("duration_ns"));
    (0..table.rows())
        .filter(|at| kinds[*at] == "gc")
        .map(|at| {
            let (start, duration) = (starts[at].unwrap(), durations[at].unwrap());
            Pause { process: processes[at], gc_id: ids[at], start, end: start + duration }
        })
        .collect()
}

/// The time that pauses cover, of each process.
fn covered(pauses: &[Pause]) -> i64 {
    let mut spans: Vec<_> = pauses.iter().map(|pause| (pause.process, pause.start, pause.end)).collect();
    spans.sort_unstable();
    let (mut sum, mut last) = (0, (0, i64::MIN));
    for (process, start, end) in spans {
        let until = if last.0 == process { last.1 } else { i64::MIN };
        sum += (end - start.max(until)).max(0);
        last = (process, end.max(until));
    }
    sum
}

/// Holds the pauses of a recording equal everywhere. Returns whether it has pauses, and requests.
pub fn check(surfaces: &Surfaces, python: Option<&Path>) -> [bool; 2] {
    let name = &surfaces.name;
    let pauses = pauses(surfaces);
    let longest = pauses.iter().map(|pause| pause.end - pause.start).max();
    let total: i64 = pauses.iter().map(|pause| pause.end - pause.start).sum();

    // Metric and finding.
    if let Some(longest) = longest {
        assert_eq!(surfaces.metric("gc.pause.max"), Some(longest as f64), "{name}");
        // Pauses of two runtimes of a process may overlap: the overlap counts once in the sum.
        assert_eq!(surfaces.metric("gc.pause.total"), Some(covered(&pauses) as f64), "{name}");
        let found = surfaces.figures("long_pause").into_iter().reduce(f64::max);
        // The work of a profiler lengthens the pauses of a callback recording, so that they are not judged.
        let is_judged = !name.ends_with(".corprof");
        assert_eq!(found, is_judged.then_some(longest as f64), "{name}: long_pause");
        let of_export = surfaces.on_track("Pauses");
        assert_eq!(of_export.iter().max(), Some(&longest.cast_unsigned()), "{name}: perfetto");
        assert_eq!(of_export.iter().sum::<u64>(), total.cast_unsigned(), "{name}: perfetto");
    } else {
        assert!(surfaces.figures("long_pause").is_empty(), "{name}");
    }

    // The page: card, list, timeline.
    let mut of_gc: BTreeMap<u64, (i64, i64)> = BTreeMap::new();
    for pause in &pauses {
        let (longest, sum) = of_gc.entry(pause.gc_id).or_default();
        *longest = (*longest).max(pause.end - pause.start);
        *sum += pause.end - pause.start;
    }
    let collections = surfaces.column("collections-table", "gc_id");
    let longest_shown = surfaces.column("collections-table", "longest");
    let sums_shown = surfaces.column("collections-table", "pause");
    for (at, gc_id) in collections.iter().enumerate() {
        let expected = of_gc.get(&gc_id.unwrap().cast_unsigned());
        // Each collection stops threads: one without a pause has a dash, not 0.
        let shown = (longest_shown[at], sums_shown[at]);
        let expected = (expected.map(|(longest, _)| *longest), expected.map(|(_, sum)| *sum));
        assert_eq!(shown, expected, "{name}: collection {gc_id:?}");
    }
    let processes: std::collections::BTreeSet<u64> = pauses.iter().map(|pause| pause.process).collect();
    if let (Some(longest), 1) = (longest, processes.len()) {
        if !collections.is_empty() {
            assert_eq!(longest_shown.iter().flatten().max(), Some(&longest), "{name}: list");
        }
        let (before, _) = surfaces.html.split_once("</dd><dt>Longest pause</dt>").expect("the card");
        let card = before.rsplit_once("<dd>").unwrap().1;
        assert!(surfaces.html.contains(&format!("Pauses: {} pause", pauses.len())), "{name}");
        assert!(surfaces.html.contains(&format!(", the longest {card}")), "{name}: timeline, {card}");
    }

    // Parts of pauses within a request.
    let starts = surfaces.column("slowest-table", "start s");
    let (took, within) = (surfaces.column("slowest-table", "took"), surfaces.column("slowest-table", "in pauses"));
    for (took, within) in took.iter().zip(&within) {
        assert!(within.unwrap_or_default() <= took.unwrap(), "{name}: {within:?} of a request of {took:?}");
    }
    let sides: Vec<String> =
        surfaces.shown("slowest-table").unwrap_or_default().iter().map(|row| row[1].1.clone()).collect();
    let requests: Vec<_> = starts.iter().zip(&within).zip(&sides).filter(|(_, side)| *side == "server").collect();
    let expected = json!({
        "count": pauses.len(),
        "longest": longest,
        "total": total,
        "of_gc": of_gc.iter().map(|(gc_id, (_, sum))| json!([gc_id, sum])).collect::<Vec<_>>(),
        "requests": requests.iter().map(|((start, within), _)| json!([start, within])).collect::<Vec<_>>(),
    });
    let file = surfaces.dataset.path().join("expected.json");
    std::fs::write(&file, expected.to_string()).unwrap();
    if let Some(python) = python {
        crate::dataset::readers::run(python, "pauses.py", &[surfaces.dataset.path(), file]);
    }
    [longest.is_some(), !within.is_empty()]
}
