//! What holds between the tables of a dataset, and between them and what `inspect` says, whatever was recorded.

use std::path::PathBuf;

use serde_json::Value;
use tracequet::dataset::read::{Dataset, RecordingInfo};

use crate::dataset::readers::{convert_files, run, schema};
use crate::support::expected::shared_folder;
use crate::support::program;
use crate::support::python::python;

/// Rows refer to rows that are there, sums are those of the rows they count, times and stacks are in order. `inspect`
/// looks at a recording in another way, and counts the same.
#[test]
fn tables_agree_with_each_other_and_with_inspect() {
    const TEST: &str = "tables_agree_with_each_other_and_with_inspect";
    let Some(python) = python(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = vec![PathBuf::from("samples")];
    if let Some(folder) = shared_folder(TEST, "nettrace") {
        // Those in `hostile` are made to be large.
        recordings.extend(["*.net*", "damaged", "net10", "v6-writer"].map(|name| folder.join(name)));
    }
    recordings.extend(["etl", "corprof"].iter().filter_map(|format| shared_folder(TEST, format)));
    let dataset = convert_files(folder.path(), "dataset", &recordings, &["--append", "--pack"]);
    run(&python, "relations.py", &[schema(folder.path()), dataset.clone()]);

    let inspect = |recording: &RecordingInfo| -> Value {
        let run = program::run(&["inspect", "--frames", "--json", recording.path.to_str().unwrap()]);
        serde_json::from_str(&run.out).unwrap()
    };
    let seen: Vec<Value> = Dataset::open(&dataset).unwrap().recordings().iter().map(inspect).collect();
    assert!(seen.len() > 10, "{}", seen.len());
    let inspections = folder.path().join("inspections.json");
    std::fs::write(&inspections, Value::from(seen).to_string()).unwrap();
    run(&python, "inspections.py", &[dataset, inspections]);
}
