//! Tests that are skipped say so here. The last program that `cargo test --workspace` runs, `tests/summary.rs`, prints
//! them.
//!
//! All programs of one `cargo test` have the same parent. So each run has a file of its own, named by the id of that
//! process, with a line for each skipped test.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

/// Names the run for processes that a test starts to run itself again: their parent is not cargo.
const RUN: &str = "TRACEQUET_TEST_RUN";

/// Says on standard error that a test is skipped and why, and notes it for the summary with what it takes to run it.
/// Under `CI=true` it is an error: there everything that the tests need has to be installed.
#[allow(clippy::panic, reason = "a test that has to run fails")]
pub fn skip(test: &str, why: &str, how: &str) {
    if in_ci() {
        panic!("{test} cannot be skipped under CI=true: {why}; {how}");
    }
    note(test, why, how);
}

/// As [`skip`], but also under `CI=true`: for what no machine of CI can have.
pub fn note(test: &str, why: &str, how: &str) {
    // Past the capture of the test harness: a skipped test should be seen.
    std::io::stderr().write_all(format!("SKIPPED {test}: {why}; {how}\n").as_bytes()).ok();
    let Some(file) = file() else { return };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).ok();
    }
    if let Ok(mut file) = std::fs::File::options().create(true).append(true).open(file) {
        file.write_all(format!("{how}\t{test}\n").as_bytes()).ok();
    }
}

/// Whether `CI=true` says that nothing may be skipped.
#[must_use]
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci == "true")
}

/// A variable of the environment for a process that runs a test of this one again: what it skips belongs to this run.
#[must_use]
pub fn of_this_run() -> (&'static str, String) {
    (RUN, run())
}

fn run() -> String {
    #[cfg(unix)]
    let parent = std::os::unix::process::parent_id().to_string();
    // The standard library does not tell it there: runs share a file, which the summary removes.
    #[cfg(not(unix))]
    let parent = "run".to_owned();
    std::env::var(RUN).unwrap_or(parent)
}

/// The notes of this run, beside the folder of the test programs (`target/debug/deps`).
fn file() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join("skipped").join(run()))
}

/// The summary of this run, for people, and removes the notes. Tests that need the same stand together.
#[must_use]
pub fn summary() -> String {
    let notes = file().and_then(|file| {
        let notes = std::fs::read_to_string(&file).ok()?;
        std::fs::remove_file(file).ok();
        Some(notes)
    });
    of_notes(&notes.unwrap_or_default())
}

/// The summary of notes: how to run them, then the first names.
#[must_use]
pub fn of_notes(notes: &str) -> String {
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (how, test) in notes.lines().filter_map(|line| line.split_once('\t')) {
        needs.entry(how).or_default().insert(test);
    }
    let mut needs: Vec<_> = needs.into_iter().collect();
    needs.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let tests: BTreeSet<&str> = needs.iter().flat_map(|(_, tests)| tests).copied().collect();
    if tests.is_empty() {
        return "No test of this run was skipped.\n".to_owned();
    }
    let were = if tests.len() == 1 { "test was" } else { "tests were" };
    let mut text = format!("{} {were} SKIPPED, and cargo counts them as ok:\n", tests.len());
    for (how, tests) in needs {
        let names: Vec<&str> = tests.iter().take(2).copied().collect();
        let more = if tests.len() > names.len() { ", ..." } else { "" };
        text += &format!("{:>5}  {how}\n       ({}{more})\n", tests.len(), names.join(", "));
    }
    text + "CONTRIBUTING.md (Tests) says how to run all.\n"
}
