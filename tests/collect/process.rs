//! `tracequet collect` and `ps` on real runtimes: by process id, by name, from the start, through a port of ours.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::collect::Recording;
use crate::support::dataset::{Table, whole_heap};
use crate::support::dual::Runtime;
use crate::support::live::{self, Folder, Program, command, each_runtime, ended, rows, run, summary, text, tracequet};
use crate::support::live::{run_or_stuck, wait_for_bytes, with_time};
use crate::support::patience::wait_for;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

#[test]
fn a_process_is_recorded_until_the_time_is_over() {
    for runtime in each_runtime("collect -p") {
        let program = Program::start(runtime, &["steps", "60000", "20"]);
        let pid = program.id().to_string();
        let (folder, keep, output) = with_time(&[2, 8, 30], |seconds| {
            let folder = Folder::new();
            let (out, keep) = (folder.text("out"), folder.text("kept.nettrace"));
            let how = ["--for", "gc-survival", "--duration", seconds, "--keep", &keep, "-o", &out, "--json"];
            let output = run(&[&["collect", "-p", &pid], &how[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
            let rows = ["gc", "gc_surviving_range", "gc_moved_range"].map(|table| rows(&folder.path("out"), table));
            let enough = rows[0] > 3 && rows[1] + rows[2] > 100;
            if enough { Ok((folder, keep, output)) } else { Err(format!("{}: {rows:?} rows", runtime.name)) }
        });
        // What was kept is the same recording.
        let kept = Recording::open(&folder.path("kept.nettrace"));
        assert!(kept.end.complete && kept.problems.is_empty(), "{}: {:?}", runtime.name, kept.problems);
        let events = summary(&output)["inputs"][0]["event_count"].as_u64();
        assert_eq!(events, Some(kept.events.len() as u64), "{}", runtime.name);
        // The same tables come out of it.
        let again = run(&["convert", &keep, "-o", &folder.text("again")]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again));
        for table in ["gc", "gc_pause", "gc_surviving_range", "gc_moved_range", "event_type", "thread"] {
            assert_eq!(
                rows(&folder.path("out"), table),
                rows(&folder.path("again"), table),
                "{}: {table}",
                runtime.name
            );
        }
    }
}

#[test]
fn a_program_is_recorded_from_its_start_to_its_end() {
    for runtime in each_runtime("collect -- program") {
        let folder = Folder::new();
        let out = folder.text("out");
        let mut command = tracequet(&["collect", "--for", "gc,jit", "-o", &out, "--"]);
        let program = live::command(runtime, &["steps", "30", "20"]);
        command.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let output = ended(command.spawn().expect("it starts"), "launch");
        let said = text(&output);
        assert_eq!(output.status.code(), Some(0), "{}: {said}", runtime.name);
        // The program's own output comes through, and how it ended.
        assert!(said.contains("collections of generation") && said.contains("exit code 0"), "{}: {said}", runtime.name);
        assert!(rows(&folder.path("out"), "gc") > 10, "{}", runtime.name);
        if !runtime.is_old() {
            // From its first instruction: Main itself was compiled under our eyes.
            let methods = Table::open(&folder.path("out").join("method.parquet"));
            let names = methods.texts("name");
            assert!(names.iter().any(|name| name == "Main"), "{}: {} methods", runtime.name, names.len());
        }
    }
}

#[test]
fn a_process_connects_to_a_port_of_ours() {
    for runtime in each_runtime("collect --port").iter().filter(|runtime| !runtime.is_old()) {
        let folder = Folder::new();
        let (port, out) = (folder.text("port"), folder.text("out"));
        let collect = tracequet(&["collect", "--port", &port, "-o", &out]).spawn().expect("it starts");
        wait_for("the port", || folder.path("port").exists());
        let mut command = command(runtime, &["steps", "20", "10"]);
        command.env("DOTNET_DiagnosticPorts", &port).stdout(Stdio::null());
        let program = command.spawn().expect("the program starts");
        assert!(ended(program, "the program").status.success());
        let output = ended(collect, "collect --port");
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("waiting for a process") && rows(&folder.path("out"), "gc") > 10);
        assert!(!folder.path("port").exists(), "the socket is removed");
    }
}

#[test]
fn interrupts_stop_and_drain() {
    for runtime in each_runtime("Ctrl+C") {
        let mut program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let (out, keep, pid) = (folder.text("out"), folder.text("kept.nettrace"), program.id().to_string());
        let arguments = ["collect", "-p", &pid, "--for", "gc,exceptions", "--keep", &keep, "-o", &out];
        let collect = tracequet(&arguments).spawn().expect("it starts");
        wait_for_bytes(&folder.path("kept.nettrace"), 100_000, &runtime.name);
        let interrupted = Command::new("kill").args(["-INT", &collect.id().to_string()]).status();
        assert!(interrupted.is_ok_and(|status| status.success()));
        let output = ended(collect, "collect");
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("stopping") && rows(&folder.path("out"), "gc") > 3, "{}", text(&output));
        assert!(rows(&folder.path("out"), "method") > 100, "{}: no rundown", runtime.name);
        assert!(program.child.try_wait().expect("a child").is_none(), "{}: the program was disturbed", runtime.name);
    }
}

