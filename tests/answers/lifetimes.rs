//! `convert --lifetimes` and `tracequet lifetimes`: against a program that writes down when its objects die
//! (`samples/src/Lifetimes.cs`), and against `survived --follow` of the same objects. Simulated heaps are in
//! crates/analyze/src/lifetime.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tracequet::Convert;
use tracequet::analyze::lifetime::{By, Fate, found_lifetimes, growth, lifetimes_by, live_at};
use tracequet::analyze::survived::{Fate as At, Step, all_followed, survived};
use tracequet::dataset::read::{Dataset as Read, Recording};

use crate::metrics::stats::four_deviations;
use crate::support::dataset::{Dataset, rows};
use crate::support::expected::shared_traces;
use crate::support::files::sample;

fn with_lifetimes(path: &Path) -> Dataset {
    Dataset::with(Convert::default().inputs([path.to_owned()]).lifetimes(1 << 30))
}

/// Each row by the type of its object.
type Row = [String; 12];
const COLUMNS: [&str; 12] = [
    "type_id", "fate", "first_gc_id", "end_gc_id", "survived_collections", "generation_at_end", "allocation_bytes",
    "unknown_reason", "source", "ts_ns", "last_alive_ts_ns", "dead_ts_ns",
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
        let mut kinds = vec![("gcConcurrent", "1"), ("gcConcurrent", "0"), ("gcServer", "1")];
        // Segments instead of regions.
        kinds.extend((!runtime.is_old()).then_some(("GCName", "libclrgc.so")));
        for more in kinds {
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
fn followed(steps: &[Step]) -> (&'static str, u32, u32, u64) {
    let counts = |step: &&Step| {
        let is_left = step.kind.as_deref() == Some("background") && step.generation_before.is_some_and(|g| g < 2);
        matches!(step.fate, At::Alive | At::Moved) && !is_left
    };
    let count = steps.iter().filter(counts).count() as u32;
    let last = steps.last().unwrap();
    match last.fate {
        At::Dead => ("dead", last.gc_id, count, last.address),
        At::Unknown(_) => ("unknown", last.gc_id, count, last.address),
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
                "ts_ns", "process_id", "object_id", "fate", "end_gc_id", "survived_collections", "end_object_id",
                "unknown_reason",
            ],
        );
        let step = (found.len() / 150).max(1);
        let mut asked = Vec::new();
        for row @ [ts, process, object, fate, .., reason] in found.iter().step_by(step) {
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
            asked.push(((*first, object.parse::<u64>().unwrap()), row));
        }
        // One pass over the ranges for all objects: one for each would take minutes.
        let objects: Vec<(u32, u64)> = asked.iter().map(|(object, _)| *object).collect();
        let all = all_followed(&recording, &objects).unwrap();
        for (steps, (object, [ts, _, _, fate, end, survived, end_object, reason])) in all.iter().zip(&asked) {
            let is =
                (fate.as_str(), end.parse().unwrap(), survived.parse().unwrap(), end_object.parse::<u64>().unwrap());
            assert_eq!(is, followed(steps), "{}: allocated at {ts}, {object:?}, {reason}", path.display());
            *fates.entry(fate.clone()).or_default() += 1;
            compared += 1;
        }
        if let (Some((gc, address)), Some(steps)) = (objects.last(), all.last()) {
            let alone = survived(&recording, *gc, *address, true).unwrap();
            assert_eq!(format!("{alone:?}"), format!("{steps:?}"));
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
    let (code, json, error) = program(&["lifetimes", path, "--by", "site", "--json"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let found: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let of = |name: &str| found.iter().find(|row| row["type_name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for (name, method) in [("Dies2", "MakeDies2"), ("Stays", "MakeStays"), ("DiesInBackground", "MakeDiesInBackground")]
    {
        let row = of(name);
        assert!(row["method"].as_str().unwrap().contains(&format!("Lifetimes.{method}(")), "{row}");
        assert_eq!(row["assembly"], "Churn");
        assert_eq!(row["own_method"], format!("Lifetimes.{method}"));
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

/// The whole numbers of a table, and its texts where a column has such.
fn sums_by<const N: usize>(rows: impl Iterator<Item = ([String; N], u64)>) -> BTreeMap<[String; N], u64> {
    let mut sums = BTreeMap::new();
    for (key, bytes) in rows {
        *sums.entry(key).or_default() += bytes;
    }
    sums
}

#[test]
fn own_methods_are_the_nearest_ones_outwards() {
    let mut others = 0;
    for name in ["lifetimes.nettrace", "server-gc.nettrace", "gc-churn.nettrace"] {
        let dataset = with_lifetimes(&sample(name));
        let read = Read::open(dataset.path()).unwrap();
        let recording = read.recording(None).unwrap();
        let sites: HashMap<String, [String; 2]> =
            rows(&recording, "callsite", ["callsite_id", "parent_callsite_id", "frame_id"])
                .into_iter()
                .map(|[id, parent, frame]| (id, [parent, frame]))
                .collect();
        let frames: HashMap<String, [String; 2]> =
            rows(&recording, "frame", ["frame_id", "written_name", "is_framework"])
                .into_iter()
                .map(|[id, name, is_framework]| (id, [name, is_framework]))
                .collect();
        let own = |site: &str| -> String {
            let mut at = site.to_owned();
            let mut steps = 0;
            while let Some([parent, frame]) = sites.get(&at) {
                let [name, is_framework] = &frames[frame];
                // 0 stands for false, and for what is not known.
                if is_framework == "0" && name != "[unknown]" {
                    others += u32::from(steps > 0);
                    return name.clone();
                }
                at = parent.clone();
                steps += 1;
            }
            String::new()
        };
        let types: HashMap<String, String> =
            rows(&recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
        let mut own = own;
        let expected = sums_by(
            rows(&recording, "allocation_lifetime", ["callsite_id", "type_id", "allocation_bytes"]).into_iter().map(
                |[site, kind, bytes]| {
                    ([own(&site), types.get(&kind).cloned().unwrap_or_default()], bytes.parse().unwrap())
                },
            ),
        );
        let found: BTreeMap<[String; 2], u64> = lifetimes_by(&recording, By::Own, |_| true)
            .unwrap()
            .into_iter()
            .map(|row| ([row.group.own_method, row.group.type_name], row.sums.allocated))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
    assert!(others > 0, "methods of others between");
}

#[test]
fn own_code_is_what_patterns_say() {
    let path = sample("lifetimes.nettrace");
    let path = path.to_str().unwrap();
    let own = |arguments: &[&str]| -> Vec<Option<String>> {
        let (code, json, error) = program(&[&["lifetimes", path, "--json"], arguments].concat());
        assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        rows.iter().map(|row| row["own_method"].as_str().map(str::to_owned)).collect()
    };
    assert!(own(&[]).iter().flatten().any(|method| method == "Lifetimes.MakeStays"));
    assert!(own(&["--own", "Nothing*"]).iter().all(Option::is_none));
    let run = own(&["--own", "Lifetimes.Run*"]);
    assert!(
        run.iter().flatten().count() > 5 && run.iter().flatten().all(|method| method.starts_with("Lifetimes.Run")),
        "{run:?}"
    );
    let (_, text, _) = program(&["lifetimes", path, "--own", "Nothing*"]);
    assert!(text.contains("(no code of your own)"), "{text}");
}

/// After each collection, what is alive is what the program says: those that had survived one, and had not died.
#[test]
fn what_is_alive_at_a_time_is_what_the_program_says() {
    let dataset = with_lifetimes(&sample("lifetimes.nettrace"));
    let read = Read::open(dataset.path()).unwrap();
    let recording = read.recording(None).unwrap();
    let whole: HashMap<String, u64> = lifetimes_by(&recording, By::Type, |_| true)
        .unwrap()
        .into_iter()
        .map(|row| (row.group.type_name, row.sums.allocated))
        .collect();
    let truth = std::fs::read_to_string(sample("lifetimes.truth.txt")).unwrap();
    let gcs = rows(&recording, "gc", ["gc_number", "end_ts_ns"]);
    let born = rows(&recording, "allocation_lifetime", ["type_id", "ts_ns"]);
    let types: HashMap<String, String> =
        rows(&recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
    let (mut alive, mut before) = (0, None::<(i64, BTreeMap<String, u64>)>);
    for [number, end] in &gcs {
        let (number, end): (u64, i64) = (number.parse().unwrap(), end.parse().unwrap());
        let found: BTreeMap<String, u64> = live_at(&recording, By::Type, end, |_| true)
            .unwrap()
            .rows
            .into_iter()
            .map(|row| (row.group.type_name, row.alive))
            .collect();
        for line in truth.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let ["life", name, fate, first_end, _, _, survived, first, _] = words[..] else { panic!("{line}") };
            let short = name.rsplit('+').next().unwrap();
            let number_of = |text: &str| text.parse::<u64>().unwrap();
            let is_dead = fate == "dead" && number_of(first_end) <= number;
            let has_survived = number_of(survived) > 0 && number_of(first) <= number;
            // What a collection in the background lets live is known of its start, before it ends.
            let expected = if has_survived && !is_dead { whole[short] } else { 0 };
            assert_eq!(found.get(short).copied().unwrap_or_default(), expected, "{short} after {number}");
            alive += u32::from(expected > 0);
        }
        // Growth from the collection before: what came and went.
        if let Some((from, at_first)) = before.replace((end, found.clone())) {
            let grown = growth(&recording, By::Type, [from, end], |_| true).unwrap();
            for row in &grown.rows {
                let [at_first, now] =
                    [&at_first, &found].map(|sums| sums.get(&row.group.type_name).copied().unwrap_or_default());
                assert_eq!((row.before, row.after), (at_first, now), "{row:?}");
                assert_eq!(row.before - row.gone - row.lost + row.new, row.after, "{row:?}");
            }
            let listed: Vec<&str> = grown.rows.iter().map(|row| row.group.type_name.as_str()).collect();
            assert!(
                at_first
                    .iter()
                    .chain(&found)
                    .filter(|(_, bytes)| **bytes > 0)
                    .all(|(name, _)| listed.contains(&name.as_str()))
            );
        }
    }
    assert!(alive > 20, "{alive}");
    // Before the first collection nothing is known of what is there.
    let first: i64 =
        born.iter().filter(|[kind, _]| types[kind] == "Stays").map(|[_, ts]| ts.parse().unwrap()).max().unwrap();
    let live = live_at(&recording, By::Type, first, |name| name == "Stays").unwrap();
    assert_eq!((live.rows[0].alive, live.rows[0].unknown), (0, whole["Stays"]));
}

#[test]
fn the_view_and_the_command_agree_on_what_is_alive_at_a_time() {
    let Some(python) = crate::support::python::python("the_view_and_the_command_agree_on_what_is_alive_at_a_time")
    else {
        return;
    };
    for name in ["lifetimes.nettrace", "gc-churn.nettrace", "server-gc.nettrace"] {
        let dataset = with_lifetimes(&sample(name));
        let folder = dataset.path();
        let path = folder.to_str().unwrap();
        let mut compared = 0;
        for at in ["0.2", "0.5", "0.7", "0.9", "1.1", "1000"] {
            let (code, json, error) = program(&["lifetimes", path, "--by", "site", "--at", at, "--json"]);
            assert_eq!((code, error.as_str()), (0, ""));
            let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
            let mut expected: Vec<String> = rows
                .iter()
                .map(|row| {
                    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                    let [method, own, kind] = ["method", "own_method", "type_name"].map(text);
                    format!(
                        "{method}|{own}|{kind}|{}|{}|{}",
                        row["sample_count"], row["alive_bytes"], row["unknown_bytes"]
                    )
                })
                .collect();
            let query = format!(
                "SELECT concat_ws('|', coalesce(method, ''), coalesce(own_method, ''), type_name, sample_count, alive_bytes, unknown_bytes) FROM live_at({at})"
            );
            let program = "for row in c.execute(sys.argv[1]).fetchall(): print(row[0])";
            let out = crate::support::python::ask_views(&python, &dataset.path(), program, &query);
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            let mut found: Vec<String> = String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect();
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{name} at {at}");
            compared += found.len();
        }
        assert!(compared > 0 || name != "lifetimes.nettrace");
    }
}

#[test]
fn two_recordings_are_compared_by_method_and_type() {
    let [now, base] = ["lifetimes.nettrace", "gc-churn.nettrace"].map(sample);
    let [now, base] = [&now, &base].map(|path| path.to_str().unwrap());
    let rows = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let (code, json, error) = program(&[arguments, &["--json"]].concat());
        assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
        serde_json::from_str(&json).unwrap()
    };
    let changes = rows(&["lifetimes", now, "--base", base]);
    let sum = |rows: &[serde_json::Value], side: Option<&str>, column: &str| -> u64 {
        rows.iter().map(|row| side.map_or(row, |side| &row[side])[column].as_u64().unwrap()).sum()
    };
    for (input, side) in [(now, "now"), (base, "base")] {
        let alone = rows(&["lifetimes", input]);
        for column in ["allocated_bytes", "died_old_bytes", "alive_bytes", "sample_count"] {
            assert_eq!(sum(&changes, Some(side), column), sum(&alone, None, column), "{side} {column}");
        }
    }
    let same = rows(&["lifetimes", now, "--base", now]);
    assert!(!same.is_empty() && same.iter().all(|row| row["base"] == row["now"]));
    let (_, text, _) = program(&["lifetimes", now, "--base", base]);
    assert!(text.contains("Lifetimes.MakeDies2") && text.contains("died gen2+"), "{text}");
    let (code, _, error) = program(&["lifetimes", now, "--since", "2", "--at", "1"]);
    assert!(code == 1 && error.contains("before --at"), "{code} {error}");
    let (_, text, _) = program(&["lifetimes", now, "--since", "0.2"]);
    assert!(text.contains("growth") && text.contains("Stays"), "{text}");
}

/// A dataset whose heap was dumped at the end: who allocated what stays, and for which activity, is known.
fn samples_lend_their_stacks(name: &str, out: &Path) {
    const OFTEN: &str = "0f7e0000-0000-0000-0000-000000000001";
    const SELDOM: &str = "5e1d0000-0000-0000-0000-000000000002";
    let read = Read::open(out).unwrap();
    let recording = read.recording(None).unwrap();
    let names: HashMap<String, String> =
        rows(&recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
    let is_kept = |kind: &String| names.get(kind).is_some_and(|of| of.ends_with("Kept"));
    // Every sample of an object that is alive lies in the dump as an object of that type. The types are compared by
    // name: before .NET 5 an array has one id in allocations and another in heap dumps.
    let objects: HashMap<String, String> =
        rows(&recording, "heap_object", ["object_id", "type_id"]).into_iter().map(|[id, kind]| (id, kind)).collect();
    let lives =
        rows(&recording, "allocation_lifetime", ["fate", "end_object_id", "type_id", "activity_id", "callsite_id"]);
    let own: HashMap<String, String> = {
        let frames: HashMap<String, String> =
            rows(&recording, "frame", ["frame_id", "written_name"]).into_iter().map(|[id, name]| (id, name)).collect();
        rows(&recording, "callsite", ["callsite_id", "frame_id"])
            .into_iter()
            .map(|[id, frame]| (id, frames[&frame].clone()))
            .collect()
    };
    let mut seen = BTreeMap::<String, u32>::new();
    for [fate, object, kind, activity, site] in &lives {
        if fate == "alive" {
            let [found, sampled] = [objects.get(object), Some(kind)].map(|kind| kind.and_then(|kind| names.get(kind)));
            assert!(found.is_some() && found == sampled, "{name}: {object} is alive: {found:?} and {sampled:?}");
        }
        if !is_kept(kind) {
            continue;
        }
        let by = own.get(site).map(String::as_str).unwrap_or_default();
        let expected = match activity.as_str() {
            OFTEN => ("Keeps.Often", "alive"),
            SELDOM => ("Keeps.Seldom", "alive"),
            _ => ("Keeps.Dropped", "dead"),
        };
        // What was allocated in the last round is dropped, but the last of it is not.
        if fate == "dead" || fate == "alive" {
            assert!(by.starts_with(expected.0), "{name}: {activity} by {by}");
            *seen.entry(format!("{} {fate}", expected.0)).or_default() += 1;
        }
    }
    let count = |what: &str| seen.get(what).copied().unwrap_or_default();
    assert!(count("Keeps.Often alive") > 50 && count("Keeps.Seldom alive") > 10, "{name}: {seen:?}");
    assert!(count("Keeps.Dropped dead") > 50 && count("Keeps.Dropped alive") <= 1, "{name}: {seen:?}");
    assert_eq!(count("Keeps.Often dead") + count("Keeps.Seldom dead"), 0, "{name}: {seen:?}");
    // The command: shares whose intervals have the truth in them.
    let kept = names.values().find(|of| of.ends_with("Kept")).unwrap();
    let out = out.to_str().unwrap();
    let (code, json, error) = program(&["heap", out, "--type", kept, "--json"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let heap: serde_json::Value = serde_json::from_str(&json).unwrap();
    let found = heap["allocated_by"].as_array().unwrap();
    for (method, truth) in [("Keeps.Often", 0.75), ("Keeps.Seldom", 0.25)] {
        let row = found.iter().find(|row| row["own_method"] == method).unwrap_or_else(|| panic!("{found:?}"));
        let [low, high] = ["share_low", "share_high"].map(|end| row[end].as_f64().unwrap());
        // Twice as wide as the interval: one of 400 recordings lies outside by chance.
        let half = (high - low) / 2.0;
        assert!((low - half..=high + half).contains(&truth), "{name}: {row}");
    }
    let (_, text, _) = program(&["heap", out, "--type", kept]);
    assert!(text.replace('\n', " ").contains("with 95 % confidence") && text.contains("Keeps.Often"), "{text}");
}

#[test]
fn samples_lend_a_heap_dump_their_stacks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/keeps.nettrace.zst");
    samples_lend_their_stacks("the sample", &with_lifetimes(&path).path());
}

#[cfg(target_os = "linux")]
#[test]
fn a_heap_is_dumped_at_the_end_of_a_recording() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use crate::support::live::{Folder, Program, command, each_runtime, ended, run, text, tracequet, wait_for_bytes};
    for runtime in each_runtime("a_heap_is_dumped_at_the_end_of_a_recording") {
        let mut program = command(runtime, &["keeps", "60", "20"]);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start_piped(program, runtime);
        let folder = Folder::new();
        let (pid, out, keep) = (program.id().to_string(), folder.text("out"), folder.text("kept.nettrace"));
        let how = ["--for", "lifetimes", "--heap-at-end", "--lifetimes", "--keep", &keep, "-o", &out];
        let collect = tracequet(&[&["collect", "-p", &pid], &how[..]].concat()).spawn().expect("it starts");
        wait_for_bytes(&folder.path("kept.nettrace"), 1, &runtime.name);
        program.child.stdin.take().unwrap().write_all(b"begin\n").unwrap();
        let mut said = String::new();
        BufReader::new(program.child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said.trim_end(), "kept", "{}", runtime.name);
        let interrupted = Command::new("kill").args(["-INT", &collect.id().to_string()]).status();
        assert!(interrupted.is_ok_and(|status| status.success()));
        let output = ended(collect, "collect --heap-at-end");
        let said = text(&output);
        assert!(output.status.success() && said.contains("while its heap was dumped"), "{}: {said}", runtime.name);
        samples_lend_their_stacks(&runtime.name, &folder.path("out"));
        // The time ends a recording in the same way.
        let again = folder.text("again");
        let how = ["--for", "lifetimes", "--heap-at-end", "--duration", "1", "-o", &again];
        let said = text(&run(&[&["collect", "-p", &pid], &how[..]].concat()));
        assert!(said.contains("while its heap was dumped"), "{}: {said}", runtime.name);
    }
}

/// Each sample that belongs to a request has one life.
#[test]
fn routes_have_the_lives_of_what_their_requests_allocate() {
    let Some(python) = crate::support::python::python("routes_have_the_lives_of_what_their_requests_allocate") else {
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/requests/orders.nettrace.zst");
    let dataset = with_lifetimes(&path);
    let asked = |query: &str| crate::tables::queries::asked(&python, &dataset, query);
    let by = "FROM lifetimes_by_route GROUP BY ALL ORDER BY ALL";
    let found = asked(&format!("SELECT source, http_method, route, sum(allocation_bytes)::BIGINT {by}"));
    let expected = asked(
        "SELECT source, http_method, route, allocation_bytes FROM requests_by_route WHERE allocation_bytes > 0 ORDER BY ALL",
    );
    assert!(found == expected && found.lines().count() > 10, "{found}\n{expected}");
    // What is dead, alive or unknown is all of it, and so it is sample by sample.
    let split = "SELECT count(*) FROM lifetimes_by_route WHERE alive_bytes + unknown_bytes > allocation_bytes \
                 OR survived_first_bytes > tested_bytes OR tested_bytes + unknown_bytes < allocation_bytes";
    assert_eq!(asked(split), "(0,)\n");
    let samples = asked(
        "SELECT (SELECT sum(sample_count) FROM lifetimes_by_route WHERE source LIKE '%Hosting/Request') = \
         (SELECT count(*) FROM request_part WHERE kind = 'allocation' AND source LIKE '%Hosting/Request')",
    );
    assert_eq!(samples, "(True,)\n");
}
