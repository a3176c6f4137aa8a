//! `tracequet cohorts`: the cohorts of real recordings against unions of their ranges. Simulated heaps are in
//! crates/analyze/src/cohort.

use std::collections::{BTreeMap, HashMap};

use tracequet::analyze::cohort::{CohortRow, UNKNOWN_BIRTH, cohorts};
use tracequet::dataset::read::{Column, Dataset, Recording};
use tracequet::{Convert, convert};

use crate::support::expected::{shared_folder, shared_traces};
use crate::support::files::sample;

fn program(arguments: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output = command.arg("cohorts").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Sorted parts of memory that do not touch: starts and ends.
type Set = Vec<(u64, u64)>;

fn union(parts: impl IntoIterator<Item = (u64, u64)>) -> Set {
    let mut sorted: Vec<(u64, u64)> = parts.into_iter().filter(|(start, end)| start < end).collect();
    sorted.sort_unstable();
    let mut found: Set = Vec::new();
    for (start, end) in sorted {
        match found.last_mut().filter(|last| last.1 >= start) {
            Some(last) => last.1 = last.1.max(end),
            None => found.push((start, end)),
        }
    }
    found
}

/// The parts of a set that lie in another one, or outside of it.
fn parts(set: &Set, other: &Set, inside: bool) -> Set {
    let mut found = Vec::new();
    for (start, end) in set {
        let mut from = *start;
        let first = other.partition_point(|part| part.1 <= *start);
        for (part, until) in other[first..].iter().take_while(|part| part.0 < *end) {
            if inside {
                found.push((*part.max(start), *until.min(end)));
            } else {
                found.push((from, from.max(*part)));
            }
            from = *until;
        }
        if !inside {
            found.push((from, from.max(*end)));
        }
    }
    union(found)
}

fn bytes(set: &Set) -> u64 {
    set.iter().map(|(start, end)| end - start).sum()
}

#[derive(Debug, Default)]
struct Gc {
    generation: u64,
    is_background: bool,
    start: u64,
    end: u64,
    /// What survived, where it is then.
    listed: Vec<(u64, u64)>,
    /// Generation, start, end: when it began and when it ended.
    bounds: [Vec<(u64, u64, u64)>; 2],
}

impl Gc {
    /// Memory of generations when it began or ended.
    fn memory(&self, at_end: bool, of: impl Fn(u64) -> bool) -> Set {
        let bounds = self.bounds[usize::from(at_end)].iter();
        union(bounds.filter(|bound| of(bound.0)).map(|(_, start, end)| (*start, *end)))
    }
}

/// What takes a row of a collection, with its columns of numbers and of texts by name.
type TakesRow<'t> = &'t mut dyn FnMut(&mut Gc, &dyn Fn(&str) -> u64, &dyn Fn(&str) -> String);

/// Collections by number, with what their rows say.
fn collections(recording: &Recording<'_>) -> BTreeMap<u32, Gc> {
    let mut found: BTreeMap<u32, Gc> = BTreeMap::new();
    let mut each = |table: &str, with: TakesRow<'_>| {
        for batch in recording.table(table).unwrap().scan().batches().unwrap() {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let number = |name: &str| Column::of(&batch, name).unwrap().number(row).unwrap_or_default();
                let text = |name: &str| Column::of(&batch, name).unwrap().text(row).unwrap_or_default().to_owned();
                with(found.entry(number("gc_id") as u32).or_default(), &number, &text);
            }
        }
    };
    each("gc", &mut |gc, number, text| {
        gc.generation = number("generation");
        gc.is_background = text("kind") == "background";
        (gc.start, gc.end) = (number("start_ts_ns"), number("end_ts_ns"));
    });
    each("gc_generation_range", &mut |gc, number, text| {
        let bound = (number("generation"), number("range_start"), number("range_start") + number("range_length"));
        gc.bounds[usize::from(text("phase") == "end")].push(bound);
    });
    for (table, start) in [("gc_surviving_range", "range_start"), ("gc_moved_range", "new_range_start")] {
        each(table, &mut |gc, number, _| gc.listed.push((number(start), number(start) + number("range_length"))));
    }
    found
}

