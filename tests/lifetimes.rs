//! `convert --lifetimes` and `tracequet lifetimes`: against a program that writes down when its objects die
//! (`samples/src/Lifetimes.cs`), and against `survived --follow` of the same objects. Simulated heaps are in
//! crates/analyze/src/lifetime.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tracequet::Convert;
use tracequet::analyze::lifetime::{Fate, found_lifetimes};
use tracequet::analyze::survived::{self, Fate as Step, survived};
use tracequet::dataset::read::{Dataset as Read, Recording};

use crate::metrics::four_deviations;
use crate::support::dataset::{Dataset, rows};
use crate::support::expected::shared_traces;
use crate::support::files::sample;

fn with_lifetimes(path: &Path) -> Dataset {
    Dataset::with(Convert::default().inputs([path.to_owned()]).lifetimes(1 << 30))
}

/// Each row by the type of its object.
type Row = [String; 12];
const COLUMNS: [&str; 12] = [
    "type_id",
    "fate",
    "first_gc_id",
    "end_gc_id",
    "survived_collections",
    "generation_at_end",
    "allocation_bytes",
    "unknown_reason",
    "source",
    "ts_ns",
    "last_alive_ts_ns",
    "dead_ts_ns",
];

fn by_type(recording: &Recording<'_>) -> BTreeMap<String, Vec<Row>> {
    let types: HashMap<String, String> =
        rows(recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows(recording, "allocation_lifetime", COLUMNS) {
        found.entry(types.get(&row[0]).cloned().unwrap_or_default()).or_default().push(row);
    }
    found
}

/// Every row of every type that a program wrote down says what the program says.
fn is_as_the_program_says(recording: &Path, truth: &Path) {
    let dataset = with_lifetimes(recording);
    let read = Read::open(dataset.path()).unwrap();
    let recording = read.recording(None).unwrap();
    let gcs: HashMap<String, (u64, u64, String, String)> =
        rows(&recording, "gc", ["gc_id", "gc_number", "start_ts_ns", "end_ts_ns", "kind", "generation"])
            .into_iter()
            .map(|[id, number, start, end, kind, generation]| {
                let by = if kind == "blocking" || generation != "2" { start.clone() } else { end };
                // Callbacks have no numbers; from the start of the process they are the same.
                let number = if number == "0" { id.clone() } else { number };
                (id, (number.parse().unwrap(), start.parse().unwrap(), by, kind))
            })
            .collect();
    let types = by_type(&recording);
    let truth = std::fs::read_to_string(truth).unwrap();
    // A collection may demote objects behind pinned ones, and the program looks at one object of each type.
    let mechanisms = rows(&recording, "gc", ["mechanisms_text"]);
    let is_told = mechanisms.iter().any(|[text]| text != "0");
    let demotes = !is_told || mechanisms.iter().skip(1).any(|[text]| text.contains("Demotion"));
    let (mut seen, mut demoted) = (0, 0);
    for line in truth.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ["life", name, fate, first_end, last_end, generation, survived, first, bytes] = words[..] else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse::<u64>().unwrap();
        // Samples of .NET 10 have the name without what it is nested in.
        let short = name.rsplit('+').next().unwrap();
        let rows = types.get(name).or(types.get(short)).unwrap_or_else(|| panic!("no sample of {name}"));
        let mut sum = 0;
        for row in rows {
            let [_, of_row, first_id, end_id, survivals, at_end, weight, reason, _, ts, last_alive, dead] = row;
            let what = || format!("{name}: {row:?}, expected {line}");
            assert_eq!(of_row, fate, "{}", what());
            sum += number(weight);
            if demotes && (survivals != survived || at_end != generation) && fate != "unknown" {
                demoted += 1;
                continue;
            }
            assert_eq!(survivals, survived, "{}", what());
            match fate {
                "unknown" => assert_eq!((reason.as_str(), first_id.as_str()), ("not_collected", "0"), "{}", what()),
                _ => {
                    assert_eq!((at_end.as_str(), gcs[first_id].0), (generation, number(first)), "{}", what());
                    assert!(gcs[first_id].1 >= number(ts), "{}", what());
                }
            }
            if fate == "dead" {
                let (end, _, by, kind) = &gcs[end_id];
                assert!((number(first_end)..=number(last_end)).contains(end), "{}", what());
                assert!(kind != "background" || name.contains("DiesInBackground"), "{}", what());
                assert_eq!(dead, by, "{}", what());
                assert!(number(last_alive) < number(dead), "{}", what());
            } else {
                assert_eq!(end_id, "0", "{}", what());
            }
        }
        let size = if name.ends_with("[]") { 128_024.0 } else { 1_048.0 };
        let bytes = bytes.parse::<f64>().unwrap();
        let allowed = match rows[0][8].as_str() {
            "object" => 0.5,
            // One of about every 100 KB, whosever they are.
            "tick" => 0.1 * bytes + 300_000.0,
            _ => four_deviations(bytes / size, size),
        };
        assert!((sum as f64 - bytes).abs() < allowed, "{name}: {sum} bytes, {bytes} allocated, {allowed} allowed");
        seen += rows.len();
    }
    assert!(truth.lines().count() >= 9 && seen > 500 && demoted * 5 < seen, "{seen} {demoted}");
}