#[test]
fn a_process_that_is_killed_leaves_what_came() {
    for runtime in each_runtime("kill -9") {
        let mut program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let (out, keep, pid) = (folder.text("out"), folder.text("kept.nettrace"), program.id().to_string());
        let collect = tracequet(&["collect", "-p", &pid, "--keep", &keep, "-o", &out]).spawn().expect("it starts");
        wait_for_bytes(&folder.path("kept.nettrace"), 100_000, &runtime.name);
        program.child.kill().expect("a kill");
        program.child.wait().expect("an end");
        let output = ended(collect, "collect");
        // What the process had in its buffers is lost, and said so.
        assert_eq!(output.status.code(), Some(2), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("the process has ended"), "{}", text(&output));
        assert!(rows(&folder.path("out"), "gc") > 3, "{}", runtime.name);
    }
}

#[test]
fn a_recorder_that_is_killed_does_not_harm_the_program() {
    for runtime in each_runtime("kill -9 of ourselves") {
        let mut program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let (out, keep, pid) = (folder.text("out"), folder.text("kept.nettrace"), program.id().to_string());
        let arguments = ["collect", "-p", &pid, "--for", "gc-survival", "--keep", &keep, "-o", &out];
        let mut collect = tracequet(&arguments).spawn().expect("it starts");
        wait_for_bytes(&folder.path("kept.nettrace"), 20_000, &runtime.name);
        collect.kill().expect("a kill");
        collect.wait().expect("an end");
        assert!(!folder.path("out").exists(), "nothing half is there");
        // The runtime ends that session by itself, and takes another one.
        std::thread::sleep(Duration::from_millis(300));
        assert!(program.child.try_wait().expect("a child").is_none(), "{}: the program has ended", runtime.name);
        with_time(&[1, 2, 4], |seconds| {
            let output = run(&["collect", "-p", &pid, "--duration", seconds, "-o", &out]);
            let said = text(&output);
            let is_slow = output.status.code() == Some(1) && said.contains("no answer to CollectTracing within");
            assert!(is_slow || output.status.code() == Some(0), "{}: {said}", runtime.name);
            if is_slow { Err(said) } else { Ok(()) }
        });
    }
}

#[test]
fn a_heap_is_recorded_whole() {
    for runtime in each_runtime("collect --heap") {
        // .NET Core 3.1 may deadlock when a session ends while a thread writes an event (dotnet/runtime#51579).
        let programs = if runtime.is_old() { 3 } else { 1 };
        let found = live::first_success(
            (0..programs).map(|_| heaps_of_a_program(runtime).map_err(|stuck| format!("{}: {stuck}", runtime.name))),
        );
        let whole = found.iter().filter(|n| n[0] > 200 && n[1] > 30 && n[2] > 100).count();
        assert!(whole == 2, "{}: {found:?}", runtime.name);
    }
}

