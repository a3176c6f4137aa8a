//! The recorder, attached to a program that runs already.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::agree::{agree_in_part, complete};
use crate::support::dual::{Dual, Runtime, built, each_runtime, raw};

/// Runs `tracequet-attach` until the process has a diagnostics port, which opens a moment after its start.
fn attach(process: u32, settings: &[&str]) -> (Option<i32>, String) {
    let program = built("tracequet-attach").expect("tracequet-attach is built with the recorder");
    let begin = Instant::now();
    loop {
        let mut command = Command::new(&program);
        let output = command.arg(process.to_string()).args(settings).stdin(Stdio::null()).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let early = ["no diagnostics port", "nobody listens", "has no .NET runtime"];
        let early = early.iter().any(|reason| errors.contains(reason));
        if !early || begin.elapsed() > Duration::from_secs(10) {
            return (output.status.code(), errors);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs the program with EventPipe alone, and attaches the recorder after a while, in the midst of its collections.
fn attached(runtime: &Runtime, settings: &[&str], after: Duration) -> Dual {
    let off = [("CORECLR_ENABLE_PROFILING", "0")];
    let dual = runtime.start(&[("gcConcurrent", "0")], &off, &["steps", "60", "50"]);
    std::thread::sleep(after);
    let output = format!("TRACEQUET_OUTPUT={}", dual.recording().display());
    let (code, errors) = attach(dual.child.id(), &[settings, &[&output]].concat());
    assert_eq!(code, Some(0), "{}: {errors}", runtime.name);
    dual.ended()
}

#[test]
fn an_attached_recorder_tells_every_collection_from_then_on() {
    for runtime in each_runtime("attach") {
        let name = format!("attached on {}", runtime.name);
        // On a machine that is busy the program may not have begun after half a second.
        let attempts = [500, 1000, 1800].map(Duration::from_millis);
        let dual = attempts
            .into_iter()
            .map(|after| attached(runtime, &[], after))
            .find(|dual| complete(&dual.events()).len() > complete(&dual.callbacks()).len());
        let dual = dual.expect("a collection before the attachment");
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let (agreeing, first) = agree_in_part(&name, &callbacks, &theirs);
        // From the first on, all to the end.
        assert_eq!(complete(&theirs).iter().filter(|c| c.gc_id >= first).count(), agreeing, "{name}");
        assert!(agreeing >= 5, "{name}: {agreeing} collections");
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
        let settings = ["TRACEQUET_RANGES=both", "TRACEQUET_ROOTS=0", "TRACEQUET_NAMES=0"];
        let dual = attached(runtime, &settings, Duration::from_millis(500));
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
    assert!(code == Some(1) && errors.contains("has no .NET runtime"), "{code:?} {errors}");
    let (code, errors) = run(&[]);
    assert!(code == Some(2) && errors.starts_with("usage: "), "{code:?} {errors}");
    for runtime in each_runtime("a second profiler") {
        // A process has one profiler that records collections.
        let dual = runtime.start(&[], &[], &["steps", "20", "50"]);
        let (code, errors) = attach(dual.child.id(), &["TRACEQUET_OUTPUT=/dev/null"]);
        assert!(code == Some(1) && errors.contains("has a profiler already"), "{}: {code:?} {errors}", runtime.name);
        let dual = dual.ended();
        assert!(dual.callbacks().end.complete && !complete(&dual.events()).is_empty(), "{}", runtime.name);
    }
}
