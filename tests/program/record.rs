//! Records afresh, with the program of `samples/` on a real runtime, and converts what comes out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::support::skip::{RUNTIME, skip};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs `samples/record.sh` without letting it install anything: that is for `.ci/run` or a person to do.
fn record_sh(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("bash");
    let output = output_of(command.arg(root().join("samples/record.sh")).arg("--no-install").args(arguments))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn output_of(command: &mut Command) -> Result<std::process::Output, String> {
    command.stdin(Stdio::null()).output().map_err(|e| e.to_string())
}

/// The runtimes to record with: the one that record.sh finds, and the kit with .NET 10 where there is one beside the
/// repository.
fn runtimes() -> Vec<(PathBuf, String)> {
    let kit = root().join("../shared/tools/dotnet10/unpack.sh");
    let mut folders = vec!["auto".to_owned()];
    if kit.is_file() {
        let output = output_of(&mut Command::new(&kit)).unwrap();
        assert!(output.status.success(), "{}: {}", kit.display(), String::from_utf8_lossy(&output.stderr));
        folders.push(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for folder in folders {
        // What it cannot record with it refuses with a word on why. A kit that is there has to work.
        let printed = match record_sh(&["--runtime", &folder, "--print-runtime"]) {
            Ok(printed) => printed,
            Err(_) if folder == "auto" => continue,
            Err(why) => panic!("{folder}: {why}"),
        };
        let line = |name: &str| printed.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default().to_owned();
        let folder = PathBuf::from(line("runtime: "));
        if !found.iter().any(|(known, _)| *known == folder) {
            found.push((folder, line("version: ")));
        }
    }
    found
}

fn convert(recording: &Path, out: &Path) -> Json {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output = output_of(command.arg("convert").arg(recording).arg("--json").arg("-o").arg(out)).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}: {errors}", recording.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(manifest: &Json, table: &str) -> u64 {
    let tables = manifest["tables"].as_array().unwrap();
    tables.iter().find(|t| t["name"] == table).unwrap_or_else(|| panic!("no table {table}"))["rows"].as_u64().unwrap()
}

#[test]
fn a_fresh_recording_is_converted_whole() {
    let runtimes = runtimes();
    if runtimes.is_empty() {
        let why = record_sh(&["--print-runtime"]).unwrap_err();
        skip("a_fresh_recording_is_converted_whole", &format!("no .NET runtime to record with: {why}"), RUNTIME);
        return;
    }
    for (runtime, version) in runtimes {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_str().unwrap();
        let runtime = runtime.to_str().unwrap();
        if let Err(errors) = record_sh(&["--runtime", runtime, "--only", "gc-churn,events", at]) {
            panic!(".NET {version} in {runtime}: {errors}");
        }

        let out = folder.path().join("gc");
        let summary = convert(&folder.path().join("gc-churn.nettrace"), &out);
        let manifest: Json = serde_json::from_slice(&std::fs::read(out.join("manifest.json")).unwrap()).unwrap();
        let input = &summary["inputs"][0];
        assert!(input["collection_count"].as_u64().unwrap() >= 10, ".NET {version}: {input}");
        assert_eq!(input["incomplete_collection_count"], 0, ".NET {version}");
        assert_eq!(input["has_losses"], false, ".NET {version}: {input}");
        assert_eq!(rows(&manifest, "gc"), input["collection_count"].as_u64().unwrap());
        for table in
            ["gc_pause", "gc_generation_range", "gc_surviving_range", "gc_moved_range", "gc_handle", "allocation"]
        {
            assert!(rows(&manifest, table) > 0, ".NET {version}: {table} is empty");
        }

        let out = folder.path().join("events");
        let summary = convert(&folder.path().join("events.nettrace"), &out);
        assert!(out.join("event/Tracequet-Churn").is_dir(), ".NET {version}: {summary}");
        assert_eq!(summary["inputs"][0]["dropped_events"], 0, ".NET {version}");
    }
}
