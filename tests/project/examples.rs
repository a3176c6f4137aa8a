//! The examples do what they say.

use std::path::Path;

#[allow(dead_code, reason = "an example has a main function, too")]
#[path = "../../crates/tracequet/examples/convert.rs"]
mod convert;
#[allow(dead_code, reason = "an example has a main function, too")]
#[path = "../../crates/tracequet/examples/gc_starts.rs"]
mod gc_starts;
#[allow(dead_code, reason = "an example has a main function, too")]
#[path = "../../crates/tracequet/examples/read_columns.rs"]
mod read_columns;
#[allow(dead_code, reason = "an example has a main function, too")]
#[path = "../../crates/tracequet/examples/write_corprof.rs"]
mod write_corprof;

const RECORDING: &str = "samples/gc-churn.nettrace";

#[test]
fn collections_are_printed_by_a_visitor() {
    assert_eq!(gc_starts::run(Path::new(RECORDING)).unwrap(), 19);
    assert!(gc_starts::run(Path::new("missing")).is_err());
}

#[test]
fn a_dataset_is_made_and_its_columns_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let rows = convert::run(vec![RECORDING.into(), out.clone()]).unwrap();
    assert!(rows > 3400, "{rows}");
    let moved = read_columns::run(&out).unwrap();
    assert!(moved.len() > 5 && moved.values().all(|bytes| *bytes > 0), "{moved:?}");
    assert!(
        moved.keys().all(|(recording, gc)| recording == "gc-churn-47551c824a692fa9" && (1..=19).contains(gc)),
        "{moved:?}"
    );
}

#[test]
fn what_a_profiler_writes_becomes_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (recording, out) = (folder.path().join("made.corprof"), folder.path().join("out"));
    write_corprof::run(&recording).unwrap();
    let request = tracequet::Convert::new([recording], &out);
    let summary = tracequet::convert(&request, &mut |_| {}).unwrap();
    let problems = &summary.inputs[0].problems;
    assert!(!summary.inputs[0].has_losses(), "{problems:?}");
    let rows = |name| summary.tables.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!((rows("gc"), rows("gc_surviving_range")), (1, 2));
}