/// Records the heap of a new program until two are large. Returns how many objects, types and references each has, or
/// why the runtime does not answer.
fn heaps_of_a_program(runtime: &Runtime) -> Result<Vec<[usize; 3]>, String> {
    let program = Program::start(runtime, &["steps", "60000", "10"]);
    let (pid, mut found) = (program.id().to_string(), Vec::<[usize; 3]>::new());
    // The port opens before the program begins: the first heaps may be small. .NET Core 3.1 begins with 280 objects.
    // The names of types are in each.
    while found.len() < 10 && found.iter().filter(|[objects, ..]| *objects > 200).count() < 2 {
        let out = Folder::new();
        // Both end by themselves, with the buffer of a heap.
        let how = if found.len() % 2 == 0 { &["--heap"][..] } else { &["--for", "heap"] };
        let output = run_or_stuck(&[&["collect", "-p", &pid, "-o", &out.text("out")], how].concat())?;
        let said = text(&output);
        assert!(
            said.contains("is paused while its heap is dumped") && said.contains("while its heap was dumped"),
            "{said}"
        );
        found.push(whole_heap(&out.path("out")));
    }
    Ok(found)
}

#[test]
fn a_recording_ends_at_an_exception_and_at_its_size() {
    for runtime in each_runtime("collect --stop-on") {
        let program = Program::start(runtime, &["throws", "1000", "5"]);
        let folder = Folder::new();
        let (out, pid) = (folder.text("out"), program.id().to_string());
        let output =
            run(&["collect", "-p", &pid, "--for", "gc", "--stop-on", "exception:TimeoutException", "-o", &out]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("stopped by an exception System.TimeoutException"), "{}", text(&output));

        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (small, pid) = (folder.text("small"), program.id().to_string());
        let output = run(&["collect", "-p", &pid, "--for", "gc-survival", "--max-size", "100k", "-o", &small]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("stopped at --max-size"), "{}", text(&output));
    }
}

