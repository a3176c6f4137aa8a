//! `tracequet survival`: the cohorts of real recordings against sums over their ranges. Simulated heaps are in
//! crates/analyze/src/cohort.

use std::collections::{BTreeMap, HashMap};

use tracequet::analyze::cohort::{CohortRow, UNKNOWN_BIRTH, cohorts};
use tracequet::dataset::read::{Column, Dataset, Recording};
use tracequet::{Convert, convert};

use crate::support::files::sample;

fn program(arguments: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output = command.arg("survival").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[derive(Debug, Default)]
struct Gc {
    generation: u64,
    is_background: bool,
    bytes: u64,
    /// Bytes of its ranges that were in generation 0.
    youngest: u64,
}

/// Collections by the order of their ends, with sums over their rows.
fn collections(recording: &Recording<'_>) -> Vec<(u32, Gc)> {
    let mut found: HashMap<u32, Gc> = HashMap::new();
    let mut order: Vec<(u64, u32)> = Vec::new();
    for batch in recording.table("gc").unwrap().scan().batches().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| Column::of(&batch, name).unwrap();
        for row in 0..batch.num_rows() {
            let number = |name: &str| column(name).number(row).unwrap();
            let id = number("gc_id") as u32;
            order.push((number("end_ts_ns"), id));
            let gc = found.entry(id).or_default();
            gc.generation = number("generation");
            gc.is_background = column("kind").text(row) == Some("background");
            gc.bytes = number("surviving_bytes") + number("moved_bytes");
        }
    }
    for table in ["gc_surviving_range", "gc_moved_range"] {
        for batch in recording.table(table).unwrap().scan().batches().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| Column::of(&batch, name).unwrap();
            let (id, length, before) = (column("gc_id"), column("range_length"), column("generation_before"));
            for row in (0..batch.num_rows()).filter(|row| before.number(*row) == Some(0)) {
                found.get_mut(&(id.number(row).unwrap() as u32)).unwrap().youngest += length.number(row).unwrap();
            }
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(_, id)| (id, found.remove(&id).unwrap())).collect()
}

