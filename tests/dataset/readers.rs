//! What is written can be read by those who will read it: DuckDB, pyarrow, polars and pandas, run from Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::python::python;
use crate::support::skip;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Converts samples into `folder/name`.
fn convert(folder: &Path, name: &str, samples: &[&str], options: &[&str]) -> PathBuf {
    let samples: Vec<_> = samples.iter().map(|sample| PathBuf::from(format!("samples/{sample}.nettrace"))).collect();
    convert_files(folder, name, &samples, options)
}

pub fn convert_files(folder: &Path, name: &str, recordings: &[PathBuf], options: &[&str]) -> PathBuf {
    let out = folder.join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    command.current_dir(root()).arg("convert").arg("--quiet").args(options).arg("-o").arg(&out);
    command.args(recordings);
    let output = command.output().expect("the program runs");
    // 2 is for losses, as in exit-early, which is cut. What is there has to be readable all the same.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{name}: {errors}");
    out
}

/// What the schema prints, as a file.
pub fn schema(folder: &Path) -> PathBuf {
    let path = folder.join("schema.json");
    let schema = Command::new(env!("CARGO_BIN_EXE_tracequet")).args(["schema", "--format", "json"]).output().unwrap();
    std::fs::write(&path, schema.stdout).unwrap();
    path
}

pub fn run(python: &Path, script: &str, arguments: &[PathBuf]) {
    let mut command = Command::new(python);
    // No .pyc files among the sources.
    command.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.arg(Path::new("tests/python").join(script)).args(arguments).output().expect("Python runs");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{script}:\n{said}");
    println!("{said}");
}

#[test]
fn duckdb_pyarrow_polars_and_pandas_read_every_table() {
    let Some(python) = python("duckdb_pyarrow_polars_and_pandas_read_every_table") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut arguments = vec![schema(at)];
    // All that were recorded in different ways, in one file for each table.
    let samples =
        ["gc-churn", "gc-churn-3.1", "server-gc", "heap", "heap-10", "stacks", "events", "events-3.1", "exit-early"];
    arguments.push(convert(at, "pack-parquet", &samples, &["--pack", "--append"]));
    arguments.push(convert(at, "churn-parquet", &["gc-churn"], &[]));
    arguments.push(convert(at, "heap-arrow", &["heap-10"], &["--format", "arrow"]));
    let two = &["gc-churn", "events"];
    arguments.push(convert(at, "two-parquet", two, &[]));
    arguments.push(convert(at, "two-arrow", two, &["--format", "arrow"]));
    arguments.push(convert(at, "hive-parquet", &["heap-10"], &["--layout", "hive"]));
    arguments.push(convert(at, "snappy-parquet", &["events"], &["--compression", "snappy"]));
    arguments.push(convert(at, "plain-arrow", &["events"], &["--format", "arrow", "--compression", "none"]));
    run(&python, "read_all.py", &arguments);
}

/// DuckDB binds a script anew in every version: one that loads in the newest may be refused by those that people have.
#[test]
fn views_are_the_same_in_every_duckdb_that_is_promised() {
    const TEST: &str = "views_are_the_same_in_every_duckdb_that_is_promised";
    let Some(python) = python(TEST) else { return };
    let Some(versions) = std::env::var_os("TRACEQUET_DUCKDB") else {
        return skip::skip(TEST, "no versions of DuckDB", "TRACEQUET_DUCKDB=$(.ci/duckdb)");
    };
    let folder = tempfile::tempdir().unwrap();
    let several = ["gc-churn", "heap-10", "subjects", "gc-churn-3.1"];
    let datasets = [
        convert(folder.path(), "one", &["gc-churn"], &["--cohorts"]),
        convert(folder.path(), "roots", &["heap-10"], &["--dominators"]),
        convert(folder.path(), "many", &several, &[]),
    ];
    let mut found: Vec<(String, serde_json::Value)> = Vec::new();
    for version in std::env::split_paths(&versions) {
        let mut command = Command::new(&python);
        command.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", &version);
        let output = command.arg("tests/python/views.py").args(&datasets).output().expect("Python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", version.display());
        let mut said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = said["version"].take().as_str().unwrap().to_owned();
        assert!(version.ends_with(&number), "{} has {number}", version.display());
        found.push((number, said));
    }
    let all: Vec<&str> = found.iter().map(|(version, _)| version.as_str()).collect();
    assert!(["1.2.", "1.4.", "1.5."].iter().all(|wanted| all.iter().any(|v| v.starts_with(wanted))), "{all:?}");
    let (newest, expected) = found.last().unwrap();
    let survived: usize =
        expected["datasets"].as_array().unwrap().iter().map(|d| d["survived"].as_array().unwrap().len()).sum();
    assert!(survived >= 40, "{survived} objects are looked for");
    for (version, said) in &found {
        assert_eq!(said, expected, "DuckDB {version} beside {newest}");
    }
}