#[test]
fn events_are_chosen_by_their_ids() {
    for runtime in each_runtime("collect --only-events") {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (pid, chosen) = (program.id().to_string(), format!("{RUNTIME}:1,2"));
        with_time(&[1, 5, 20], |seconds| {
            let folder = Folder::new();
            let how = ["--only-events", &chosen, "--duration", seconds, "-o", &folder.text("out"), "--json"];
            let output = run(&[&["collect", "-p", &pid], &how[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
            let kinds = Table::open(&folder.path("out").join("event_type.parquet"));
            let ids = kinds.numbers("event_id").into_iter().zip(kinds.texts("provider_name"));
            let of_runtime = ids.filter_map(|(id, provider)| (provider == RUNTIME).then_some(id));
            let ids: std::collections::BTreeSet<u64> = of_runtime.collect();
            let is_ignored = text(&output).contains("session_option_ignored");
            assert!(!is_ignored || !runtime.name.starts_with("10."), "{}: {ids:?}", runtime.name);
            assert!(is_ignored || ids.is_subset(&[1, 2].into()), "{}: {ids:?}", runtime.name);
            let enough = if is_ignored { ids.len() > 2 } else { ids.len() == 2 };
            if enough { Ok(()) } else { Err(format!("{}: {ids:?}", runtime.name)) }
        });
    }
}

#[test]
fn counters_are_shown_while_they_are_recorded() {
    for runtime in each_runtime("collect --counters") {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let pid = program.id().to_string();
        with_time(&[4, 10, 30], |seconds| {
            let folder = Folder::new();
            let output = run(&["collect", "-p", &pid, "--counters", "--duration", seconds, "-o", &folder.text("out")]);
            assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = shown.lines().filter(|line| line.contains(" System.Runtime gen-0-gc-count ")).count();
            if lines >= 2 { Ok(()) } else { Err(format!("{}: {shown}", runtime.name)) }
        });
    }
}

#[test]
fn processes_are_listed() {
    for runtime in each_runtime("ps") {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let output = run(&["ps", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let list = summary(&output);
        let all = list.as_array().expect("a list");
        let ours = all.iter().find(|row| row["process_id"] == program.id()).unwrap_or_else(|| panic!("{list}"));
        assert!(
            ours["problem"].is_null() && ours["port"].as_str().is_some_and(|port| port.ends_with("-socket")),
            "{ours}"
        );
        let version = ours["runtime_version"].as_str().unwrap_or_default();
        assert!(version == "3.x" || version.starts_with(runtime.name.split('.').next().unwrap()), "{ours}");
        assert!(ours["command_line"].as_str().is_some_and(|line| line.contains("steps 60000")), "{ours}");
        let table = text(&run(&["ps"]));
        let line = table.lines().find(|line| line.contains(&format!(" {} ", program.id())));
        assert!(table.contains("pid") && line.is_some_and(|line| line.contains(version)), "{table}");
    }
}

/// The runtime refuses to say who it is where its arguments are longer than an answer. The list fits into the terminal all the same. Two signals
/// within milliseconds, as `timeout` sends them to a program and to its group, lose nothing.
#[test]
fn a_process_with_endless_arguments_is_recorded_and_listed() {
    for runtime in each_runtime("long arguments") {
        let long = "a".repeat(44_399);
        let program = Program::start(runtime, &["steps", "60000", "10", &long]);
        let pid = program.id().to_string();
        let listed = tracequet(&["ps"]).env("COLUMNS", "80").output().expect("it runs");
        let listed = text(&listed);
        let widest = listed.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) && listed.contains(&format!(" {pid} ")), "{}: {listed}", runtime.name);
        let folder = Folder::new();
        let (out, keep) = (folder.text("out"), folder.path("kept.nettrace"));
        let collect = ["collect", "-p", &pid, "--for", "gc", "--keep", keep.to_str().expect("a name"), "-o", &out];
        let collect = tracequet(&collect).spawn().expect("it starts");
        wait_for_bytes(&keep, 20_000, "the events");
        let signal = || Command::new("kill").args(["-TERM", &collect.id().to_string()]).status();
        assert!(signal().and(signal()).is_ok());
        let output = ended(collect, "collect of long arguments");
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        let kept = Recording::open(&keep);
        assert!(kept.end.complete && rows(&folder.path("out"), "gc") > 3, "{}", runtime.name);
    }
}

#[test]
fn what_cannot_be_recorded_is_said_in_a_sentence() {
    let folder = Folder::new();
    let out = folder.text("out");
    let ours = std::process::id().to_string();
    let long = folder.text(&"x".repeat(120));
    for (arguments, words) in [
        (vec!["-p", "4000000000", "-o", &out], "there is no process 4000000000; `tracequet ps` lists"),
        (vec!["-p", &ours, "-o", &out], "has no .NET runtime; `tracequet ps` lists"),
        (vec!["-n", "no-such-name", "-o", &out], "no .NET process is called no-such-name"),
        (vec!["--port", &long, "-o", &out], "choose a shorter path"),
        (vec!["-o", &out, "--", "/no/such/program"], "there is no such program"),
        (vec!["-o", &out, "--", "true"], "ended (exit code 0) before a .NET runtime started in it"),
        (vec!["-p", "1", "--for", "nothing", "-o", &out], "gc-survival"),
        (vec!["-p", "1", "--providers", "A:x", "-o", &out], "expected 0x400001"),
        (vec!["-p", "1", "--stop-on", "monday", "-o", &out], "gc.pause>200ms"),
        (vec!["-o", &out], "required"),
        (vec!["-p", "1"], "--output"),
    ] {
        let output = run(&[&["collect"], arguments.as_slice()].concat());
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains(words), "{arguments:?}: {:?} {said}", output.status);
        assert!(!folder.path("out").exists(), "{arguments:?}");
    }
}

/// What dotnet-trace's options stand for.
#[test]
fn hands_that_know_dotnet_trace_find_their_options() {
    let dry = |options: &[&str]| run(&[&["collect", "--dry-run", "-o", "out"], options].concat());
    let said = |options: &[&str]| {
        let output = dry(options);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", text(&output));
        text(&output)
    };
    let heap = said(&["--heap"]);
    assert!(
        heap.contains("buffer 4096 MB, blocks when it is full if the runtime can\n")
            && heap == said(&["--for", "heap"])
            && heap == said(&["--profile", "Heap"])
    );
    assert_eq!(said(&["--profile", "gc-verbose"]).lines().next(), Some(&*format!("{RUNTIME}:0x8003:5")));
    let named = said(&["--clrevents", "gc+exception", "--clreventlevel", "verbose", "--duration", "00:00:05"]);
    assert_eq!(named.lines().next(), Some(&*format!("{RUNTIME}:0x8001:5")));
    assert!(named.contains("rundown on, stacks on"), "{named}");
    assert!(said(&["--profile", "database"]).contains("WriteCommandAfter@Activity1Stop:-OperationId"));
    // Of each request nothing is written at this level.
    assert!(said(&["--counters"]).contains("System.Net.Http:0x8000000000000000:1:EventCounterIntervalSec=1"));
    for (wrong, words) in [
        (&["--for", "gc-verbos"][..], "gc-verbose"),
        (&["--clrevents", "exeption"], "did you mean exception?"),
        (&["--duration", "05:30"], "hh:mm:ss"),
        (&["--clreventlevel", "5"], "--clrevents"),
        (&["--for", "heap", "--only-events", "A:1"], "--only-events"),
    ] {
        let output = dry(wrong);
        assert!(output.status.code() == Some(1) && text(&output).contains(words), "{wrong:?}: {}", text(&output));
    }
}

#[test]
fn a_dry_run_prints_what_would_be_recorded() {
    let output = run(&["collect", "-p", "1", "--for", "gc-survival,exceptions", "--dry-run"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, format!("{RUNTIME}:0x408039:5\nrundown on, stacks on, buffer 256 MB\n"));
    let arguments =
        ["collect", "--providers", "A:10,B", "--no-stack", "--rundown", "off", "--buffer-size", "8", "--dry-run"];
    assert_eq!(text(&run(&arguments)), "A:0x10:4\nB:0xffffffffffffffff:4\nrundown off, stacks off, buffer 8 MB\n");
    let waits = run(&["collect", "--for", "gc", "--when-full", "block", "--dry-run"]);
    assert!(text(&waits).ends_with("buffer 256 MB, blocks when it is full\n"), "{}", text(&waits));
    assert!(!text(&run(&["collect", "--heap", "--when-full", "drop", "--dry-run"])).contains("blocks"));
    // Events by their ids: what ends the recording stays among them.
    let chosen = format!("{RUNTIME}:1,2");
    let arguments = [
        "collect", "--for", "gc", "--only-events", &chosen, "--stop-on", "exception:X", "--rundown", "off", "--dry-run",
    ];
    let said = text(&run(&arguments));
    assert!(said.contains(", only events [1, 2, 80]\n"), "{said}");
    let said = text(&run(&["collect", "--for", "gc", "--except-events", "B:1", "--dry-run"]));
    assert!(said.contains("events of B are chosen, but it is not recorded; add it with --providers"), "{said}");
}

/// What root sees is not what everybody may do.
#[test]
fn a_process_of_another_user_is_said_to_be_one() {
    use std::os::unix::process::CommandExt;

    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    for runtime in each_runtime("another user").iter().filter(|_| is_root) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        // A copy without permission to read, and a folder without permission to write.
        let folder = Folder::new();
        let copy = folder.path("tracequet");
        std::fs::copy(env!("CARGO_BIN_EXE_tracequet"), &copy).expect("a copy");
        for (path, mode) in [(folder.0.path(), 0o777), (copy.as_path(), 0o755)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("permissions");
        }
        let mut command = Command::new(&copy);
        command.args(["collect", "-p", &program.id().to_string(), "-o", &folder.text("out")]).uid(65534).gid(65534);
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = ended(command.spawn().expect("it starts"), "another user");
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains("belongs to root; run this as root"), "{said}");
        let mut ps = Command::new(&copy);
        let output =
            ps.args(["ps"]).uid(65534).gid(65534).current_dir("/").stdin(Stdio::null()).output().expect("it runs");
        assert!(text(&output).contains("(belongs to root)"), "{}", text(&output));
    }
}

#[test]
fn a_process_that_is_stopped_is_not_waited_for_for_ever() {
    for runtime in each_runtime("a stopped process").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let signal = |name: &str| Command::new("kill").args([name, &program.id().to_string()]).status();
        assert!(signal("-STOP").is_ok_and(|status| status.success()));
        let folder = Folder::new();
        let output = run(&["collect", "-p", &program.id().to_string(), "-o", &folder.text("out")]);
        signal("-CONT").ok();
        assert!(
            output.status.code() == Some(1) && text(&output).contains("is the process stopped"),
            "{}",
            text(&output)
        );
    }
}

