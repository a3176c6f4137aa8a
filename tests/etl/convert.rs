//! Conversion of .etl files: every real file becomes tables, and processes are distinguished.

use tracequet::{Convert, convert};

use super::expected::{shared, shared_file};
use super::writer::*;
use crate::support::dataset::Dataset;

#[test]
fn every_real_file_becomes_tables() {
    for file in shared("every_real_file_becomes_tables") {
        let dataset = Dataset::of(&file.path);
        let expected = file.expected["events"].as_u64().expect("a number");
        assert_eq!(dataset.summary.inputs[0].events, expected, "{}", file.name);
        let types = dataset.table("event_type");
        assert_eq!(types.numbers("event_count").iter().sum::<u64>(), expected, "{}", file.name);
        let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
        for (table, count) in types.texts("table_name").into_iter().zip(types.numbers("event_count")) {
            *counts.entry(table).or_default() += count;
        }
        let tables = dataset.summary.tables.iter().filter(|t| t.name.starts_with("event/"));
        // Stacks that were events of their own stand at their events.
        let is_stack = |name: &str| name.contains("/Windows-Kernel-StackWalk/") || name.ends_with("/CLRStackWalk");
        for table in tables.filter(|t| !is_stack(&t.name)) {
            let count = counts.get(&table.name).copied();
            assert_eq!(count, Some(table.rows), "{}: every event is a row of {}", file.name, table.name);
        }
        assert_eq!(dataset.table("trace").rows(), 1);
    }
}

#[test]
fn collections_of_several_processes_do_not_mix() {
    let Some(file) = shared_file("collections", "net.4.5.2.x64.etl") else { return };
    let dataset = Dataset::of(&file.path);
    let gc = dataset.table("gc");
    let numbers: Vec<_> = gc.numbers("process_id").into_iter().zip(gc.numbers("gc_number")).collect();
    let of = |process| numbers.iter().filter(|(p, _)| *p == process).map(|(_, n)| *n).collect::<Vec<_>>();
    let processes: std::collections::BTreeSet<u64> = numbers.iter().map(|(p, _)| *p).collect();
    assert!(processes.len() > 1, "{processes:?}");
    for process in &processes {
        let numbers = of(*process);
        let mut once = numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), numbers.len(), "process {process}: each collection once");
    }
    assert!(gc.bools("complete").iter().filter(|c| !**c).count() <= processes.len());

    // By name and by id the same process is chosen, and nothing of another one comes along.
    let only = |process: &str| Dataset::with(Convert::default().inputs([file.path.clone()]).processes([process]));
    let (by_name, by_id) = (only("perfview"), only("3988"));
    assert_eq!(by_name.summary.inputs[0].events, by_id.summary.inputs[0].events);
    // More than it wrote itself: the kernel's events about it, its samples and modules.
    assert!(by_name.summary.inputs[0].events > 34_681);
    for table in ["gc", "allocation", "cpu_sample", "type", "event/Windows-Kernel-Thread/Start"] {
        let all = dataset.table(table).numbers("process_id");
        let rows = by_name.table(table).numbers("process_id");
        assert!(rows.iter().all(|process| *process == 3988), "{table}");
        assert_eq!(rows.len(), all.iter().filter(|process| **process == 3988).count(), "{table}");
    }
    let process = by_name.table("process");
    // Beside it the kernel, whose modules are in every process.
    assert_eq!(process.numbers("process_id").into_iter().collect::<std::collections::BTreeSet<_>>(), [0, 3988].into());
    let row = process.numbers("process_id").iter().position(|id| *id == 3988).expect("a row");
    assert_eq!(process.texts("name")[row], "PerfView.exe");
    assert!(process.texts("command_line")[row].to_lowercase().contains("perfview"));
}

#[test]
fn the_collections_of_a_trace_are_those_of_its_events() {
    let Some(file) = shared_file("collections", "gcevents.etl") else { return };
    let dataset = Dataset::of(&file.path);
    let gc = dataset.table("gc");
    assert_eq!((gc.rows(), gc.bools("complete")), (2, vec![true, true]));
    assert_eq!(dataset.table("allocation").rows(), 12);
    assert_eq!(dataset.table("gc_finalizable").rows(), 6);
    assert!(dataset.summary.inputs[0].raw <= 2);
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.etl");
    let event = event(19, [9; 16], 1, TICKS, &[], b"x");
    std::fs::write(&path, Writer::new().events(1, &[event]).bytes).expect("room");
    let request =
        |process: &str| Convert::new([path.clone()], folder.path().join("out")).processes([process]).overwrite(true);
    assert!(convert(&request("5"), &mut |_| {}).is_ok_and(|summary| summary.inputs[0].events == 2));
    let error = convert(&request("nobody"), &mut |_| {}).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("no events of process nobody"), "{error}");
}

#[test]
fn logs_given_one_by_one_are_recordings_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, events: &[Vec<u8>]| {
        let path = folder.path().join(name);
        std::fs::write(&path, Writer::new().events(1, events).bytes).expect("room");
        path
    };
    // As PerfView leaves them when it does not merge.
    let user = path("app.etl", &[event(19, [9; 16], 1, TICKS, &[], b"x"), event(19, [9; 16], 1, TICKS, &[], b"y")]);
    let kernel = path("app.kernel.etl", &[system(0x0F, 0x2E, 2, TICKS, &[0; 16])]);
    let dataset = Dataset::with(Convert::default().inputs([user, kernel]));
    let inputs: Vec<_> =
        dataset.summary.inputs.iter().map(|i| (i.trace_id.rsplit_once('-').unwrap().0, i.events)).collect();
    assert_eq!(inputs, [("app", 3), ("app.kernel", 2)]);
}