#[test]
fn queries_of_the_documents_give_rows() {
    let Some(python) = python("queries_of_the_documents_give_rows") else { return };
    let folder = tempfile::tempdir().unwrap();
    let documents = ["README.md", "docs/QUERIES.md", "docs/TABLES.md", "docs/ARCHITECTURE.md"];
    let mut arguments: Vec<PathBuf> = documents.iter().map(|name| root().join(name)).collect();
    arguments.push("--".into());
    for sample in ["gc-churn", "heap-10", "stacks", "events", "server-gc", "exit-early", "subjects", "lifetimes"] {
        let options: &[&str] = match sample {
            // The one whose symbols are there, and the one with a heap dump.
            "subjects" => &["--symbols", "samples"],
            "heap-10" => &["--dominators"],
            "lifetimes" => &["--lifetimes"],
            _ => &[],
        };
        arguments.push(convert(folder.path(), sample, &[sample], options));
    }
    let callbacks = PathBuf::from("samples/callbacks.corprof");
    arguments.push(convert_files(folder.path(), "callbacks", &[callbacks], &[]));
    let requests = PathBuf::from("samples/figures/recordings/requests.nettrace.zst");
    arguments.push(convert_files(folder.path(), "requests", &[requests], &[]));
    let orders = PathBuf::from("samples/requests/orders.nettrace.zst");
    arguments.push(convert_files(folder.path(), "orders", &[orders], &["--lifetimes"]));
    let spans = PathBuf::from("samples/spans/spans.nettrace.zst");
    arguments.push(convert_files(folder.path(), "spans", &[spans], &[]));
    let genaware = PathBuf::from("samples/genaware/gcgenaware.nettrace.zst");
    arguments.push(convert_files(folder.path(), "genaware", &[genaware], &[]));
    let bench = PathBuf::from("samples/benchmarks/bench.nettrace.zst");
    arguments.push(convert_files(folder.path(), "bench", &[bench], &[]));
    let keeps = PathBuf::from("samples/keeps.nettrace.zst");
    arguments.push(convert_files(folder.path(), "keeps", &[keeps], &["--lifetimes"]));
    let awaits = PathBuf::from("samples/awaits.nettrace.zst");
    arguments.push(convert_files(folder.path(), "awaits", &[awaits], &[]));
    let buffers = PathBuf::from("samples/async-buffers.nettrace.zst");
    arguments.push(convert_files(folder.path(), "async-buffers", &[buffers], &[]));
    let callers = folder.path().join("callers.nettrace");
    std::fs::write(&callers, crate::tables::async_tasks::samples_within_a_task()).unwrap();
    arguments.push(convert_files(folder.path(), "callers", &[callers], &[]));
    let machine = folder.path().join("machine.etl");
    std::fs::write(&machine, crate::etl::processes::recording()).unwrap();
    arguments.push(convert_files(folder.path(), "machine", &[machine], &[]));
    let switches = folder.path().join("switches.etl");
    std::fs::write(&switches, crate::etl::scheduling::recording().0).unwrap();
    arguments.push(convert_files(folder.path(), "switches", &[switches], &[]));
    let interrupts = folder.path().join("interrupts.etl");
    std::fs::write(&interrupts, crate::etl::interrupts::recording()).unwrap();
    arguments.push(convert_files(folder.path(), "interrupts", &[interrupts], &[]));
    let pairs = folder.path().join("pairs.etl");
    std::fs::write(&pairs, crate::etl::kernel_pairs::recording()).unwrap();
    arguments.push(convert_files(folder.path(), "pairs", &[pairs], &[]));
    // A third party's log, which is not part of the project.
    let test = "queries_of_the_documents_give_rows: those of slowppt";
    match crate::support::expected::shared_folder(test, "third") {
        Some(shared) => {
            arguments.push(convert_files(folder.path(), "slowppt", &[shared.join("slowppt.etl.zst")], &[]));
        }
        None => arguments.push("--absent=slowppt".into()),
    }
    // All of them above are there alone, too.
    arguments.push(convert(folder.path(), "several", &["gc-churn", "heap-10", "stacks"], &["--dominators"]));
    run(&python, "queries.py", &arguments);
}

#[test]
fn views_of_threads_say_what_the_scheduler_did() {
    let Some(python) = python("views_of_threads_say_what_the_scheduler_did") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (recording, truth) = crate::etl::scheduling::recording();
    let [file, lines] = ["switches.etl", "truth.txt"].map(|name| folder.path().join(name));
    std::fs::write(&file, recording).unwrap();
    std::fs::write(&lines, truth).unwrap();
    for (name, options) in [("flat", &[][..]), ("hive", &["--layout", "hive"])] {
        let dataset = convert_files(folder.path(), name, std::slice::from_ref(&file), options);
        run(&python, "scheduling.py", &[dataset, lines.clone()]);
    }
}