#[test]
fn two_recordings_of_one_process_tell_the_same() {
    for runtime in each_runtime("two recordings") {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let pid = program.id().to_string();
        let start = |name: &str, more: &[&str]| {
            let out = folder.text(name);
            let arguments = ["collect", "-p", &pid, "--for", "gc-survival", "-o", &out];
            tracequet(&[&arguments, more].concat()).spawn().expect("it starts")
        };
        // The long one begins before the short one, and goes on until that has ended.
        let long = start("long", &["--keep", &folder.text("kept.nettrace")]);
        wait_for_bytes(&folder.path("kept.nettrace"), 20_000, &runtime.name);
        let short = ended(start("short", &["--max-size", "400k"]), "short");
        assert_eq!(short.status.code(), Some(0), "{}: {}", runtime.name, text(&short));
        let kept = std::fs::metadata(folder.path("kept.nettrace")).expect("a file").len();
        wait_for_bytes(&folder.path("kept.nettrace"), kept + 20_000, &runtime.name);
        assert!(Command::new("kill").args(["-INT", &long.id().to_string()]).status().is_ok_and(|s| s.success()));
        let long = ended(long, "long");
        assert_eq!(long.status.code(), Some(0), "{}: {}", runtime.name, text(&long));
        let ranges = |name: &str| {
            let table = |table: &str| Table::open(&folder.path(name).join(format!("{table}.parquet")));
            let (gc, moved) = (table("gc"), table("gc_moved_range"));
            let numbers = gc.numbers("gc_id").into_iter().zip(gc.numbers("gc_number"));
            let numbers: std::collections::BTreeMap<u64, u64> = numbers.collect();
            let mut by_number: std::collections::BTreeMap<u64, Vec<[u64; 3]>> =
                numbers.values().map(|number| (*number, Vec::new())).collect();
            let rows = moved.numbers("old_range_start").into_iter().zip(moved.numbers("new_range_start"));
            let rows = rows.zip(moved.numbers("range_length")).zip(moved.numbers("gc_id"));
            for (((old, new), length), gc) in rows {
                by_number.entry(numbers[&gc]).or_default().push([old, new, length]);
            }
            by_number
        };
        let (long, short) = (ranges("long"), ranges("short"));
        // But for the ends: a collection that ran while a recording began or ended is in one of them in part.
        let inner: Vec<_> = short.iter().skip(1).take(short.len().saturating_sub(2)).collect();
        assert!(inner.len() > 3, "{}: {} collections", runtime.name, short.len());
        for (number, rows) in inner {
            assert_eq!(long.get(number), Some(rows), "{}: collection {number}", runtime.name);
        }
    }
}

