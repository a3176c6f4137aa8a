//! The GC tables of every recording among the shared traces, read back from the files that were written: collection by
//! collection against what an independent decoder found, to the byte.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::support::dataset::{Dataset, Table};
use crate::support::expected::{SharedTrace, shared_folder, shared_traces, traces_in};

type Rows = BTreeMap<u64, Vec<Vec<u64>>>;

/// Rows of number columns by collection, sorted.
fn by_collection(table: &Table, columns: &[&str]) -> Rows {
    let ids = table.numbers("gc_id");
    let columns: Vec<Vec<u64>> = columns.iter().map(|c| table.numbers(c)).collect();
    let mut out = Rows::new();
    for (row, id) in ids.into_iter().enumerate() {
        out.entry(id).or_default().push(columns.iter().map(|c| c[row]).collect());
    }
    out.values_mut().for_each(|rows| rows.sort());
    out
}

/// SHA-256 of the rows as lines of decimal numbers.
fn digest(rows: &[Vec<u64>]) -> String {
    let mut hash = Sha256::new();
    for row in rows {
        let line: Vec<String> = row.iter().map(u64::to_string).collect();
        hash.update(line.join(" ") + "\n");
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// EventPipe's numbers of the root kinds that GCBulkRootEdge carries.
fn roots(table: &Table) -> Rows {
    let mut out = Rows::new();
    let (ids, kinds) = (table.numbers("gc_id"), table.texts("root_kind"));
    let columns = [table.numbers("object_id"), table.numbers("root_flags"), table.numbers("root_id")];
    for (row, (id, kind)) in ids.into_iter().zip(kinds).enumerate() {
        let kind = match kind.as_str() {
            "stack" => 0,
            "finalizer" => 1,
            "handle" => 2,
            "older_generation" => 3,
            // Statics come in an event of their own, which the expected digests leave out.
            _ => continue,
        };
        let [object, flags, root] = &columns;
        out.entry(id).or_default().push(vec![object[row], kind, flags[row], root[row]]);
    }
    // The expected lines are sorted as text.
    out.values_mut().for_each(|rows| rows.sort_by_key(|r| r.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")));
    out
}

/// What differs between one recording's GC tables and what is expected; and how many digests agreed.
fn check(trace: &SharedTrace, expected: &Json) -> (Vec<String>, usize) {
    let dataset = Dataset::of(&trace.path);
    let gc = dataset.table("gc");
    let sets: [(&str, Rows); 4] = [
        ("surviving", by_collection(&dataset.table("gc_surviving_range"), &["range_start", "range_length"])),
        (
            "moved",
            by_collection(&dataset.table("gc_moved_range"), &["old_range_start", "new_range_start", "range_length"]),
        ),
        (
            "generation_ranges",
            by_collection(
                &dataset.table("gc_generation_range"),
                &["generation", "range_start", "range_length", "range_length_reserved"],
            ),
        ),
        ("roots", roots(&dataset.table("gc_root"))),
    ];
    let mut found: Vec<_> = gc
        .numbers("gc_id")
        .into_iter()
        .zip(gc.numbers("gc_number"))
        .zip(gc.optional("generation").into_iter().zip(gc.signed("start_ts_ns")).zip(gc.bools("complete")))
        .map(|((id, number), ((generation, start), complete))| (start, id, number, generation, complete))
        .collect();
    found.sort();
    let list = expected["gcs"].as_array().unwrap();
    if trace.name == "gc-verbose-stacks.nettrace" {
        // The start of its last collection is among the dropped events; only we show a collection by its end.
        let last = found.pop().unwrap();
        assert!(!last.4, "a collection without a start is incomplete");
    }
    let mut differences = Vec::new();
    let mut agreed = 0;
    if found.len() != list.len() {
        differences.push(format!("{} collections, expected {}", found.len(), list.len()));
    }
    for ((_, id, number, generation, _), want) in found.iter().zip(list) {
        if want["number"] != *number || generation.map(Json::from).as_ref() != Some(&want["generation"]) {
            differences.push(format!("collection {number} of generation {generation:?}, expected {want}"));
        }
        for (kind, rows) in &sets {
            let rows = rows.get(id).map(Vec::as_slice).unwrap_or_default();
            match want.get(kind) {
                Some(want) if want["sha256"] == digest(rows) && want["rows"] == rows.len() => agreed += 1,
                None if rows.is_empty() => {}
                want => {
                    differences.push(format!("collection {number}: {} rows of {kind}, expected {want:?}", rows.len()))
                }
            }
        }
    }
    (differences, agreed)
}

#[test]
fn every_collection_of_the_shared_traces_agrees_to_the_byte() {
    let Some(folder) = shared_traces("every_collection_of_the_shared_traces_agrees_to_the_byte") else { return };
    let mut traces = traces_in(&folder);
    traces.extend(traces_in(&folder.join("net10")));
    let (mut agreed, mut recordings) = (0, 0);
    let mut differences = Vec::new();
    for trace in &traces {
        let Some(expected) = trace.json("gc") else { continue };
        let (different, same) = check(trace, &expected);
        differences.extend(different.into_iter().map(|d| format!("{}: {d}", trace.name)));
        agreed += same;
        recordings += 1;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(recordings >= 23 && agreed > 1500, "{agreed} digests of {recordings} recordings");
}

/// Pauses and sizes against TraceEvent's, where it is known to be right.
#[test]
fn pauses_and_sizes_agree_with_perfview() {
    let Some(folder) = shared_traces("pauses_and_sizes_agree_with_perfview") else { return };
    let (mut checked, mut allocations) = (0, 0);
    for trace in traces_in(&folder.join("net10")) {
        let Some(expected) = trace.lines("gcstats.jsonl") else { continue };
        let gc = Dataset::of(&trace.path).table("gc");
        let row: BTreeMap<u64, usize> = gc.numbers("gc_number").into_iter().enumerate().map(|(i, n)| (n, i)).collect();
        let (pauses, durations) = (gc.signed("pause_ns"), gc.signed("duration_ns"));
        let (after, promoted) = (gc.optional("size_after_bytes"), gc.optional("promoted_bytes"));
        let before = gc.optional("size_before_bytes");
        let (reasons, kinds) = (gc.texts("reason"), gc.texts("kind"));
        let heaps = gc.numbers("heap_count");
        let allocated = gc.optional("allocated_bytes");
        for want in expected {
            let number = want["Number"].as_u64().unwrap();
            let at = row[&number];
            let near = |name: &str, got: f64| {
                let want = want[name].as_f64().unwrap();
                assert!(
                    (got - want).abs() < 1e-5,
                    "{}: collection {number}: {name} {got}, expected {want}",
                    trace.name
                );
            };
            let ms = |ns: &[Option<i64>]| ns[at].unwrap() as f64 / 1e6;
            let mb = |bytes: &[Option<u64>]| bytes[at].unwrap() as f64 / 1e6;
            near("DurationMSec", ms(&durations));
            near("after", mb(&after));
            near("promoted", mb(&promoted));
            assert_eq!(want["reason"], reasons[at].as_str());
            // TraceEvent ends the pause of a background collection where the pause of another begins, also when there
            // is no other.
            // It also takes one for such that was to run in the background, and stopped all threads.
            if kinds[at] != "background" && want["type"] != "BackgroundGC" {
                near("pause", ms(&pauses));
            }
            // With a heap count that changes, TraceEvent shows the size after the collection before, or 0.
            if !trace.name.starts_with("web") {
                near("before", mb(&before));
                assert_eq!(want["heaps"], heaps[at]);
            }
            checked += 1;
            // TraceEvent counts another way for the first collection and for a foreground one, and shows 0 where the
            // number of heaps changed before.
            let is_blocking = kinds[at] == "blocking" && want["type"] != "BackgroundGC";
            let is_comparable = number > 1 && is_blocking && want["alloc"].as_f64() != Some(0.0);
            if is_comparable && allocated[at].is_some() {
                near("alloc", mb(&allocated));
                allocations += 1;
            }
        }
    }
    assert!(checked > 200 && allocations > 25, "{checked} collections, {allocations} with what was allocated before");
}

/// 46 stops hold a background collection and one of generation 0 or 1 that starts in it.
#[test]
fn background_collections_own_the_time_before_the_inner_collection_starts() {
    let Some(folder) = shared_folder("background_collections_own_the_time", "fourth/right") else { return };
    let gc = Dataset::of(&folder.join("bgc.nettrace")).table("gc");
    let (mut background, mut all) = (0, 0);
    for (kind, pause) in gc.texts("kind").iter().zip(gc.signed("pause_ns")) {
        all += pause.unwrap();
        background += if kind == "background" { pause.unwrap() } else { 0 };
    }
    assert_eq!((background, all), (38_667_808, 419_337_657));
}
