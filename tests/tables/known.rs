//! Sampled allocations, exceptions whose filters throw, sites behind helpers, shares of pauses and heaps of two
//! formats, held against what the recorded program says of itself (`samples/src/Known.cs`) and against plain counting
//! (`tests/python/known.py`).

use std::collections::BTreeMap;
use std::path::Path;

use crate::metrics::stats::four_deviations;
use crate::support::dataset::Dataset;
#[cfg(unix)]
use crate::support::python::python;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the program wrote down: the lines of one kind.
fn said(kind: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("samples/known.truth.txt")).expect("what the program says");
    let lines = text.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!lines.is_empty(), "nothing of {kind}");
    lines
}

#[test]
fn samples_stand_for_what_the_program_allocates() {
    let table = Dataset::of(&root().join("samples/known.nettrace")).table("allocation");
    let (types, sources) = (table.texts("type_name"), table.texts("source"));
    let (bytes, counts) = (table.optional("allocation_bytes"), table.floats("object_count"));
    let sizes = table.optional("object_size_bytes");
    assert!(sources.iter().all(|source| source == "sampled"));
    let mut sums: BTreeMap<&str, (u64, f64, u64)> = BTreeMap::new();
    for (row, name) in types.iter().enumerate() {
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + bytes[row].unwrap(), sum.1 + counts[row].unwrap(), sum.2 + sizes[row].unwrap());
    }
    let (mut own, mut all) = (0, 0);
    for line in said("allocation") {
        let [name, objects, truth] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (objects, truth): (f64, f64) = (objects.parse().unwrap(), truth.parse().unwrap());
        let (found, count, sampled) = sums[name];
        let allowed = four_deviations(objects, truth / objects);
        assert!((found as f64 - truth).abs() < allowed, "{name}: {found} bytes, {truth} allocated, {allowed} allowed");
        assert!((count - objects).abs() < allowed / truth * objects, "{name}: {count} objects, {objects} allocated");
        (own, all) = (own + sampled, all + found);
    }
    // The objects themselves are a third of it, and nearly all of that is large arrays.
    assert!(own * 2 < all, "{own} of {all}");
}

#[test]
fn exceptions_are_caught_by_whom_the_program_says() {
    let table = Dataset::of(&root().join("samples/known.nettrace")).table("exception");
    let (types, messages) = (table.texts("type_name"), table.texts("message"));
    let (catches, handlers) = (table.numbers("catch_count"), table.texts("catch_method_name"));
    let handler = |row: usize| handlers[row].rsplit("::").next().unwrap().split('(').next().unwrap().to_owned();
    let found =
        (0..table.rows()).map(|row| format!("{}|{}|{}|{}", types[row], messages[row], catches[row], handler(row)));
    let (mut found, mut expected) = (found.collect::<Vec<_>>(), said("exception"));
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(expected.iter().filter(|line| line.ends_with("|0|")).count() == 4, "exceptions in filters");
}

/// The times of the phases are those between the events: marking ends with the last GCMarkWithType.
#[test]
fn phases_are_those_of_the_events() {
    let mut checked = 0;
    for sample in ["gc-churn", "server-gc"] {
        let dataset = Dataset::of(&root().join(format!("samples/{sample}.nettrace")));
        let (gc, marks) = (dataset.table("gc"), dataset.table("gc_mark"));
        let (starts, ends, kinds) = (gc.signed("start_ts_ns"), gc.signed("end_ts_ns"), gc.texts("kind"));
        let phase = |name: &str| gc.signed(name);
        let (mark, plan, relocate) = (phase("mark_ns"), phase("plan_ns"), phase("relocate_ns"));
        let (compact, sweep) = (phase("compact_ns"), phase("sweep_ns"));
        let mechanisms = gc.texts("mechanisms_text");
        let (of, at, times) = (marks.numbers("gc_id"), marks.signed("ts_ns"), marks.signed("duration_ns"));
        assert!(times.iter().all(Option::is_some), "{sample}: every kind of roots has a time");
        for row in 0..gc.rows() {
            let (id, start) = (gc.numbers("gc_id")[row], starts[row].unwrap());
            let runs_in_background = mechanisms[row].contains("Concurrent");
            let is_compacting = mechanisms[row].contains("Compaction") && !runs_in_background;
            assert_eq!(compact[row].is_some(), is_compacting, "{sample} {id}");
            assert_eq!(relocate[row].is_some(), is_compacting, "{sample} {id}");
            assert_eq!(sweep[row].is_some(), !is_compacting && !runs_in_background, "{sample} {id}");
            let parts = [mark[row], plan[row], relocate[row], compact[row], sweep[row]];
            let sum: i64 = parts.iter().flatten().sum();
            assert!(sum <= ends[row].unwrap() - start + 10_000, "{sample} {id}: {parts:?}");
            if kinds[row] == "blocking" {
                let last = (0..of.len()).filter(|n| of[*n] == id).filter_map(|n| at[n]).max().unwrap() - start;
                let difference = (mark[row].unwrap() - last).abs();
                // The events are written in between, and times are in microseconds.
                assert!(
                    difference < 20_000 + last / 3,
                    "{sample} {id}: {} by the collector, {last} by events",
                    mark[row].unwrap()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

// On Wine there is no Python with DuckDB.
#[cfg(unix)]
#[test]
fn views_say_what_the_program_and_plain_counting_say() {
    let Some(python) = python("views_say_what_the_program_and_plain_counting_say") else { return };
    let folder = tempfile::tempdir().unwrap();
    let samples = [
        "known.nettrace", "gc-churn.nettrace", "gc-churn-3.1.nettrace", "server-gc.nettrace", "heap-10.gcdump",
        "heap-10.nettrace",
    ];
    let samples = samples.map(|sample| root().join("samples").join(sample));
    let lake = crate::dataset::readers::convert_files(folder.path(), "lake", &samples, &[]);
    crate::dataset::readers::run(&python, "known.py", &[lake, root().join("samples/known.truth.txt")]);
}
