//! Recordings that dotnet-monitor hands to `tracequet egress`, in the bytes of its protocol.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tracequet::dataset::read::Dataset;

use crate::support::program::{Run, command};

/// What dotnet-monitor 8 writes to an extension: version, length and settings, and the artifact.
fn sent(name: &str, configuration: Value, artifact: &[u8]) -> Vec<u8> {
    let settings = json!({
        "Settings": {"Name": name, "ContentType": "application/octet-stream", "Metadata": {"ArtifactType": "trace"}},
        "Properties": {"Other": "of another provider"},
        "Configuration": configuration,
        "ProviderName": "lake",
        "LogLevel": "Information",
    });
    let settings = settings.to_string();
    [&1i32.to_le_bytes(), (settings.len() as i64).to_le_bytes().as_slice(), settings.as_bytes(), artifact].concat()
}

/// Starts the extension as dotnet-monitor does; its answer, if it is one that dotnet-monitor takes, and all that it gave.
fn answered(step: &str, input: &[u8]) -> (Value, Run) {
    let mut command = command(&["Egress", step]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // The extension may end before it has read everything.
    let _ = child.stdin.take().expect("an input").write_all(input);
    let run = Run::from(child.wait_with_output().expect("an end"));
    let answer: Value = serde_json::from_str(&run.out).expect("one line of JSON");
    let has = |name: &str| answer[name].as_str().is_some_and(|text| !text.is_empty());
    match answer["Succeeded"].as_bool().expect("whether it succeeded") {
        true => assert!(run.code == Some(0) && !has("FailureMessage"), "{:?} {}", run.code, run.out),
        false => {
            assert!(run.code == Some(1) && has("FailureMessage") && !has("ArtifactPath"), "{:?} {}", run.code, run.out)
        }
    }
    (answer, run)
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)).expect("a sample")
}

#[test]
fn recordings_of_dotnet_monitor_become_recordings_of_a_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    let settings = json!({"Output": lake, "tables:0": "gc", "Tables:1": "gc_pause", "Labels:service": "orders"});

    let (valid, _) = answered("Validate", &sent("", settings.clone(), b""));
    assert_eq!(valid["Succeeded"], true);
    assert!(!lake.exists(), "nothing is stored to look at settings");

    // Names are foreign: the part that leads elsewhere is left out.
    let recording = sent("../../20261127_1_4711.nettrace", settings.clone(), &sample("gc-churn.nettrace"));
    let (first, _) = answered("Execute", &recording);
    let (again, _) = answered("Execute", &recording);
    answered("Execute", &sent("20261127_2_4711.nettrace", settings.clone(), &sample("gc-churn-3.1.nettrace")));
    let path = first["ArtifactPath"].as_str().expect("a path");
    assert!(path.starts_with(&*lake.to_string_lossy()) && path.contains("20261127_1_4711-"), "{path}");
    assert_eq!(first, again, "a recording that is there is not stored twice");

    let dataset = Dataset::open(&lake).expect("a dataset");
    let tables: Vec<String> = dataset.tables().iter().map(|table| table.name.clone()).collect();
    assert!(
        ["gc", "gc_pause", "trace", "trace_label"].iter().all(|name| tables.iter().any(|t| t == name)),
        "{tables:?}"
    );
    assert!(!tables.iter().any(|name| name.starts_with("event/")), "{tables:?}");
    let rows = |name: &str| dataset.tables().iter().find(|table| table.name == name).map(|table| table.rows);
    assert_eq!((dataset.recordings().len(), rows("trace_label")), (2, Some(2)));
    // 19 collections are in the first one (docs and snapshots have them), and the other one has some, too.
    assert!(rows("gc").is_some_and(|rows| rows > 19), "{:?}", rows("gc"));
}

#[test]
fn what_cannot_be_stored_is_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    let good = json!({"Output": lake});
    let other_version = [2i32.to_le_bytes().as_slice(), &[0; 100]].concat();
    let cases: [(&str, Vec<u8>); 6] = [
        ("no recording", sent("a.log", good.clone(), b"a text of a program")),
        ("version 2", other_version),
        ("Outptu", sent("a.nettrace", json!({"Outptu": lake}), &sample("gc-churn.nettrace"))),
        ("Output is missing", sent("a.nettrace", json!({"Pack": "true"}), &sample("gc-churn.nettrace"))),
        ("true or false", sent("a.nettrace", json!({"Output": lake, "Pack": "perhaps"}), b"")),
        ("standard input ends", Vec::new()),
    ];
    for (why, input) in cases {
        let (answer, run) = answered("Execute", &input);
        assert_eq!(answer["Succeeded"], false, "{why}: {}", run.out);
        let message = answer["FailureMessage"].as_str().expect("a message");
        assert!(why == "no recording" || message.contains(why), "{why}: {message}");
    }
    assert!(!lake.exists() || Dataset::open(&lake).is_ok_and(|dataset| dataset.recordings().is_empty()));
}
