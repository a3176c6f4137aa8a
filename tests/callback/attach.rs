//! The recorder, attached to a program that runs already.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::agree::{agree_in_part, complete};
use crate::support::dual::{Dual, Runtime, built, each_runtime, raw};
use crate::support::patience::comes;

/// Runs `tracequet-attach` until the process has a diagnostics port, which opens a moment after its start.
fn attach(process: u32, settings: &[&str]) -> (Option<i32>, String) {
    let program = built("tracequet-attach").expect("tracequet-attach is built with the recorder");
    let mut said = (None, String::new());
    comes(Duration::from_secs(10), || {
        let mut command = Command::new(&program);
        let output = command.arg(process.to_string()).args(settings).stdin(Stdio::null()).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let early = ["no diagnostics port", "no process listens", "has no .NET runtime"];
        let is_early = early.iter().any(|reason| errors.contains(reason));
        said = (output.status.code(), errors);
        !is_early
    });
    said
}

/// Runs the program with EventPipe alone, and attaches the recorder after a while, in the midst of its collections.
fn attached(runtime: &Runtime, settings: &[&str], after: Duration, steps: &str) -> Result<Dual, String> {
    let off = [("CORECLR_ENABLE_PROFILING", "0")];
    let dual = runtime.start(&[("gcConcurrent", "0")], &off, &["steps", steps, "50"]);
    std::thread::sleep(after);
    let output = format!("TRACEQUET_OUTPUT={}", dual.recording().display());
    let (code, errors) = attach(dual.child.id(), &[settings, &[&output]].concat());
    let dual = dual.ended();
    if code == Some(0) && complete(&dual.callbacks()).len() > 5 { Ok(dual) } else { Err(format!("{code:?} {errors}")) }
}

/// On a machine that is busy the program may not have begun after half a second, or may be near its end when the
/// recorder comes: then it is waited for longer, and the program is longer. `is_it` says whether an attempt will do.
fn attached_in_time(runtime: &Runtime, settings: &[&str], is_it: impl Fn(&Dual) -> bool) -> Dual {
    let attempts = [(500, "60"), (1000, "120"), (2000, "400")];
    let mut failed = Vec::new();
    for (after, steps) in attempts {
        match attached(runtime, settings, Duration::from_millis(after), steps) {
            Ok(dual) if is_it(&dual) => return dual,
            Ok(_) => failed.push(format!("no collection before the attachment after {after} ms")),
            Err(error) => failed.push(error),
        }
    }
    panic!("{}: {failed:?}", runtime.name);
}

#[test]
fn an_attached_recorder_tells_every_collection_from_then_on() {
    for runtime in each_runtime("attach") {
        let name = format!("attached on {}", runtime.name);
        let is_before = |dual: &Dual| complete(&dual.events()).len() > complete(&dual.callbacks()).len();
        let dual = attached_in_time(runtime, &[], is_before);
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
        // What existed before is reported at the attachment.
        assert!(raw.count("Module") >= 2 && raw.count("ThreadAssignedToOSThread") >= 2, "{name}: {:?}", raw.kinds);
        // The process is older than the recording.
        let age = raw.header.start_utc_ns - raw.header.process_start_utc_ns;
        assert!((400_000_000..300_000_000_000).contains(&age), "{name}: {age} ns");
    }
}

#[test]
fn settings_come_with_the_attachment() {
    for runtime in each_runtime("attach with settings") {
        let settings = ["TRACEQUET_RANGES=both", "TRACEQUET_ROOTS=0", "TRACEQUET_NAMES=0"];
        let dual = attached_in_time(runtime, &settings, |_| true);
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
        // A process has one profiler that records collections. It has to last until it is asked.
        let asked = ["20", "100", "400"].map(|steps| {
            move || {
                let dual = runtime.start(&[], &[], &["steps", steps, "50"]);
                let (code, errors) = attach(dual.child.id(), &["TRACEQUET_OUTPUT=/dev/null"]);
                assert_eq!(code, Some(1), "{}: {errors}", runtime.name);
                errors.contains("has a profiler already").then_some(dual).ok_or(errors)
            }
        });
        let asked = asked.iter().map(|ask| ask()).find(|asked| asked.is_ok());
        let Some(Ok(dual)) = asked else { panic!("{}: a second profiler is not refused", runtime.name) };
        let dual = dual.ended();
        assert!(dual.callbacks().end.complete && !complete(&dual.events()).is_empty(), "{}", runtime.name);
    }
}