#[test]
fn each_object_lives_as_long_as_the_program_says() {
    is_as_the_program_says(&sample("lifetimes.nettrace"), &sample("lifetimes.truth.txt"));
}

#[cfg(target_os = "linux")]
#[test]
fn callbacks_and_events_of_one_process_say_what_it_says() {
    let name = "callbacks_and_events_of_one_process_say_what_it_says";
    for runtime in crate::support::dual::each_runtime(name) {
        let config =
            [("EventPipeConfig", "Microsoft-Windows-DotNETRuntime:0x80000480039:5"), ("GCgen0size", "10000000")];
        for more in [("gcConcurrent", "1"), ("gcConcurrent", "0"), ("gcServer", "1")] {
            let settings = [config[0], config[1], more, ("GCHeapCount", "2")];
            let environment = [("TRACEQUET_ALLOCATIONS", "1")];
            let dual = runtime.start(&settings, &environment, &["lifetimes", "{folder}/truth.txt"]).ended();
            let truth = dual.folder.path().join("truth.txt");
            assert!(truth.is_file(), "{} {more:?}: the program failed", runtime.name);
            println!("{} {more:?}", runtime.name);
            is_as_the_program_says(&dual.events_path(), &truth);
            is_as_the_program_says(&dual.recording(), &truth);
        }
    }
}

/// What `survived --follow` says of an object from its first collection on.
fn followed(recording: &Recording<'_>, from: u32, address: u64) -> (&'static str, u32, u32, u64) {
    let steps = survived(recording, from, address, true).unwrap();
    let counts = |step: &&survived::Step| {
        let is_left = step.kind.as_deref() == Some("background") && step.generation_before.is_some_and(|g| g < 2);
        matches!(step.fate, Step::Alive | Step::Moved) && !is_left
    };
    let count = steps.iter().filter(counts).count() as u32;
    let last = steps.last().unwrap();
    match last.fate {
        Step::Dead => ("dead", last.gc_id, count, last.address),
        Step::Unknown(_) => ("unknown", last.gc_id, count, last.address),
        _ if count > 0 || last.generation_before == Some(5) => ("alive", 0, count, last.address_after.unwrap()),
        _ => ("unknown", 0, 0, last.address_after.unwrap()),
    }
}