/// Bytes of each generation that are alive after each collection, in the order of their ends: unions of what is listed, and what is
/// left alone.
fn alive(gcs: &BTreeMap<u32, Gc>) -> Vec<(u32, BTreeMap<u64, u64>)> {
    let mut alive: Set = Vec::new();
    // What one in the background lists, without what younger objects lay in.
    let mut open: Option<(u32, Set)> = None;
    let mut found = Vec::new();
    let mut count = |id: u32, alive: &Set| {
        let sums = (0..6).map(|of| (of, bytes(&parts(alive, &gcs[&id].memory(true, |g| g == of), true))));
        found.push((id, sums.filter(|(_, bytes)| *bytes > 0).collect()));
    };
    let with = |alive: Set, id: u32, listed: &Set| {
        union(alive.into_iter().chain(parts(listed, &gcs[&id].memory(true, |g| g >= 2), true)))
    };
    for (id, gc) in gcs {
        if let Some((background, listed)) = open.take_if(|(open, _)| gcs[open].end <= gc.start) {
            alive = with(alive, background, &listed);
            count(background, &alive);
        }
        let collects =
            |g: u64| if gc.is_background { (2..5).contains(&g) } else { g <= gc.generation || gc.generation == 2 };
        let collected = gc.memory(false, |g| collects(g) && g != 5);
        let young = gc.memory(false, |g| g < 2);
        let listed = union(gc.listed.clone());
        let left = parts(&alive, &collected, false);
        if gc.is_background {
            // What it finds dead is dead from its start.
            let kept = parts(&alive, &listed, true);
            alive = union(left.into_iter().chain(kept));
            open = Some((*id, parts(&listed, &young, false)));
        } else {
            alive = union(left.into_iter().chain(listed));
            count(*id, &alive);
            if let Some((_, listed)) = &mut open {
                *listed = parts(listed, &young, false);
            }
        }
    }
    if let Some((background, listed)) = open {
        alive = with(alive, background, &listed);
        count(background, &alive);
    }
    found
}

#[test]
fn cohorts_add_up_to_what_each_collection_lists() {
    let mut all: Vec<std::path::PathBuf> =
        ["gc-churn", "gc-churn-3.1", "server-gc", "lifetimes"].map(|name| sample(&format!("{name}.nettrace"))).into();
    let traces = shared_traces("cohorts_add_up_to_what_each_collection_lists");
    for name in [
        "gc-server-survival.nettrace.zst",
        "gc-survival-compact.nettrace.zst",
        "net10/net10-gc-ranges.nettrace.zst",
        "net10/net10-all.nettrace.zst",
        "net10/net8-churn.nettrace.zst",
    ] {
        all.extend(traces.iter().map(|folder| folder.join(name)));
    }
    let mut whole = 0;
    for path in all {
        let name = path.display();
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("set");
        convert(&Convert::new([path.clone()], &set), &mut |_| {}).unwrap();
        let dataset = Dataset::open(&set).unwrap();
        let recording = dataset.recording(None).unwrap();
        let mut by_gc: Vec<Vec<CohortRow>> = Vec::new();
        cohorts(&recording, |rows| by_gc.push(rows.to_vec())).unwrap();
        let gcs = collections(&recording);
        let expected = alive(&gcs);
        assert_eq!(by_gc.len(), gcs.len(), "{name}");
        let mut exact = 0;
        for (rows, (id, expected)) in by_gc.iter().zip(&expected) {
            assert!(rows.iter().all(|row| row.gc_id == *id && row.born_gc_id <= gcs.len() as u32), "{name}: {id}");
            let mut found: BTreeMap<u64, u64> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.alive_bytes > 0) {
                *found.entry(row.generation.map_or(9, u64::from)).or_default() += row.alive_bytes;
            }
            // Where something was lost, what is listed is still there.
            if rows.iter().all(|row| row.unknown_bytes == 0) {
                found.remove(&9);
                assert_eq!(&found, expected, "{name}: collection {id}");
                exact += 1;
            }
        }
        println!("{name}: {exact} of {} collections", gcs.len());
        whole += exact;

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
    assert!(whole > 50, "{whole}");
}

/// An object of 5 GiB of which the first collection after its birth lists 4 GiB, because the callback has 32 bits for a length, and the
/// next one all. Nothing was allocated between both: what the second lists of it more is no new cohort, but of unknown age.
#[test]
fn what_a_clamped_length_hides_is_not_new() {
    let Some(folder) = shared_folder("what_a_clamped_length_hides_is_not_new", "fourth/right") else { return };
    let (code, out, err) = program(&["--format", "csv", folder.join("clamp_cohort.corprof").to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let expected = [
        "born_gc_id,gc_id,generation,alive_bytes,unknown_bytes",
        "1,1,0,96,0",
        "1,2,0,96,0",
        "2,2,3,4296015872,0",
        "0,3,3,1073741848,0",
        "1,3,0,96,0",
        "2,3,3,4294967296,0",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_command_prints_text_json_and_csv() {
    let path = sample("gc-churn.nettrace");
    let path = path.to_str().unwrap();
    let (code, csv, error) = program(&[path, "--format", "csv"]);
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
    assert!(
        code == 0 && text.contains("gc 2          6.27 MB  6.26 MB") && text.contains("in all          100 %"),
        "{text}"
    );

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
        let summary = convert(&request.clone().cohorts(memory).overwrite(true), &mut |_| {}).unwrap();
        let codes: Vec<_> = summary.inputs[0].problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes.contains(&"cohorts_too_large"), !is_whole, "{codes:?}");
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
