//! What holds between the tables of a dataset, and between them and what `inspect` says, whatever was recorded.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::readers::run;
use crate::support::expected::shared_folder;
use crate::support::program;
use crate::support::python::python;

/// Rows refer to rows that are there, sums are those of the rows they count, times and stacks are in order. `inspect` looks at
/// a recording in another way, and counts the same.
#[test]
fn tables_agree_with_each_other_and_with_inspect() {
    const TEST: &str = "tables_agree_with_each_other_and_with_inspect";
    let Some(python) = python(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [schema, dataset, inspections] =
        ["schema.json", "dataset", "inspections.json"].map(|name| folder.path().join(name));
    let printed = Command::new(env!("CARGO_BIN_EXE_tracequet")).args(["schema", "--format", "json"]).output().unwrap();
    std::fs::write(&schema, printed.stdout).unwrap();

    let mut recordings = vec![PathBuf::from("samples")];
    if let Some(folder) = shared_folder(TEST, "nettrace") {
        // Those in `hostile` are made to be large.
        recordings.extend(["*.net*", "damaged", "net10", "v6-writer"].map(|name| folder.join(name)));
    }
    recordings.extend(["etl", "corprof"].iter().filter_map(|format| shared_folder(TEST, format)));
    let mut convert = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    convert.current_dir(env!("CARGO_MANIFEST_DIR")).args(["convert", "--quiet", "--append", "-o"]).arg(&dataset);
    let output = convert.args(recordings).output().unwrap();
    // 2 is for losses: some recordings are damaged.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", String::from_utf8_lossy(&output.stderr));
    run(&python, "relations.py", &[schema, dataset.clone()]);

    let manifest: Value = serde_json::from_slice(&std::fs::read(dataset.join("manifest.json")).unwrap()).unwrap();
    let inspect = |recording: &Value| {
        let run = program::run(&["inspect", "--frames", "--json", recording["path"].as_str().unwrap()]);
        serde_json::from_str(&run.out).unwrap()
    };
    let seen: Vec<Value> = manifest["inputs"].as_array().unwrap().iter().map(inspect).collect();
    std::fs::write(&inspections, Value::from(seen).to_string()).unwrap();
    run(&python, "inspections.py", &[dataset, inspections]);
}
