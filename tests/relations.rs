//! What holds between the tables of a dataset, whatever was recorded.

use std::path::PathBuf;
use std::process::Command;

use crate::readers::run;
use crate::support::expected::shared_folder;
use crate::support::python::python;

/// Rows refer to rows that are there, sums are those of the rows they count, times and stacks are in order.
#[test]
fn tables_agree_with_each_other() {
    const TEST: &str = "tables_agree_with_each_other";
    let Some(python) = python(TEST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [schema, dataset] = ["schema.json", "dataset"].map(|name| folder.path().join(name));
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
    run(&python, "relations.py", &[schema, dataset]);
}
