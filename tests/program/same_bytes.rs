//! One recording gives the same files and the same answers each time: nothing depends on the order of a hash map, which is another one in
//! each process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::expected::shared_folder;

/// The files below a folder, with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inside, bytes)| (format!("{name}/{inside}"), bytes)));
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

fn converted(recording: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ["convert", "-q", "--cohorts", "--lifetimes", recording, "-o"];
    let done = Command::new(env!("CARGO_BIN_EXE_tracequet")).args(options).arg(&out).output().unwrap();
    assert!(done.status.code().is_some_and(|code| code != 1), "{}", String::from_utf8_lossy(&done.stderr));
    files(&out)
}

fn is_the_same(recording: &str, times: usize) {
    let first = converted(recording);
    assert!(first.len() > 20, "{recording}: {} files", first.len());
    for _ in 1..times {
        for (name, bytes) in converted(recording) {
            assert!(first.get(&name) == Some(&bytes), "{recording}: {name} has other bytes");
        }
    }
}

/// The last bit of a sum of fractions over methods differed in two of ten runs.
#[test]
fn the_sum_of_many_methods_is_the_same_each_time() {
    const TEST: &str = "the_sum_of_many_methods_is_the_same_each_time";
    let Some(folder) = shared_folder(TEST, "fourth/attack") else { return };
    is_the_same(folder.join("nondet-finding.nettrace.gz").to_str().unwrap(), 20);
}

#[test]
fn tables_are_the_same_each_time() {
    for name in ["gc-churn.nettrace", "callbacks.corprof", "kernel.etl", "bugs/queries.nettrace.zst"] {
        is_the_same(&format!("samples/{name}"), 4);
    }
}

#[test]
fn answers_are_the_same_each_time() {
    let [queries, clean] = ["queries", "queries-clean"].map(|name| format!("samples/bugs/{name}.nettrace.zst"));
    let (queries, clean) = (queries.as_str(), clean.as_str());
    let questions: [&[&str]; 12] = [
        &["explain", "--all", "--format", "json", queries],
        &["stats", "--json", queries],
        &["diff", "--json", "--by", "type", clean, queries],
        &["report", queries],
        &["report", clean, queries],
        &["report", "samples/gc-churn.nettrace"],
        &["heap", "--json", "samples/heap-10.nettrace"],
        &["lifetimes", "--json", "samples/bugs/leak.nettrace.zst"],
        &["cohorts", "--json", "samples/gc-churn.nettrace"],
        &["export", "--format", "folded", "--by-thread", "--what", "allocation", queries],
        &["export", "--format", "pprof", queries],
        &["export", "--format", "perfetto", queries],
    ];
    for question in questions {
        let answer = || Command::new(env!("CARGO_BIN_EXE_tracequet")).args(question).output().unwrap();
        let first = answer();
        assert!(
            first.status.success() && !first.stdout.is_empty(),
            "{question:?} {}",
            String::from_utf8_lossy(&first.stderr)
        );
        for _ in 0..3 {
            assert!(answer().stdout == first.stdout, "{question:?} has another answer");
        }
    }
}