#[test]
fn each_fate_is_the_one_that_survived_finds() {
    let samples = ["gc-churn.nettrace", "gc-churn-3.1.nettrace", "server-gc.nettrace", "lifetimes.nettrace"];
    let mut all: Vec<std::path::PathBuf> = samples.iter().map(|name| sample(name)).collect();
    let traces = shared_traces("each_fate_is_the_one_that_survived_finds");
    for name in [
        "gc-server-survival.nettrace.zst",
        "gc-survival-compact.nettrace.zst",
        "net10/net10-gc-ranges.nettrace.zst",
        "net10/net10-all.nettrace.zst",
        "net10/net8-churn.nettrace.zst",
    ] {
        all.extend(traces.iter().map(|folder| folder.join(name)));
    }
    let (mut compared, mut fates) = (0, BTreeMap::<String, u32>::new());
    for path in all {
        let dataset = with_lifetimes(&path);
        let read = Read::open(dataset.path()).unwrap();
        let recording = read.recording(None).unwrap();
        let starts: Vec<(u32, u64, i64)> = rows(&recording, "gc", ["gc_id", "process_id", "start_ts_ns"])
            .iter()
            .map(|[id, process, start]| {
                (id.parse().unwrap(), process.parse().unwrap(), start.parse::<u64>().unwrap() as i64)
            })
            .collect();
        let found = rows(
            &recording,
            "allocation_lifetime",
            [
                "ts_ns",
                "process_id",
                "object_id",
                "fate",
                "end_gc_id",
                "survived_collections",
                "end_object_id",
                "unknown_reason",
            ],
        );
        let step = (found.len() / 150).max(1);
        for [ts, process, object, fate, end, survived, end_object, reason] in found.iter().step_by(step) {
            let (ts, process): (i64, u64) = (ts.parse::<u64>().unwrap() as i64, process.parse().unwrap());
            let first = starts.iter().find(|(_, of, start)| *of == process && *start >= ts);
            // What is not compared with collections has a reason of its own.
            if matches!(reason.as_str(), "collection_missing" | "address_given_again" | "during_collection") {
                *fates.entry(format!("{reason} in {}", path.display())).or_default() += 1;
                continue;
            }
            let Some((first, ..)) = first else {
                assert_eq!((fate.as_str(), reason.as_str()), ("unknown", "not_collected"));
                continue;
            };
            let expected = followed(&recording, *first, object.parse().unwrap());
            let is =
                (fate.as_str(), end.parse().unwrap(), survived.parse().unwrap(), end_object.parse::<u64>().unwrap());
            assert_eq!(is, expected, "{}: allocated at {ts}, {object}, {reason}", path.display());
            *fates.entry(fate.clone()).or_default() += 1;
            compared += 1;
        }
    }
    eprintln!("{compared} compared: {fates:?}");
    assert!(compared > 300 && fates["dead"] > 100 && fates["alive"] > 50, "{fates:?}");
}

#[test]
fn the_table_has_what_is_found_in_the_others() {
    let dataset = with_lifetimes(&sample("lifetimes.nettrace"));
    let read = Read::open(dataset.path()).unwrap();
    let recording = read.recording(None).unwrap();
    let mut expected = Vec::new();
    found_lifetimes(&recording, |lifetime| {
        let (sample, life) = (lifetime.sample, lifetime.life);
        let reason = match life.fate {
            Fate::Unknown(doubt) => doubt.word(),
            _ => "",
        };
        let number = |value: Option<u64>| value.unwrap_or_default().to_string();
        expected.push([
            sample.type_id.to_string(),
            life.fate.word().to_owned(),
            life.first_gc_id.to_string(),
            life.end_gc_id.to_string(),
            life.survived_collections.to_string(),
            number(life.generation_at_end.map(u64::from)),
            number(lifetime.bytes()),
            reason.to_owned(),
            sample.source.to_owned(),
            sample.ts_ns.to_string(),
            life.last_alive_ns.to_string(),
            number(life.dead_ns.map(i64::cast_unsigned)),
        ]);
        Ok(())
    })
    .unwrap();
    let mut found = rows(&recording, "allocation_lifetime", COLUMNS);
    for row in &mut found {
        if row[7] == "0" {
            row[7].clear();
        }
    }
    found.sort();
    expected.sort();
    assert!(found == expected && found.len() > 500, "{} {}", found.len(), expected.len());
}

