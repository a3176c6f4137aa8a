//! `tracequet watch`: a program that records another one for weeks.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::collect::process::SmallDisk;
use crate::support::dual::Runtime;
use crate::support::live::{Folder, Program, command, each_runtime, ended, rows, run, text, tracequet};
use crate::support::patience::wait_for;
use crate::support::skip::{MOUNTS, skip};

/// The entries of a dataset, by their keys in order.
fn entries(lake: &Path) -> Vec<Value> {
    let names = std::fs::read_dir(lake.join("manifest")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = names.map(|name| name.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    // One may be on its way out.
    paths.iter().filter_map(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).collect()
}

/// A recorder that goes on, with its log in a file.
struct Service {
    child: Child,
    log: PathBuf,
}

impl Service {
    fn start(folder: &Folder, arguments: &[&str]) -> Service {
        let log = folder.path("log");
        let file = std::fs::File::options().create(true).append(true).open(&log).expect("a log");
        let mut command = tracequet(&[&["watch", "--for", "gc"], arguments].concat());
        // Its temporary files can be counted.
        std::fs::create_dir_all(folder.path("tmp")).expect("a folder");
        command.stderr(Stdio::from(file)).stdout(Stdio::null()).env("TMPDIR", folder.path("tmp"));
        Service { child: command.spawn().expect("it starts"), log }
    }

    fn log(&self) -> String {
        let mut text = String::new();
        std::fs::File::open(&self.log).and_then(|mut file| file.read_to_string(&mut text)).expect("a log");
        text
    }

    /// Asks it to end, and gives its exit code.
    fn end(mut self) -> (Option<i32>, String) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        wait_for(&format!("its end\n{}", self.log()), || self.child.try_wait().expect("a child").is_some());
        let code = self.child.wait().expect("an end").code();
        (code, self.log())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The sample program under another name, so that it can be found by it.
fn named(runtime: &Runtime, link: &Path, mode: &[&str]) -> Program {
    if !link.exists() {
        std::os::unix::fs::symlink(&runtime.dotnet, link).expect("a link");
    }
    let usual = command(runtime, mode);
    let mut renamed = Command::new(link);
    renamed.args(usual.get_args());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => renamed.env(name, value),
            None => renamed.env_remove(name),
        };
    }
    Program::start_as(renamed, runtime)
}

/// Verifies a dataset, and that nothing half done lies in it.
fn is_whole(lake: &Path) {
    let said = text(&run(&["dataset", "verify", &lake.to_string_lossy()]));
    assert!(said.contains(" 0 wrong"), "{said}");
    let hidden = std::fs::read_dir(lake).expect("a folder").flatten();
    let hidden: Vec<_> = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_program_that_starts_late_and_is_restarted_is_found() {
    for runtime in each_runtime("watch -n").iter().take(1) {
        let folder = Folder::new();
        let (lake, name) = (folder.path("lake"), format!("svc-{}", std::process::id() % 100_000));
        let out = folder.text("lake");
        let service = Service::start(
            &folder,
            &["-n", &name, "--duration", "500ms", "--every", "1s", "-o", &out, "--label", "service=orders"],
        );
        wait_for("it says that it waits", || service.log().contains("waiting: no .NET process is called"));
        assert!(!lake.exists(), "nothing was recorded");
        let mut pids = BTreeSet::new();
        for _ in 0..2 {
            let program = named(runtime, &folder.path(&name), &["steps", "60000", "10"]);
            let pid = format!("-{}-", program.id());
            let of_it = || entries(&lake).iter().filter(|one| one["trace_id"].as_str().unwrap().contains(&pid)).count();
            wait_for(&format!("two recordings of {pid}\n{}", service.log()), || of_it() >= 2);
            pids.insert(pid);
            // Killed in the middle of a recording, or between two.
        }
        assert_eq!(pids.len(), 2);
        let (code, log) = service.end();
        // A recording that was cut has losses.
        assert!(matches!(code, Some(0 | 2)), "{code:?}\n{log}");
        let all = entries(&lake);
        assert!(all.iter().all(|one| one["labels"]["service"] == "orders"), "{all:?}");
        assert!(all.iter().filter(|one| one["status"] == "ok").count() >= 2, "{log}");
        let lines = log.lines().filter(|line| line.contains("Z recorded ")).count();
        assert_eq!(lines, all.len(), "a line for each\n{log}");
        is_whole(&lake);
    }
}

#[test]
fn a_killed_service_leaves_a_whole_dataset_and_its_port_to_the_next_one() {
    for runtime in each_runtime("watch --port").iter().filter(|runtime| !runtime.is_old()).take(1) {
        let folder = Folder::new();
        let (lake, port, out) = (folder.path("lake"), folder.text("port"), folder.text("lake"));
        let how = ["--port", &port, "--duration", "500ms", "--every", "1s", "-o", &out];
        let mut service = Service::start(&folder, &how);
        wait_for("the port", || Path::new(&port).exists());
        // It would wait at its start for ever.
        let mut suspended = command(runtime, &["steps", "60000", "10"]);
        suspended.env("DOTNET_DiagnosticPorts", &port);
        let _program = Program::start_as(suspended, runtime);
        wait_for(&service.log(), || !entries(&lake).is_empty());
        service.child.kill().expect("killed");
        service.child.wait().expect("an end");
        assert!(Path::new(&port).exists(), "its socket is left");
        let before = entries(&lake).len();
        let service = Service::start(&folder, &how);
        wait_for(&format!("it goes on\n{}", service.log()), || entries(&lake).len() >= before + 2);
        let (code, log) = service.end();
        assert_eq!(code, Some(0), "{log}");
        assert!(!Path::new(&port).exists(), "the port is closed");
        is_whole(&lake);
    }
}

#[test]
fn a_full_disk_is_said_and_ends_when_there_is_room() {
    for runtime in each_runtime("watch on a full disk").iter().take(1) {
        let Some(disk) = SmallDisk::mount() else {
            return skip("watch on a full disk", "mounting is not allowed here", MOUNTS);
        };
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, lake, pid) = (Folder::new(), disk.path.join("lake"), program.id().to_string());
        let filler = disk.path.join("filler");
        std::fs::write(&filler, vec![1; 480 << 10]).expect("there is room for that");
        let out = lake.to_string_lossy();
        let how = ["-p", &pid, "--duration", "300ms", "--every", "1s", "-o", &out, "--tables", "gc,metric"];
        let service = Service::start(&folder, &how);
        wait_for("it fails", || service.log().contains("failed: "));
        std::fs::remove_file(&filler).expect("removed");
        wait_for(&format!("it records\n{}", service.log()), || !entries(&lake).is_empty());
        let (code, log) = service.end();
        assert_eq!(code, Some(2), "a recording is missing\n{log}");
        // What could not be converted is not saved: each time it would take more of the disk.
        assert_eq!(std::fs::read_dir(folder.path("tmp")).expect("a folder").count(), 0, "{log}");
        is_whole(&lake);
    }
}

#[test]
fn what_cannot_be_done_ends_the_service_at_once() {
    for runtime in each_runtime("watch with wrong options").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, pid) = (Folder::new(), program.id().to_string());
        std::fs::write(folder.path("file"), "something else").expect("written");
        for (more, what) in [
            (&["-p", &pid, "-o", &folder.text("")][..], "something else"),
            (&["-o", &folder.text("lake")], "--process-id"),
            (&["-p", &pid, "-o", &folder.text("lake"), "--duration", "3s"], "longer than --every"),
            (
                &["-p", &pid, "-o", &folder.text("lake"), "--when", "cpu > 1 %", "--label", "trigger=x"],
                "sets this label",
            ),
            (&["-p", &pid, "-o", &folder.text("lake"), "--tables", "gcs"], "did you mean"),
        ] {
            let usual = ["watch", "--every", "2s"];
            let more =
                if more.contains(&"--duration") { more.to_vec() } else { [more, &["--duration", "1s"]].concat() };
            let output = ended(tracequet(&[&usual[..], &more].concat()).spawn().expect("it starts"), what);
            assert!(output.status.code() == Some(1) && text(&output).contains(what), "{what}: {}", text(&output));
        }
    }
}

