//! A file that becomes shorter while it is read is damaged from there on, and costs no other recording.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use crate::hostile::resync::long;
use crate::support::program::{Run, command};
use crate::support::writer::Form;

/// Runs the program and cuts a file as soon as it is mapped; the output, unless the file was read before it was cut.
fn shrunk(path: &Path, bytes: &[u8], arguments: &[&OsStr]) -> Option<Run> {
    let name = path.file_name().expect("a name").to_str().expect("text");
    std::fs::write(path, bytes).expect("room");
    let piped = Stdio::piped;
    let mut child = command(&[]).args(arguments).stdout(piped()).stderr(piped()).spawn().expect("it runs");
    let maps = format!("/proc/{}/maps", child.id());
    while child.try_wait().expect("a child").is_none() {
        if std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(name)) {
            let file = std::fs::OpenOptions::new().write(true).open(path).expect("a file");
            file.set_len(4096).expect("a shorter file");
            break;
        }
    }
    let run = Run::from(child.wait_with_output().expect("an end"));
    assert!(run.code.is_some(), "a signal ended it: {}", run.err);
    let said = format!("{}{}", run.out, run.err);
    ["became shorter while it was read", "changed while it was read"]
        .iter()
        .any(|why| said.contains(why))
        .then_some(run)
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_damaged_from_there_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shrinks.nettrace");
    let bytes = long(Form::V4, 1200).end();
    let inspect = || shrunk(&path, &bytes, &["inspect".as_ref(), path.as_ref()]);
    let run = (0..10).find_map(|_| inspect()).expect("the file was always read before it shrank");
    assert_eq!(run.code, Some(2), "{}{}", run.out, run.err);
    assert!(run.out.contains("stream_error"), "{}", run.out);
}

/// One of several that shrinks, or whose disk fails, does not affect the others.
#[test]
fn a_file_that_shrinks_costs_no_other_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, good, out] = ["shrinks.nettrace", "good.nettrace", "out"].map(|name| folder.path().join(name));
    std::fs::write(&good, long(Form::V6, 4).end()).expect("room");
    let bytes = long(Form::V4, 1200).end();
    let mut arguments: Vec<&OsStr> = ["convert", "--json", "--quiet", "--overwrite", "-o"].map(AsRef::as_ref).into();
    arguments.extend([out.as_os_str(), path.as_os_str(), good.as_os_str()]);
    let run =
        (0..10).find_map(|_| shrunk(&path, &bytes, &arguments)).expect("the file was always read before it shrank");
    assert_eq!(run.code, Some(2), "{}", run.err);
    let lines: Vec<serde_json::Value> = run.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |outcome: &str| lines.iter().find(|line| line["outcome"] == outcome).expect("a recording");
    let good = of("converted");
    assert!(good["trace_id"].as_str().is_some_and(|id| id.starts_with("good-")), "{}", run.out);
    assert_eq!((good["event_count"].as_u64(), good["complete"].as_bool()), (Some(800), Some(true)), "{}", run.out);
    // Its rows would be those of no file: it is read again when it is whole.
    assert!(of("failed").to_string().contains("shrinks.nettrace"), "{}", run.out);
}