#[test]
fn too_little_memory_is_said() {
    let path = sample("lifetimes.nettrace");
    for (memory, code) in [(330_000, "lifetimes_thinned"), (2_000, "lifetimes_too_large")] {
        let dataset = Dataset::with(Convert::default().inputs([path.clone()]).lifetimes(memory));
        let codes: Vec<_> = dataset.problems().into_iter().map(|(code, _)| code).collect();
        assert!(codes.contains(&code), "{memory}: {codes:?}");
        let table = dataset.table("allocation_lifetime");
        if code == "lifetimes_too_large" {
            assert_eq!(table.rows(), 0);
            continue;
        }
        let weights = table.numbers("sample_weight");
        assert!(
            (200..=644).contains(&table.rows())
                && weights[0] == 2
                && weights.iter().all(|weight| *weight == weights[0])
        );
        // Thinned rows stand for all.
        let whole: u64 = with_lifetimes(&path).table("allocation_lifetime").numbers("allocation_bytes").iter().sum();
        let sum: u64 = table.numbers("allocation_bytes").iter().sum();
        assert!((sum as f64 / whole as f64 - 1.0).abs() < 0.25, "{sum} of {whole}");
    }
}

fn program(arguments: &[&str]) -> (i32, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracequet")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_says_which_method_allocates_what_dies_where() {
    let path = sample("lifetimes.nettrace");
    let path = path.to_str().unwrap();
    let (code, json, error) = program(&["lifetimes", path, "--json"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let found: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let of = |name: &str| found.iter().find(|row| row["type_name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for (name, method) in [("Dies2", "MakeDies2"), ("Stays", "MakeStays"), ("DiesInBackground", "MakeDiesInBackground")]
    {
        let row = of(name);
        assert!(row["method"].as_str().unwrap().contains(&format!("Lifetimes.{method}(")), "{row}");
        assert_eq!(row["assembly"], "Churn");
    }
    let bytes = |name: &str, column: &str| of(name)[column].as_u64().unwrap();
    for name in ["Dies2", "DiesInBackground", "LargeDiesItem[]"] {
        assert_eq!(bytes(name, "died_old_bytes"), bytes(name, "allocated_bytes"), "{name}");
        assert_eq!(bytes(name, "alive_bytes"), 0, "{name}");
    }
    assert_eq!(bytes("Stays", "alive_bytes"), bytes("Stays", "promoted_bytes"));
    assert_eq!((bytes("Dies0", "survived_first_bytes"), bytes("Dies0", "died_old_bytes")), (0, 0));
    assert_eq!(of("Dies2")["life_collections_median"], 3);
    let (_, text, _) = program(&["lifetimes", path, "--type", "DIES", "--by", "type"]);
    assert!(text.contains("Dies1") && !text.contains("Stays") && !text.contains("method"), "{text}");
    let (code, _, error) = program(&["lifetimes", sample("known.nettrace").to_str().unwrap()]);
    assert!(code == 1 && error.contains("lists survivors"), "{error}");
    let (code, _, error) = program(&["lifetimes", sample("measures.nettrace").to_str().unwrap()]);
    assert!(code == 1 && error.contains("collect --for lifetimes"), "{error}");
}

#[test]
fn exports_have_the_allocations_of_objects_that_lived_so() {
    let path = sample("lifetimes.nettrace");
    let (_, json, _) = program(&["lifetimes", path.to_str().unwrap(), "--json"]);
    let found: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    for (what, column) in
        [("gen2-deaths", "died_old_bytes"), ("survivors", "survived_first_bytes"), ("live", "alive_bytes")]
    {
        let (code, folded, _) = program(&["export", path.to_str().unwrap(), "--what", what, "--format", "folded"]);
        assert_eq!(code, 0);
        let of = |method: &str| -> u64 {
            let lines = folded.lines().filter(|line| line.contains(&format!("{method}(")));
            lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
        };
        for name in ["Dies0", "Dies1", "Dies2", "Stays", "DiesInBackground"] {
            let row = found.iter().find(|row| row["type_name"] == name).unwrap();
            assert_eq!(of(&format!("Lifetimes.Make{name}")), row[column].as_u64().unwrap(), "{what} of {name}");
        }
    }
}
