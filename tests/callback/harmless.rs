//! The recorder never harms the program: names that are taken, small and foreign file systems, files that are cut,
//! settings that cannot be followed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::callbacks::{Facts, facts};
use crate::support::dual::{Runtime, each_runtime, recorder, without_settings};
use crate::support::patience::wait_for;

/// The sample program under the recorder alone, with these settings of the recorder and no others.
fn command(runtime: &Runtime, settings: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(&runtime.dotnet);
    without_settings(&mut command)
        .arg(&runtime.program)
        .args(arguments)
        .env("CORECLR_ENABLE_PROFILING", "1")
        .env("CORECLR_PROFILER", "{6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}")
        .env("CORECLR_PROFILER_PATH", recorder().expect("the recorder"))
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        .env(if runtime.is_old() { "COMPlus_GCgen0size" } else { "DOTNET_GCgen0size" }, "180000")
        .env(if runtime.is_old() { "COMPlus_DbgEnableMiniDump" } else { "DOTNET_DbgEnableMiniDump" }, "0")
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of the recorder on standard error.
fn said(output: &Output) -> Vec<String> {
    let lines = errors(output);
    lines.lines().filter(|line| line.starts_with("tracequet-recorder: ")).map(str::to_owned).collect()
}

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut found: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "corprof")).collect();
    found.sort();
    found
}

fn read(path: &Path) -> Facts {
    facts(&std::fs::read(path).expect("a recording")).expect("a readable recording")
}

#[test]
fn two_processes_with_one_name_are_two_recordings() {
    for runtime in each_runtime("one name for two") {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("app.corprof");
        let settings = [("TRACEQUET_OUTPUT", output.to_str().expect("UTF-8"))];
        let both = [(), ()].map(|()| command(runtime, &settings, &["steps", "10", "50"]).spawn().expect("a program"));
        let both = both.map(|child| child.wait_with_output().expect("an end"));
        assert!(both.iter().all(|output| output.status.success()), "{}: {both:?}", runtime.name);
        let lines: Vec<_> = both.iter().flat_map(said).collect();
        assert!(lines.len() == 1 && lines[0].contains("exists already"), "{}: {lines:?}", runtime.name);
        let found = recordings(folder.path());
        assert_eq!(found.len(), 2, "{}: {found:?}", runtime.name);
        for path in found {
            let facts = read(&path);
            assert!(facts.end.complete && facts.problems.is_empty(), "{}: {:?}", runtime.name, facts.problems);
            assert!(facts.collections.len() >= 5, "{}: {} collections", runtime.name, facts.collections.len());
        }
    }
}

#[test]
fn a_recording_that_is_cut_while_it_is_made_does_not_end_the_program() {
    for runtime in each_runtime("cut from outside") {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("app.corprof");
        let settings = [("TRACEQUET_OUTPUT", output.to_str().expect("UTF-8"))];
        let mut child = command(runtime, &settings, &["steps", "60", "50"]).spawn().expect("a program");
        wait_for("a recording", || output.exists());
        // In the middle of it: a collection is there, and the program makes fifty more.
        let has_collection =
            || facts(&std::fs::read(&output).expect("a recording")).is_ok_and(|f| !f.collections.is_empty());
        wait_for("a collection", has_collection);
        assert!(child.try_wait().expect("a child").is_none(), "{}: it has ended", runtime.name);
        std::fs::File::options().write(true).open(&output).expect("the recording").set_len(0).expect("cut");
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}: {:?} {}", runtime.name, output.status, errors(&output));
        let lines = said(&output);
        assert!(lines.len() == 1 && lines[0].contains("the recording ends here"), "{}: {lines:?}", runtime.name);
    }
}

#[test]
fn settings_that_cannot_be_followed_are_said_on_standard_error_and_in_the_recording() {
    for runtime in each_runtime("bad settings") {
        for (name, value) in [("TRACEQUET_RANGES", "v9"), ("TRACEQUET_INTERFACE", "2"), ("TRACEQUET_RANGE", "v1")] {
            let folder = tempfile::tempdir().expect("a folder");
            let output = folder.path().join("app.corprof");
            let settings = [("TRACEQUET_OUTPUT", output.to_str().expect("UTF-8")), (name, value)];
            let ended = command(runtime, &settings, &["churn"]).output().expect("a program");
            let lines = said(&ended);
            assert!(ended.status.success(), "{}: {name} {}", runtime.name, errors(&ended));
            assert!(lines.len() == 1 && lines[0].contains(name), "{}: {lines:?}", runtime.name);
            let facts = read(&output);
            let reported: Vec<_> = facts.problems.iter().filter(|p| p.code == "recorder_setting").collect();
            assert!(
                reported.len() == 1 && reported[0].message.contains(name),
                "{}: {:?}",
                runtime.name,
                facts.problems
            );
            assert!(!facts.surviving.is_empty() || !facts.moved.is_empty(), "{}: {name}: no ranges", runtime.name);
        }
    }
}

/// A file system of its own, which goes with this value. `None` where none can be mounted (no root, no loop devices).
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(kind: &str, megabytes: u64) -> Option<Mounted> {
        let run = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("mounted");
        std::fs::create_dir(&place).expect("a folder");
        let done = if kind == "tmpfs" {
            run(Command::new("mount")
                .args(["-t", "tmpfs", "-o"])
                .arg(format!("size={megabytes}m"))
                .arg("none")
                .arg(&place))
        } else {
            let image = folder.path().join("image");
            std::fs::File::create(&image).and_then(|file| file.set_len(megabytes << 20)).expect("an image");
            run(Command::new("/sbin/mkfs.ext2").args(["-q", "-F"]).arg(&image))
                && run(Command::new("mount").args(["-t", "ext2", "-o", "loop"]).arg(&image).arg(&place))
        };
        if !done {
            println!("skipped: {kind} cannot be mounted here");
        }
        done.then_some(Mounted(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("mounted")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.path()).output().ok();
    }
}

/// A disk with less room than the recording takes: the program ends as ever, and what fits is a recording.
#[test]
fn a_full_disk_costs_records_and_not_the_program() {
    for runtime in each_runtime("a full disk") {
        // Each takes ten seconds: an old runtime fills the disk of one kind, a new one that of the other.
        let (kind, megabytes) = if runtime.is_old() { ("tmpfs", 9) } else { ("ext2", 12) };
        if let Some(disk) = Mounted::new(kind, megabytes) {
            let output = disk.path().join("app.corprof");
            let settings = [("TRACEQUET_OUTPUT", output.to_str().expect("UTF-8")), ("TRACEQUET_OBJECTS", "record")];
            let ended = command(runtime, &settings, &["ranges"]).output().expect("a program");
            let name = format!("{kind} of {megabytes} MB on {}", runtime.name);
            assert!(ended.status.success(), "{name}: {:?} {}", ended.status, errors(&ended));
            let bytes = std::fs::metadata(&output).expect("a recording").len();
            assert!(bytes > (megabytes << 20) / 2, "{name}: {bytes} bytes were used");
            let facts = read(&output);
            assert!(facts.records > 1000 && !facts.collections.is_empty(), "{name}: {} records", facts.records);
            assert!(!facts.end.complete || facts.end.dropped_events > 0, "{name}: nothing lost, so nothing is tested");
            assert!(said(&ended).iter().any(|line| line.contains("may be lost")), "{name}: {:?}", said(&ended));
        }
    }
}
