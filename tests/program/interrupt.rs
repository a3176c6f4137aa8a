//! Asked to end, the program takes away what is half done, and says by its exit code what asked.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::patience::wait_for;

const SAMPLE: &str = "samples/gc-churn.nettrace";

/// A conversion of standard input, which gets half a recording and stays open.
fn begin(folder: &Path, out: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tracequet"))
        .args(["convert", "-", "--quiet", "-o"])
        .arg(out)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let recording = std::fs::read(SAMPLE).unwrap();
    child.stdin.as_mut().unwrap().write_all(&recording[..recording.len() / 2]).unwrap();
    wait_for("the hidden directory", || names(folder).iter().any(|name| name.starts_with('.')));
    child
}

fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_signal_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path().join("parent");
        std::fs::create_dir(&parent).unwrap();
        let mut child = begin(&parent, &parent.join("out"));
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        // Although its input is open.
        wait_for("its end", || child.try_wait().unwrap().is_some());
        assert_eq!(child.wait().unwrap().code(), Some(code), "SIG{signal}");
        assert_eq!(names(&parent), [""; 0], "SIG{signal}");
    }
}

/// The dataset that stands there stays as it is, and parents that were made are removed.
#[test]
fn a_signal_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let convert = |out: &Path| {
        Command::new(env!("CARGO_BIN_EXE_tracequet")).args(["convert", SAMPLE, "-q", "-o"]).arg(out).status()
    };
    assert!(convert(&out).unwrap().success());
    let before = names(&out).len();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tracequet"))
        .args(["convert", "-", "--quiet", "--overwrite", "-o"])
        .arg(&out)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let recording = std::fs::read(SAMPLE).unwrap();
    child.stdin.as_mut().unwrap().write_all(&recording[..recording.len() / 2]).unwrap();
    wait_for("the hidden directory", || names(folder.path()).len() > 1);
    Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    // `wait` closes the input of the conversion first, which could end it in place of the signal.
    wait_for("its end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!((names(folder.path()), names(&out).len()), (vec!["out".to_owned()], before));
}