#[test]
fn cohorts_add_up_to_what_each_collection_lists() {
    // The sample, and whether the bounds at the start of each collection are those at the end of the one before. In the
    // others those of a background collection are not.
    for (name, has_steady_bounds) in [("gc-churn", true), ("gc-churn-3.1", false), ("server-gc", false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set");
        convert(&Convert::new([sample(&format!("{name}.nettrace"))], &path), &mut |_| {}).unwrap();
        let dataset = Dataset::open(&path).unwrap();
        let recording = dataset.recording(None).unwrap();
        let mut by_gc: Vec<Vec<CohortRow>> = Vec::new();
        cohorts(&recording, |rows| by_gc.push(rows.to_vec())).unwrap();
        let gcs = collections(&recording);
        assert_eq!(by_gc.len(), gcs.len());

        let mut before: BTreeMap<Option<u8>, u64> = BTreeMap::new();
        let (mut exact, mut newborn) = (0, 0);
        for ((id, gc), rows) in gcs.iter().zip(&by_gc) {
            assert!(rows.iter().all(|row| row.gc_id == *id && row.born_gc_id <= gcs.len() as u32));
            let mut after: BTreeMap<Option<u8>, u64> = BTreeMap::new();
            rows.iter().for_each(|row| *after.entry(row.generation).or_default() += row.alive_bytes);
            let alive: u64 = after.values().sum();
            let is_kept =
                |generation: &Option<u8>| generation.is_none_or(|g| gc.generation < 2 && u64::from(g) > gc.generation);
            let kept: u64 = before.iter().filter(|(generation, _)| is_kept(generation)).map(|(_, bytes)| bytes).sum();
            if !gc.is_background && (gc.generation == 2 || has_steady_bounds) {
                assert_eq!(alive, gc.bytes + kept, "{name}: collection {id}");
                exact += 1;
            }
            if !gc.is_background && before.get(&Some(0)).is_none_or(|bytes| *bytes == 0) {
                let large: u64 = rows.iter().filter(|row| row.generation > Some(2)).map(|row| row.alive_bytes).sum();
                let own = rows.iter().filter(|row| row.born_gc_id == *id).map(|row| row.alive_bytes).sum::<u64>();
                assert!((gc.youngest..=gc.youngest + large).contains(&own), "{name}: collection {id}: {own} {gc:?}");
                newborn += 1;
            }
            before = after;
        }
        assert!(exact >= 4 && newborn >= 2, "{name}: {exact} {newborn}");

        // No cohort grows, but for what is found again of unknown age.
        let mut last: HashMap<u32, u64> = HashMap::new();
        for rows in &by_gc {
            let mut now: HashMap<u32, u64> = HashMap::new();
            rows.iter().for_each(|row| *now.entry(row.born_gc_id).or_default() += row.alive_bytes);
            for (born, bytes) in &now {
                let is_less = last.get(born).is_none_or(|last| bytes <= last);
                assert!(*born == UNKNOWN_BIRTH || is_less, "{name}: cohort {born} grows to {bytes}");
            }
            last = now;
        }
    }
}

#[test]
fn the_command_prints_text_json_and_csv() {
    let path = sample("gc-churn.nettrace");
    let path = path.to_str().unwrap();
    let (code, csv, error) = program(&[path, "--csv"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let (_, json, _) = program(&[path, "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(csv.lines().next(), Some("born_gc_id,gc_id,generation,alive_bytes,unknown_bytes"));
    assert_eq!(csv.lines().count(), rows.len() + 1);
    for (line, row) in csv.lines().skip(1).zip(&rows) {
        let columns = ["born_gc_id", "gc_id", "generation", "alive_bytes", "unknown_bytes"];
        assert_eq!(line, columns.map(|name| row[name].to_string()).join(","));
    }
    let (code, text, _) = program(&[path]);
    assert!(code == 0 && text.contains("gc 2   6.27 MB  6.26 MB") && text.contains("in all     100 %"), "{text}");

    let without = sample("heap-10.nettrace");
    let (code, text, error) = program(&[without.to_str().unwrap()]);
    assert!((code, text.as_str()) == (1, "") && error.contains("lists survivors"), "{error}");
}

#[test]
fn lineage_writes_what_the_command_finds() {
    let folder = tempfile::tempdir().unwrap();
    let request = Convert::new([sample("gc-churn.nettrace")], folder.path().join("out"));
    let generation = |generation: Option<u8>| generation.map(u64::from);
    // With a little memory ranges go to a file and come back; with less not even the collections fit, or a large one.
    for (memory, is_whole) in [(Some(1 << 30), true), (Some(100_000), true), (Some(5_000), false), (None, true)] {
        let summary = convert(&request.clone().lineage(memory).overwrite(true), &mut |_| {}).unwrap();
        let codes: Vec<_> = summary.inputs[0].problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes.contains(&"lineage_too_large"), !is_whole, "{codes:?}");
        let dataset = Dataset::open(folder.path().join("out")).unwrap();
        let recording = dataset.recording(None).unwrap();
        let mut expected = Vec::new();
        cohorts(&recording, |rows| {
            expected.extend(rows.iter().map(|row| {
                (
                    row.gc_id.into(),
                    row.born_gc_id.into(),
                    generation(row.generation),
                    row.alive_bytes,
                    row.unknown_bytes,
                )
            }));
        })
        .unwrap();
        let mut found: Vec<(u64, u64, Option<u64>, u64, u64)> = Vec::new();
        for batch in recording.table("gc_cohort").unwrap().scan().batches().unwrap() {
            let batch = batch.unwrap();
            let column = |name: &str| Column::of(&batch, name).unwrap();
            for row in 0..batch.num_rows() {
                let number = |name: &str| column(name).number(row).unwrap();
                let generation = column("generation").number(row);
                let bytes = (number("alive_bytes"), number("unknown_bytes"));
                found.push((number("gc_id"), number("born_gc_id"), generation, bytes.0, bytes.1));
            }
        }
        if memory.is_none() || !is_whole {
            assert!(found.is_empty());
            continue;
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected && found.len() > 50, "{} rows, expected {}", found.len(), expected.len());
    }
}