#[test]
fn old_recordings_go_and_others_stay() {
    for runtime in each_runtime("watch --keep-for").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, lake, pid) = (Folder::new(), Folder::new(), program.id().to_string());
        let out = lake.text("lake");
        // The samples were recorded long ago.
        for label in ["service=orders", "service=mail"] {
            let sample = if label.ends_with("orders") { "gc-churn" } else { "server-gc" };
            let sample = format!("{}/samples/{sample}.nettrace", env!("CARGO_MANIFEST_DIR"));
            run(&["convert", &sample, "-o", &out, "--append", "--label", label]);
        }
        let how = ["-p", &pid, "--duration", "300ms", "--every", "1s", "-o", &out];
        let more = ["--label", "service=orders", "--keep-for", "1h"];
        let service = Service::start(&folder, &[&how[..], &more].concat());
        wait_for("an old one goes", || service.log().contains("removed 1 old recording"));
        let (code, log) = service.end();
        assert_eq!(code, Some(0), "{log}");
        let all: Vec<String> = entries(&lake.path("lake")).iter().map(|one| one["trace_id"].to_string()).collect();
        assert!(
            all.iter().any(|key| key.contains("server-gc")) && !all.iter().any(|key| key.contains("gc-churn")),
            "{all:?}"
        );
        is_whole(&lake.path("lake"));
    }
}

