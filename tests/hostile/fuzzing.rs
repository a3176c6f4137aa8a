//! The fuzz targets without a fuzzer: inputs that found something once, and a stated number of mutations of recordings.
//!
//! `fuzz/found/<target>` keeps, as small as they could be made, inputs that found a bug. Mutations come from a
//! generator with a fixed seed, so that a failure repeats; `TRACEQUET_FUZZ_SEED` takes another one,
//! `TRACEQUET_FUZZ_TIMES=10` ten times as many. An input that fails is written into the folder of temporary files of
//! the build, and its name is printed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::mutate::{Mutator, seal_corprof};

#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/corprof.rs"]
mod corprof;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/dataset.rs"]
pub mod dataset;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/etl.rs"]
mod etl;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/gcdump.rs"]
mod gcdump;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/manifest.rs"]
mod manifest;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/nettrace.rs"]
mod nettrace;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/normalize.rs"]
mod normalize;
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/payload.rs"]
mod payload;

#[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
#[path = "../../fuzz/fuzz_targets/symbols.rs"]
mod symbols;

/// What a fuzz target has instead of libfuzzer's macro: a function on bytes.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub fn run($bytes: &[u8]) $body
    };
    (|$text:ident: &str| $body:block) => {
        pub fn run(bytes: &[u8]) {
            let Ok($text) = std::str::from_utf8(bytes) else { return };
            $body
        }
    };
}

/// No input that is made here is longer than this, so a run that takes this long in a debug build has no bound.
const LONGEST: Duration = Duration::from_secs(20);

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Runs a target on an input; an input that fails is kept.
fn check(name: &str, target: &impl Fn(&[u8]), input: &[u8], what: &str) {
    let run = || {
        let began = Instant::now();
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(input)));
        (run, began.elapsed())
    };
    let (mut outcome, mut spent) = run();
    if spent >= LONGEST {
        // The machine may have stood still. What has no bound takes that long again.
        (outcome, spent) = run();
    }
    if outcome.is_ok() && spent < LONGEST {
        return;
    }
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("found-{name}"));
    std::fs::write(&kept, input).expect("room");
    let how = if outcome.is_err() { "panics".to_owned() } else { format!("takes {spent:?}") };
    panic!("{name} {how} on {what}: {}", kept.display());
}

/// The targets that have found something, and how many inputs of each are kept in its folder.
const FOUND: [(&str, usize); 2] = [("dataset", 1), ("normalize", 1)];

fn found_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/found")
}

/// What found something once.
fn found(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let Some((_, count)) = FOUND.iter().find(|(target, _)| *target == name) else { return Vec::new() };
    let files = std::fs::read_dir(found_folder().join(name)).expect("the folder of what was found");
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert_eq!(paths.len(), *count, "inputs of {name} that found something");
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a kept input"))).collect()
}

#[test]
fn what_was_found_is_there_and_each_folder_belongs_to_a_target() {
    let folders = std::fs::read_dir(found_folder()).expect("the folder of what was found");
    let mut names: Vec<String> =
        folders.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    assert_eq!(names, FOUND.map(|(target, _)| target));
    for (target, _) in FOUND {
        assert!(found(target).iter().all(|(_, bytes)| !bytes.is_empty()), "{target}");
    }
}

/// Only so are all of them compiled by every run of the tests, and run by the fuzzer every night.
#[test]
fn each_target_is_run_here_and_by_the_fuzzer() {
    let read = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let (here, manifest, nightly) =
        (read("tests/hostile/fuzzing.rs"), read("fuzz/Cargo.toml"), read(".github/workflows/fuzz.yml"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = files.map(|file| file.strip_suffix(".rs").expect("a target").to_owned()).collect();
    assert_eq!(names.len(), manifest.matches("[[bin]]").count());
    for name in names {
        assert!(
            here.contains(&format!("#[path = \"../../fuzz/fuzz_targets/{name}.rs\"]")),
            "{name} is not run by the tests"
        );
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in the fuzzer's manifest"
        );
        assert!(nightly.contains(&name), "{name} is not fuzzed at night");
    }
}

/// Runs a target on its seeds, on what it found, and on `runs` mutations of both.
fn mutations(name: &str, target: impl Fn(&[u8]), mut seeds: Vec<Vec<u8>>, runs: u64) {
    assert!(!seeds.is_empty());
    for (at, seed) in seeds.iter().enumerate() {
        check(name, &target, seed, &format!("seed {at}"));
    }
    for (path, bytes) in found(name) {
        check(name, &target, &bytes, &path.display().to_string());
        seeds.push(bytes);
    }
    let first = number("TRACEQUET_FUZZ_SEED", 0x5EED);
    let runs = runs * number("TRACEQUET_FUZZ_TIMES", 1);
    let mut mutator = Mutator::new(first);
    for run in 0..runs {
        let mut input = mutator.mutated(&seeds);
        // Checksums would turn most of these away; every fourth one is left as it is.
        if input.starts_with(b".corprof") && run % 4 != 0 {
            seal_corprof(&mut input);
        }
        check(name, &target, &input, &format!("mutation {run} of seed {first}"));
    }
    println!("{name}: {runs} mutations of {} inputs", seeds.len());
}

fn samples(names: &[&str]) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    names.iter().map(|name| std::fs::read(folder.join(name)).expect("a sample")).collect()
}