#[test]
fn a_full_disk_ends_a_recording_and_leaves_nothing_half() {
    let Some(disk) = SmallDisk::mount() else {
        println!("a full disk: skipped, no file system can be mounted here");
        return;
    };
    for runtime in each_runtime("a full disk") {
        let program = Program::start(runtime, &["steps", "60000", "5"]);
        let folder = Folder::new();
        let (pid, out) = (program.id().to_string(), folder.text("out"));
        let keep = disk.path.join("kept.nettrace").to_string_lossy().into_owned();
        let arguments =
            ["collect", "-p", &pid, "--for", "gc-survival", "--duration", "1000", "--keep", &keep, "-o", &out];
        let output = run(&arguments);
        // What was recorded before is converted, and the reason is said.
        assert_eq!(output.status.code(), Some(2), "{}: {}", runtime.name, text(&output));
        assert!(text(&output).contains("writing the recording: No space left"), "{}", text(&output));
        assert!(rows(&folder.path("out"), "gc") > 0, "{}", runtime.name);
        std::fs::remove_file(&keep).expect("the recording is kept");
    }
}

#[test]
fn a_full_disk_under_the_tables_ends_the_recording() {
    let Some(disk) = SmallDisk::mount() else {
        println!("a full disk under the tables: skipped, no file system can be mounted here");
        return;
    };
    for runtime in each_runtime("a full disk under the tables").iter().take(1) {
        let mut program = Program::start(runtime, &["steps", "20000", "5"]);
        let (pid, out) = (program.id().to_string(), disk.path.join("out"));
        for more in [&[][..], &["--follow=1s"]] {
            // The time is never over: what is not ended by the disk is killed.
            let arguments = ["collect", "-p", &pid, "--for", "all", "--duration", "1000", "-o", &out.to_string_lossy()];
            let folder = Folder::new();
            let mut command = tracequet(&[&arguments, more].concat());
            command.env("TMPDIR", folder.0.path());
            let output = ended(command.spawn().expect("it starts"), "collect to a full disk");
            let said = text(&output);
            assert!(output.status.code() == Some(1) && said.contains("No space left"), "{}: {said}", runtime.name);
            // The recording is kept, up to its end, and that is said.
            let kept =
                std::fs::read_dir(folder.0.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
            let kept: Vec<PathBuf> = kept.collect();
            assert!(kept.len() == 1 && said.contains(&*kept[0].to_string_lossy()), "{kept:?} {said}");
            let again = Recording::open(&kept[0]);
            assert!(again.end.complete && again.problems.is_empty(), "{}: {:?}", runtime.name, again.problems);
            assert!(again.events.len() > 1000, "{}: {} events", runtime.name, again.events.len());
            assert!(
                program.child.try_wait().expect("a child").is_none(),
                "{}: the program was disturbed",
                runtime.name
            );
            // Parts that were published stay, and nothing else.
            let left = std::fs::read_dir(&out).into_iter().flatten().flatten();
            let hidden = left.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count();
            assert!(hidden == 0 && (!more.is_empty() || !out.exists()), "{}", runtime.name);
        }
    }
}

/// As after a process that was killed and another that got its id, while that one has not opened its port yet.
#[test]
fn a_socket_that_nobody_listens_at_is_said_to_be_one() {
    for runtime in each_runtime("a socket that was left behind") {
        let folder = Folder::new();
        let mut command = command(runtime, &["steps", "60000", "10"]);
        command.env("TMPDIR", folder.0.path());
        let program = Program::start_as(command, runtime);
        let mut names =
            std::fs::read_dir(folder.0.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
        let socket = names.find(|path| path.to_string_lossy().ends_with("-socket")).expect("a socket");
        std::fs::remove_file(&socket).expect("removed");
        drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
        let output = run(&["collect", "-p", &program.id().to_string(), "-o", &folder.text("out")]);
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains("no process listens at"), "{said}");
        assert!(said.contains("remove the file if the process is gone") && !folder.path("out").exists(), "{said}");
    }
}

/// A file system of half a megabyte.
pub struct SmallDisk {
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    pub fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().ok()?;
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(&path).stderr(Stdio::null());
        mount.status().ok().filter(|status| status.success())?;
        Some(SmallDisk { path, _folder: folder })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.path).status().ok();
    }
}