/// A compaction that fails is a line of the log, and tried again later.
#[test]
fn recordings_are_compacted_now_and_then() {
    for runtime in each_runtime("collect --compact-at").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, lake, pid) = (Folder::new(), Folder::new(), program.id().to_string());
        let out = lake.text("lake");
        let how = ["-p", &pid, "--duration", "300ms", "--every", "1s", "-o", &out, "--compact-at", "2"];
        // Instead of the file that a compaction locks.
        let in_the_way = lake.path("lake").join("manifest/.packing");
        std::fs::create_dir_all(&in_the_way).unwrap();
        let service = Service::start(&folder, &how);
        wait_for("it says that it cannot", || service.log().contains("were not compacted"));
        assert!(service.log().contains("recorded "), "{}", service.log());
        std::fs::remove_dir(&in_the_way).unwrap();
        wait_for("it compacts", || service.log().contains(" files became "));
        let (code, log) = service.end();
        assert_eq!(code, Some(2), "{log}");
        let said = text(&run(&["dataset", "verify", &out]));
        assert!(said.contains(" 0 wrong"), "{said}");
        assert!(std::fs::read_dir(lake.path("lake").join("manifest/packed")).unwrap().count() >= 1, "{log}");
    }
}

#[test]
fn a_trigger_makes_a_recording_and_not_too_many() {
    for runtime in each_runtime("collect --when").iter().take(1) {
        let folder = Folder::new();
        let record =
            |mode: &[&str], conditions: &[&str], every: &str, enough: &mut dyn FnMut(&Service, usize) -> bool| {
                let program = Program::start(runtime, mode);
                let place = Folder::new();
                let (out, pid) = (place.text("lake"), program.id().to_string());
                let mut how = vec!["-p", &pid, "--duration", "300ms", "--every", every, "-o", &out];
                conditions.iter().for_each(|condition| how.extend(["--when", condition]));
                let service = Service::start(&folder, &how);
                wait_for(&format!("{conditions:?}"), || enough(&service, entries(&place.path("lake")).len()));
                let (code, log) = service.end();
                assert_eq!(code, Some(0), "{conditions:?}\n{log}");
                (entries(&place.path("lake")), log)
            };
        for (mode, condition) in [
            (&["throws", "100000", "20"][..], "exception System.InvalidOperationException"),
            (&["steps", "60000", "10"], "gc.pause > 1us"),
            (&["steps", "60000", "10"], "working set > 1MB"),
            (&["steps", "60000", "0"], "cpu > 1 %"),
        ] {
            let (all, log) = record(mode, &["exception No.Such", condition], "1s", &mut |_, count| count >= 1);
            assert!(all.iter().all(|one| one["labels"]["trigger"] == condition), "{condition}: {all:?}\n{log}");
            assert!(log.contains(&format!("({condition})")), "{log}");
        }
        // One that does not hold makes none.
        let mut begun = None;
        let (all, log) =
            record(&["throws", "100000", "20"], &["exception No.Such", "gc.pause > 1h"], "1s", &mut |service, _| {
                service.log().contains("watching ")
                    && begun.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(3)
            });
        assert!(all.is_empty(), "{log}");
        // One that always holds makes no more than the limit allows.
        let mut first = None;
        let (all, log) =
            record(&["throws", "100000", "5"], &["exception InvalidOperationException"], "1h", &mut |_, count| {
                count > 0 && first.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(3)
            });
        assert_eq!(all.len(), 1, "{log}");
    }
}