/// Recordings in every form that the tests can write, and small samples.
fn recordings() -> Vec<Vec<u8>> {
    let mut seeds = samples(&["events.nettrace"]);
    // The front of a recording with collections, ranges and handles: long enough for some of each.
    seeds.extend(samples(&["gc-churn.nettrace", "heap-10.nettrace"]).into_iter().map(|mut bytes| {
        bytes.truncate(40_000);
        bytes
    }));
    seeds.extend(crate::hostile::damage::stories());
    seeds
}

#[test]
fn mutations_of_recordings_do_the_reader_no_harm() {
    mutations("nettrace", nettrace::run, recordings(), 8000);
}

#[test]
fn mutations_of_recordings_do_the_normaliser_no_harm() {
    mutations("normalize", normalize::run, recordings(), 6000);
}

#[test]
fn mutations_of_event_logs_do_no_harm() {
    mutations("etl", etl::run, crate::etl::seeds(), 8000);
}

#[test]
fn mutations_of_manifests_do_no_harm() {
    mutations("manifest", manifest::run, vec![crate::etl::MANIFEST.as_bytes().to_vec()], 4000);
}

#[test]
fn mutations_of_callbacks_do_no_harm() {
    mutations("corprof", corprof::run, vec![crate::callback::damage::sample()], 10_000);
    let target = |bytes: &[u8]| drop(crate::support::callbacks::facts(bytes));
    mutations("corprof", target, vec![crate::callback::damage::sample()], 10_000);
}

#[test]
fn mutations_of_heap_dumps_do_no_harm() {
    mutations("gcdump", gcdump::run, crate::reader::gcdump::seeds(), 10_000);
}

/// Symbols of a sample, alone and embedded in an assembly.
pub fn symbols_of_samples() -> Vec<Vec<u8>> {
    #[allow(unused_mut, reason = "an assembly needs tables")]
    let mut seeds = samples(&["Churn.pdb", "native/probe.pdb"]);
    seeds.push(crate::tables::lines::assembly(&seeds[0], &crate::tables::lines::id_of(&seeds[0])));
    seeds
}

#[test]
fn mutations_of_symbols_do_no_harm() {
    mutations("symbols", symbols::run, symbols_of_samples(), 4000);
}

/// The files of datasets, each behind the number by which the target knows it.
pub fn files_of_datasets() -> Vec<Vec<u8>> {
    let places = dataset::places();
    assert!((100..=256).contains(&places.len()), "{}", places.len());
    places.iter().zip(0..=255u8).map(|(place, index)| [&[index], place.content.as_slice()].concat()).collect()
}

#[test]
fn mutations_of_datasets_do_no_harm() {
    mutations("dataset", dataset::run, files_of_datasets(), 100);
}

#[test]
fn mutations_of_payloads_do_no_harm() {
    // The first bytes choose the layout: every one has its turn.
    let seeds = (0..64u8).map(|n| (0..100u8).map(|at| at.wrapping_mul(n)).collect()).collect();
    mutations("payload", payload::run, seeds, 30_000);
}

/// From the bytes to the files: whatever the recording is, there is a dataset or a reason.
#[test]
fn mutations_of_recordings_are_converted_or_refused() {
    use tracequet::{Convert, convert};
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("mutated"), folder.path().join("out"));
    let target = |bytes: &[u8]| {
        std::fs::write(&input, bytes).expect("room");
        std::fs::remove_dir_all(&output).ok();
        let request = Convert::new([input.clone()], output.clone());
        let made = convert(&request, &mut |_| {});
        assert_eq!(made.is_ok(), output.join("manifest.json").is_file());
        let error = made.map(drop).map_err(|e| e.to_string()).err().unwrap_or("mutated".into());
        assert!(error.contains("mutated"), "an error names the file: {error}");
    };
    let seeds = [recordings(), crate::etl::seeds(), vec![crate::callback::damage::sample()]].concat();
    mutations("convert", target, seeds, 600);
}

#[test]
fn what_fails_is_found_and_kept() {
    let target = |bytes: &[u8]| assert!(!bytes.starts_with(b"Nettrace") || bytes.len() != 4000);
    let seeds = vec![b"Nettrace".repeat(500)];
    let failed = std::panic::catch_unwind(|| mutations("self-test", target, seeds, 100));
    let said = failed.expect_err("a panic");
    let said = said.downcast_ref::<String>().expect("a message");
    let (_, path) = said.rsplit_once(": ").expect("a path");
    assert!(
        said.starts_with("self-test panics on seed 0") && std::fs::read(path).expect("a file").len() == 4000,
        "{said}"
    );
}
