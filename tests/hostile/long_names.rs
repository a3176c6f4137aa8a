//! Names of 65,536 characters and more, in every format: `inspect` prints them and `convert` writes them.

use std::path::Path;

use corprof::{encode, kind};

use crate::etl::writer as etl;
use crate::support::callbacks::Making;
use crate::support::program::run;
use crate::support::writer::{Form, Kind, Row, Writer};

const LENGTHS: [usize; 4] = [65_535, 65_536, 70_000, 300_000];

/// Inspects a recording as text and as JSON, and converts it. Gives the text and the JSON.
fn read(path: &Path, arguments: &[&str]) -> [String; 2] {
    let name = path.to_str().expect("a name");
    let out = path.with_extension("out");
    let rest = [&[name], arguments].concat();
    let out = out.to_str().expect("a name");
    let [text, json, convert] = [
        run(&[&["inspect", "--all"], rest.as_slice()].concat()),
        run(&[&["inspect", "--json"], rest.as_slice()].concat()),
        run(&[&["convert", "--quiet", "--overwrite", "-o", out], rest.as_slice()].concat()),
    ];
    for run in [&text, &json, &convert] {
        assert!(matches!(run.code, Some(0 | 2)), "{name}: {:?} {}", run.code, run.err);
        assert!(!run.err.contains("panic"), "{name}: {}", run.err);
    }
    serde_json::from_str::<serde_json::Value>(&json.out).expect("JSON");
    [text.out, json.out]
}

/// Whether the JSON has a name whole, and the text its beginning.
fn is_shown([text, json]: &[String; 2], name: &str) -> bool {
    text.contains(&name[..200]) && text.lines().all(|line| line.len() < 5000) && json.contains(name)
}

fn written(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("room");
    path
}

#[test]
fn of_nettrace() {
    let folder = tempfile::tempdir().expect("a folder");
    for length in LENGTHS {
        let (name, provider) = ("n".repeat(length), "p".repeat(length));
        let row = Row { metadata_id: 1, sequence: 1, ticks: 5, ..Row::default() };
        let mut writer = Writer::new(Form::V4);
        let kind = Kind { id: 1, provider: &provider, event_id: 1, version: 0, name: &name };
        writer.metadata(&[kind]).events(std::slice::from_ref(&row));
        let read = read(&written(&folder, "a.nettrace", &writer.end()), &[]);
        assert!(is_shown(&read, &name) && is_shown(&read, &provider), "{length}");
    }
    // A row of metadata in V6 has at most 64 KB.
    let name = "n".repeat(65_400);
    let mut writer = Writer::new(Form::V6);
    writer.metadata(&[Kind { id: 1, provider: "P", event_id: 1, version: 0, name: &name }]);
    writer.threads(&[(1, 77, 5)]);
    writer.events(&[Row { metadata_id: 1, sequence: 1, thread: 1, capture_thread: 1, ..Row::default() }]);
    let read = read(&written(&folder, "b.nettrace", &writer.end()), &[]);
    assert!(is_shown(&read, &name));
}

#[test]
fn of_callbacks() {
    let folder = tempfile::tempdir().expect("a folder");
    for length in LENGTHS {
        let name = "t".repeat(length);
        let mut making = Making::new();
        making.started(0, &[]).finished(&[]);
        making.record(0, kind::THREAD_NAME, 0, |out| encode::named(out, &[7], &name));
        making.record(0, kind::CLASS, 0, |out| encode::named(out, &[7, 1, 1, 0], &name));
        read(&written(&folder, "a.corprof", &making.bytes()), &[]);
    }
}

#[test]
fn of_event_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    // An event has at most 64 KB, and a name of a process has one byte for each character.
    let name = "n".repeat(21_000);
    let events = [etl::process(1, etl::TICKS, 40, &name, 0), etl::event(19, [10; 16], 1, etl::TICKS + 1, &[], &[])];
    let log = written(&folder, "a.etl", &etl::Writer::sized_file(&events, 1 << 17, 10_000_000));
    read(&log, &[]);
    // A manifest knows no such bound.
    for length in LENGTHS {
        let name = "m".repeat(length);
        let text = crate::etl::MANIFEST.replace("name='P'", &format!("name='{name}'"));
        let text = text.replace("symbol='One'", &format!("symbol='{name}'"));
        assert_ne!(text, crate::etl::MANIFEST);
        let manifest = written(&folder, "a.man", text.as_bytes());
        let read = read(&log, &["--manifest", manifest.to_str().expect("a name")]);
        assert!(is_shown(&read, &name), "{length}");
    }
}