#[test]
fn a_recording_is_labelled_alone_and_among_others() {
    for runtime in each_runtime("collect --label").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, pid) = (Folder::new(), program.id().to_string());
        for (name, how) in
            [("alone", &[][..]), ("lake", &["--append"]), ("lake", &["--append"]), ("followed", &["--follow=1s"])]
        {
            let out = folder.text(name);
            let usual =
                ["collect", "-p", &pid, "--duration", "1s", "-o", &out, "--label", "service=orders", "--label", "n=1"];
            let output = run(&[&usual[..], how].concat());
            assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output));
        }
        assert_eq!(rows(&folder.path("alone"), "trace_label"), 2);
        for (name, count) in [("lake", 2), ("followed", 1)] {
            let all = entries(&folder.path(name));
            assert!(
                all.len() == count && all.iter().all(|one| one["labels"]["service"] == "orders"),
                "{name}: {all:?}"
            );
            is_whole(&folder.path(name));
        }
        let twice = run(&["collect", "-p", &pid, "-o", &folder.text("x"), "--label", "a=1", "--label", "a=2"]);
        assert!(text(&twice).contains("--label a is given twice"), "{}", text(&twice));
    }
}

/// Kilobytes of memory, threads and open files of a process.
fn usage(process: u32) -> [u64; 3] {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).expect("files").count();
    // Without the pages of the program itself, which are read when they are needed first.
    [number("RssAnon:"), number("Threads:"), files as u64]
}

#[test]
fn memory_threads_and_files_do_not_grow_with_the_rounds() {
    for runtime in each_runtime("the memory of watch").iter().filter(|runtime| !runtime.is_old()).take(1) {
        for by_port in [false, true] {
            let folder = Folder::new();
            let (lake, out, port) = (folder.path("lake"), folder.text("lake"), folder.text("port"));
            let mut start = command(runtime, &["steps", "60000", "10"]);
            if by_port {
                start.env("DOTNET_DiagnosticPorts", format!("{port},nosuspend"));
            }
            let program = Program::start_as(start, runtime);
            let pid = program.id().to_string();
            let place = if by_port { ["--port", &port] } else { ["-p", &pid] };
            let how = ["--duration", "200ms", "--every", "1s", "-o", &out, "--when", "gc.pause > 1us"];
            let service = Service::start(&folder, &[&place[..], &how].concat());
            let at = |rounds: usize| {
                wait_for(&format!("{rounds} recordings\n{}", service.log()), || entries(&lake).len() >= rounds);
                // Between two rounds.
                std::thread::sleep(Duration::from_millis(300));
                usage(service.child.id())
            };
            let (few, many) = (at(5), at(20));
            let [memory, threads, files] = [0, 1, 2].map(|what| many[what].saturating_sub(few[what]));
            println!("after 5 rounds {few:?}, after 20 {many:?} (KB, threads, files)");
            assert!(memory < 8 << 10 && threads < 8 && files < 8, "{few:?} {many:?}\n{}", service.log());
            let (code, log) = service.end();
            assert_eq!(code, Some(0), "{log}");
        }
    }
}
