//! The recorder, attached to a program that runs already.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::agree::{agree_in_part, complete};
use crate::support::dual::{Dual, Runtime, built, each_runtime, events, raw};

/// Runs the program with EventPipe alone, and attaches the recorder in the midst of its collections.
fn attached(runtime: &Runtime, settings: &[&str]) -> Dual {
    let off = [("CORECLR_ENABLE_PROFILING", "0")];
    let dual = runtime.start(&[("gcConcurrent", "0")], &off, &["steps", "40", "40"]);
    let program = built("tracequet-attach").expect("tracequet-attach is built with the recorder");
    let begin = Instant::now();
    // The port opens a moment after the start; then some collections go by unseen.
    std::thread::sleep(Duration::from_millis(500));
    loop {
        let mut command = Command::new(&program);
        command.arg(dual.child.id().to_string()).args(settings).stdin(Stdio::null());
        command.arg(format!("TRACEQUET_OUTPUT={}", dual.recording().display()));
        let output = command.output().expect("tracequet-attach runs");
        if output.status.success() {
            return dual.ended();
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let early = errors.contains("no diagnostics port") || errors.contains("refused");
        assert!(early && begin.elapsed() < Duration::from_secs(10), "{}: {errors}", runtime.name);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_attached_recorder_tells_every_collection_from_then_on() {
    for runtime in each_runtime("attach") {
        let dual = attached(runtime, &[]);
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let name = format!("attached on {}", runtime.name);
        let (agreeing, first) = agree_in_part(&name, &callbacks, &theirs);
        // From the first on, all to the end.
        let of_events = complete(&theirs);
        assert_eq!(of_events.iter().filter(|c| c.gc_id >= first).count(), agreeing, "{name}");
        assert!(agreeing >= 5 && agreeing < of_events.len(), "{name}: {agreeing} of {}", of_events.len());
        assert!(callbacks.end.complete && callbacks.end.dropped_events == 0, "{name}: {:?}", callbacks.problems);

        let raw = raw(&dual.recording());
        assert!(raw.header.attached && raw.count("ProfilerAttachComplete") == 1, "{name}");
        // Nothing was granted that was not asked for, and ranges and suspensions were.
        let ([asked, _], [granted, _]) = (raw.header.asked, raw.header.granted);
        assert!(granted & !asked == 0 && granted & 0x1_0080 == 0x1_0080, "{name}: {asked:#x} {granted:#x}");
        // What was there before is told at the attachment.
        assert!(raw.count("Module") >= 2 && raw.count("ThreadAssignedToOSThread") >= 2, "{name}: {:?}", raw.kinds);
        // The process is older than the recording.
        let age = raw.header.start_utc_ns - raw.header.process_start_utc_ns;
        assert!((400_000_000..60_000_000_000).contains(&age), "{name}: {age} ns");
    }
}

#[test]
fn settings_come_with_the_attachment() {
    for runtime in each_runtime("attach with settings") {
        let dual = attached(runtime, &["TRACEQUET_RANGES=both", "TRACEQUET_ROOTS=0", "TRACEQUET_NAMES=0"]);
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let name = format!("attached with settings on {}", runtime.name);
        assert!(agree_in_part(&name, &callbacks, &theirs).0 >= 5);
        assert!(callbacks.codes().contains(&"paired_callbacks"), "{name}: {:?}", callbacks.codes());
        assert!(callbacks.roots.is_empty() && callbacks.types.is_empty(), "{name}");
    }
}

#[test]
fn what_cannot_be_attached_to_is_said() {
    let Some(program) = built("tracequet-attach") else { return };
    let run = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).stdin(Stdio::null()).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ourselves = std::process::id().to_string();
    let (code, errors) = run(&[&ourselves]);
    assert!(code == Some(1) && errors.contains("is it a .NET process?"), "{code:?} {errors}");
    let (code, errors) = run(&[]);
    assert!(code == Some(2) && errors.starts_with("usage: "), "{code:?} {errors}");
    for runtime in each_runtime("a second profiler") {
        // A process has one profiler that records collections.
        let dual = runtime.start(&[], &[], &["steps", "20", "50"]);
        std::thread::sleep(Duration::from_millis(700));
        let (code, errors) = run(&[&dual.child.id().to_string(), "TRACEQUET_OUTPUT=/dev/null"]);
        assert_eq!(code, Some(1), "{}: {errors}", runtime.name);
        let dual = dual.ended();
        assert!(dual.callbacks().end.complete, "{}", runtime.name);
        assert!(Path::new(&dual.recording()).is_file() && !complete(&events(&dual.events_path())).is_empty());
    }
}
