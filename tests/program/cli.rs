//! The program as a person types it: what it prints where, and with which exit code it ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::callbacks::Making;
use crate::support::dataset::Table;
use crate::support::program::{Run, command, run};

const GC_CHURN: &str = "samples/gc-churn.nettrace";

fn run_with_input(arguments: &[&str], input: &[u8]) -> Run {
    let mut command = command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program that refuses its input closes the pipe early.
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().unwrap().into()
    })
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|e| panic!("{e}: {}", run.out))
}

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut traces: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "nettrace")).collect();
    traces.sort();
    assert!(traces.len() >= 9);
    traces
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)).unwrap()
}

/// Events of the kind with this name.
fn events_of(inspection: &Value, name: &str) -> u64 {
    let kinds = inspection["event_types"].as_array().unwrap();
    let found = kinds.iter().filter(|kind| kind["event_name"] == name);
    found.map(|kind| kind["event_count"].as_u64().unwrap()).sum()
}

#[test]
fn help_and_version_are_results() {
    for arguments in [&["--help"][..], &["-h"], &["help"], &["help", "inspect"]] {
        let run = run(arguments);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(run.out.contains("Usage: tracequet"), "{}", run.out);
    }
    for name in ["convert", "collect", "inspect", "schema"] {
        for flag in ["-h", "--help"] {
            let run = run(&[name, flag]);
            assert_eq!(run.code, Some(0));
            assert!(run.out.contains(&format!("Usage: tracequet {name}")), "{}", run.out);
            assert!(run.out.contains(&format!("Examples:\n  tracequet {name} ")), "{}", run.out);
        }
    }
    for arguments in [&["--help"][..], &["convert", "--help"], &["inspect", "--help"]] {
        let text = run(arguments).out;
        assert!(text.contains("\nExit codes:\n  0 ") && text.contains("\n  1 ") && text.contains("\n  2 "), "{text}");
    }
    assert_eq!(run(&["--version"]).out, format!("tracequet {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_errors_end_with_one() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage: tracequet <COMMAND>"),
        (&["explode"], "unrecognized subcommand 'explode'"),
        (&["inspect"], "<FILE>"),
        (&["inspect", "a", "b"], "unexpected argument 'b'"),
        (&["inspect", GC_CHURN, "--jsno"], "a similar argument exists: '--json'"),
        (&["convert", "a.nettrace"], "--output <OUT>"),
        (&["convert", "-o", "x"], "<IN>"),
        (&["convert", "a", "-o", "x", "--format", "csv"], "[possible values: parquet, arrow]"),
        (&["convert", "a", "-o", "x", "--layout", "flat"], "[possible values: auto, hive]"),
        (&["convert", "a", "-o", "x", "--compression", "zstd:23"], "expected 1 to 22"),
        (&["convert", "a", "-o", "x", "--compression", "gzip"], "expected zstd, zstd:LEVEL (1 to 22), snappy or none"),
        (
            &["convert", "a", "-o", "x", "--format", "arrow", "--compression", "snappy"],
            "cannot be compressed with snappy",
        ),
        (&["convert", "a", "-o", "x", "--from", "2 minutes"], "expected seconds (12.5) or numbers with units"),
        (&["convert", "a", "-o", "x", "--from", "1m", "--to", "60"], "expected --from before --to"),
        (&["convert", "a", "-o", "x", "--tables", "gc,,type"], "a value is required for '--tables"),
        (&["collect", "-o", "x"], "<--etw|--process-id"),
        (&["collect", "--etw"], "--output <OUT>"),
        (&["collect", "--etw", "-o", "x", "--keywords", "all"], "expected a number such as 0x400001"),
        (&["collect", "--etw", "-o", "x", "--providers", "My-Source:1:0"], "a session of ETW has the levels 1 to 5"),
        (&["collect", "--etw", "-o", "x", "--providers", "My-Source:1:loud"], "level 'loud': expected 0 to 5"),
        (&["convert", "-", "-", "-o", "x"], "standard input (-) can be read only once"),
        (&["inspect", GC_CHURN, "--manifest", "Cargo.toml"], "Cargo.toml:1:1: "),
        (&["convert", GC_CHURN, "-o", "x", "--manifest", "Cargo.toml"], "Cargo.toml:1:1: "),
        (&["convert", "a", "-o", "-"], "tables cannot be written to standard output"),
        (&["schema", "--format", "xml"], "[possible values: text, json, markdown, csv]"),
        (&["schema", "no_such_table"], "no table 'no_such_table'"),
        (&["schema", "--events", "No-Such-Provider"], "expected one of: Microsoft-Windows-DotNETRuntime,"),
        (&["generate", "tcsh"], "[possible values: man, bash,"),
        (&["generate", "man", "explode"], "no command 'explode'"),
    ];
    for (arguments, message) in cases {
        let run = run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{arguments:?}: {}", run.err);
        assert!(run.err.contains(message), "{arguments:?}: {}", run.err);
    }
}

#[cfg(not(windows))]
#[test]
fn where_there_is_no_etw_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let run = run(&["collect", "--etw", "-o", out.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str(), run.err.lines().count()), (Some(1), "", 1), "{}", run.err);
    assert!(run.err.contains("on Windows only") && run.err.contains("tracequet convert app.etl"), "{}", run.err);
    assert!(!out.exists());
}

#[test]
fn every_sample_is_inspected_as_text_and_as_json() {
    for path in samples() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let path = path.to_str().unwrap();
        let whole = name != "exit-early.nettrace";
        let code = Some(if whole { 0 } else { 2 });

        let text = run(&["inspect", path]);
        assert_eq!((text.code, text.err.as_str()), (code, ""), "{name}");
        for section in ["\n  format     nettrace 4, 64-bit\n", "\nProviders (", "\nKinds of events (", "\nThreads ("] {
            assert!(text.out.contains(section), "{name}: {}", text.out);
        }
        let losses = if whole { "\nLosses: none, the recording is complete\n" } else { "\nLOSSES\n  no_end_mark: " };
        assert!(text.out.contains(losses), "{name}: {}", text.out);

        let inspected = run(&["inspect", "--json", path]);
        assert_eq!(inspected.code, code, "{name}");
        let inspection = json(&inspected);
        assert_eq!(inspection["complete"], whole);
        assert_eq!(inspection["has_losses"], !whole);
        assert_eq!(inspection["bytes"], std::fs::metadata(path).unwrap().len());
        // The event with the command line is written at the end of a recording.
        assert_eq!(inspection["command_line"].as_str().is_some_and(|line| line.contains("Churn.dll")), whole, "{name}");
        let events = inspection["event_count"].as_u64().unwrap();
        for list in ["event_types", "providers", "threads"] {
            let counts = inspection[list].as_array().unwrap().iter().map(|row| row["event_count"].as_u64().unwrap());
            assert_eq!(counts.sum::<u64>(), events, "{name}: {list}");
        }
        let times = ["first_ns", "last_ns", "duration_ns"].map(|key| inspection[key].as_i64().unwrap());
        assert!(0 <= times[0] && times[0] < times[1] && times[1] - times[0] == times[2], "{name}: {times:?}");
    }
}

/// The numbers of `samples/README.md`.
#[test]
fn counts_of_samples_are_those_of_other_readers() {
    const SURVIVING: &str = "GCBulkSurvivingObjectRanges";
    const MOVED: &str = "GCBulkMovedObjectRanges";
    type Expected = (&'static str, usize, &'static [(&'static str, u64)]);
    let expected: &[Expected] = &[
        ("gc-churn", 19, &[(SURVIVING, 11), (MOVED, 14), ("GCGenerationRange", 279), ("SetGCHandle", 177)]),
        ("gc-churn-3.1", 19, &[(SURVIVING, 8), (MOVED, 14), ("GCGenerationRange", 152), ("DestroyGCHandle", 68)]),
        ("server-gc", 13, &[(SURVIVING, 16), (MOVED, 24), ("GCGenerationRange", 284), ("GCJoin", 1025)]),
        ("heap", 1, &[("GCStart", 1)]),
        ("heap-10", 1, &[("GCStart", 1)]),
        ("stacks", 0, &[("ThreadSample", 220)]),
    ];
    for (name, collections, kinds) in expected {
        let inspection = json(&run(&["inspect", "--json", &format!("samples/{name}.nettrace")]));
        for (kind, events) in *kinds {
            assert_eq!(events_of(&inspection, kind), *events, "{name}: {kind}");
        }
        let list = inspection["collections"].as_array().unwrap();
        assert_eq!((list.len(), &inspection["collection_count"]), (*collections, &Value::from(*collections)), "{name}");
        assert!(list.iter().all(|gc| gc["duration_ns"].as_i64().is_some_and(|ns| ns > 0)), "{name}: {list:?}");
        assert!(list.iter().all(|gc| gc["reason_name"].is_string() && gc["kind"].is_string()), "{name}: {list:?}");
        assert!(list.is_sorted_by_key(|gc| gc["start_ns"].as_i64()), "{name}");
    }
    let inspection = json(&run(&["inspect", "--json", GC_CHURN]));
    let background = inspection["collections"].as_array().unwrap().iter().filter(|gc| gc["kind"] == "background");
    assert_eq!(background.count(), 2);
    let inspection = json(&run(&["inspect", "--json", "samples/events.nettrace"]));
    let own =
        inspection["providers"].as_array().unwrap().iter().filter(|provider| {
            provider["provider_name"].as_str().is_some_and(|name| name.starts_with("Tracequet-Churn"))
        });
    assert_eq!(own.map(|provider| provider["event_count"].as_u64().unwrap()).sum::<u64>(), 482);
}

#[test]
fn all_lists_what_is_left_out_otherwise() {
    let (short, long) = (run(&["inspect", GC_CHURN]).out, run(&["inspect", "--all", GC_CHURN]).out);
    assert!(short.contains("\nKinds of events (20 of 30, --all shows the others)\n"), "{short}");
    assert!(long.contains("\nKinds of events (30)\n"), "{long}");
    assert_eq!(long.lines().count(), short.lines().count() + 10);
}

#[test]
fn a_cut_recording_is_read_up_to_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.nettrace");
    std::fs::write(&cut, &sample("server-gc.nettrace")[..150_000]).unwrap();
    let run = run(&["inspect", cut.to_str().unwrap()]);
    assert_eq!((run.code, run.err.as_str()), (Some(2), ""));
    let (_, losses) = run.out.split_once("\nLOSSES\n").expect("losses");
    assert!(losses.contains("  truncated: at byte 150000: the file ends inside"), "{losses}");
    assert!(run.out.contains("\nCollections ("), "{}", run.out);
}

#[test]
fn what_is_no_recording_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut bad_name = sample("events.nettrace");
    bad_name[40] ^= 0xFF;
    let missing = folder.path().join("missing");
    let cases = [
        (
            file("garbage", b"\x7fELF and so on, no recording"),
            "at byte 0: a program or a library, expected a recording",
        ),
        (file("empty", b""), "at byte 0: 0 bytes in all, expected an EventPipe recording"),
        (file("short", b"Nettr"), "at byte 0: 5 bytes in all, expected an EventPipe recording"),
        (file("magic", b"Nettrace\x14\0\0\0!FastSerialization.2"), "a damaged stream header"),
        (file("header", &bad_name), "expected"),
        (missing.to_str().unwrap().to_owned(), "missing: "),
        (folder.path().to_str().unwrap().to_owned(), "is a directory, expected a recording"),
    ];
    for (path, message) in &cases {
        let run = run(&["inspect", path]);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{path}");
        assert!(run.err.starts_with(&format!("tracequet: {path}: ")) && run.err.contains(message), "{}", run.err);
        assert!(!run.err.contains("backtrace"), "{}", run.err);
    }
    let garbage = run(&["inspect", &cases[0].0]).err;
    assert_eq!(
        garbage.lines().nth(1),
        Some("         0  7f 45 4c 46 20 61 6e 64 20 73 6f 20 6f 6e 2c 20  .ELF.and.so.on,.")
    );
    assert_eq!(garbage.lines().nth(2), Some("            ^"));
    // A pipe cannot be looked at again.
    let piped = run_with_input(&["inspect", "-"], b"no recording");
    assert_eq!(piped.code, Some(1));
    assert_eq!(piped.err.lines().count(), 1, "{}", piped.err);
}

#[test]
fn standard_input_is_read_like_a_file() {
    let from_file = run(&["inspect", "--all", GC_CHURN]);
    let from_pipe = run_with_input(&["inspect", "--all", "-"], &sample("gc-churn.nettrace"));
    assert_eq!((from_pipe.code, from_pipe.err.as_str()), (Some(0), ""));
    assert_eq!(from_pipe.out, from_file.out.replacen(GC_CHURN, "-", 1));
}

#[test]
fn packed_recordings_are_read_like_plain_ones() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&sample("gc-churn.nettrace")).unwrap();
    let packed = run_with_input(&["inspect", "--json", "-"], &encoder.finish().unwrap());
    assert_eq!(json(&packed)["event_count"], json(&run(&["inspect", "--json", GC_CHURN]))["event_count"]);
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for (shell, mark) in [
        ("bash", "_tracequet()"),
        ("zsh", "#compdef tracequet"),
        ("fish", "complete -c tracequet"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let run = run(&["generate", shell]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{shell}");
        assert!(run.out.contains(mark) && run.out.contains("overwrite"), "{shell}: {}", run.out);
    }
    let page = run(&["generate", "man"]);
    assert!(page.out.contains(".TH tracequet 1") && page.out.contains("tracequet\\-convert(1)"), "{}", page.out);
    let page = run(&["generate", "man", "convert"]);
    assert!(page.out.contains(".TH tracequet-convert 1") && page.out.contains("overwrite"), "{}", page.out);
    assert!(!run(&["--help"]).out.contains("generate"));
}

#[test]
fn layouts_of_events_are_printed_in_every_format() {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let text = run(&["schema", "--events", RUNTIME]);
    assert_eq!(text.code, Some(0));
    let start = "\n1 GCStart version 2\nLevel 4, keywords 0x1.\n  field                 type  values\n  Count                 u32\n";
    let reason = "  Reason                u32   GCReasonMap\n";
    assert!(text.out.contains(start) && text.out.contains(reason), "{}", text.out);
    let markdown = run(&["schema", "--events", RUNTIME, "--format", "markdown"]);
    assert!(
        markdown.out.contains("\n## 1 GCStart version 2\n")
            && markdown.out.contains("| `Reason` | `u32` | GCReasonMap |")
    );
    let events = json(&run(&["schema", "--events", &RUNTIME.to_lowercase(), "--format", "json"]));
    let found = events["events"].as_array().unwrap().iter().find(|e| e["name"] == "GCStart" && e["version"] == 2);
    assert_eq!(found.unwrap()["fields"][2]["map"], "GCReasonMap");
    // The maps that fields name are printed behind the events.
    assert!(text.out.contains("\nGCReasonMap\n  value  name\n      0  AllocSmall\n      1  Induced\n"), "{}", text.out);
    assert!(text.out.contains("\nExceptionThrownFlagsMap\n   bit  name\n   0x1  HasInnerException\n"));
    assert!(markdown.out.contains("\n## GCReasonMap\n\n| value | name |\n|---:|---|\n| 0 | AllocSmall |\n"));
    let reasons = &events["maps"]["GCReasonMap"];
    assert_eq!((&reasons["kind"], &reasons["values"][4]["text"]), (&"values".into(), &"AllocLarge".into()));
    let providers = json(&run(&["schema", "--events", "--format", "json"]));
    assert!(providers.as_array().unwrap().iter().any(|p| p["provider"] == RUNTIME));
}

#[test]
fn tables_are_printed_in_every_format() {
    let text = run(&["schema", "gc_surviving_range"]);
    assert!(text.out.starts_with("gc_surviving_range\n") && text.out.contains("\n  range_start "), "{}", text.out);
    let markdown = run(&["schema", "--format", "markdown"]).out;
    assert!(markdown.starts_with("## trace\n") && markdown.contains("\n## gc\n"), "{markdown}");
    let tables = json(&run(&["schema", "--format", "json"]));
    assert!(tables.as_array().unwrap().len() > 20);
    for table in tables.as_array().unwrap() {
        let columns = table["columns"].as_array().unwrap();
        assert!(!columns.is_empty(), "{table}");
        assert!(columns.iter().all(|column| column["doc"].as_str().is_some_and(|doc| !doc.is_empty())), "{table}");
    }
}

#[test]
fn a_conversion_tells_people_on_stderr_and_programs_on_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();

    let reported = run(&["convert", GC_CHURN, "-o", out]);
    assert_eq!((reported.code, reported.out.as_str()), (Some(0), ""), "{}", reported.err);
    assert!(
        reported.err.starts_with("samples/gc-churn.nettrace: 257 kB, 1,508 events of 30 kinds in 165 ms\n"),
        "{}",
        reported.err
    );
    assert!(
        reported.err.contains("\n  19 collections\n") && reported.err.contains(&format!("\n{out}: ")),
        "{}",
        reported.err
    );

    let refused = run(&["convert", GC_CHURN, "-o", out]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    assert!(refused.err.starts_with("tracequet: ") && refused.err.contains("exists"), "{}", refused.err);

    let silent = run(&["convert", GC_CHURN, "-o", out, "--overwrite", "--quiet"]);
    assert_eq!((silent.code, silent.out.as_str(), silent.err.as_str()), (Some(0), "", ""));

    let counted = run(&["convert", "samples/exit-early.nettrace", "-o", out, "--overwrite", "--json"]);
    assert_eq!((counted.code, counted.err.as_str()), (Some(2), ""));
    let summary = json(&counted);
    assert_eq!((&summary["has_losses"], &summary["inputs"][0]["complete"]), (&true.into(), &false.into()));
    let gc = summary["tables"].as_array().unwrap().iter().find(|table| table["name"] == "gc").unwrap();
    assert_eq!(gc["rows"], summary["inputs"][0]["collection_count"]);
}

#[test]
fn a_damaged_recording_of_callbacks_ends_with_two_and_says_what_and_where() {
    let bounds = [[0, 0x1000, 0x1000], [1, 0x2000, 0x1000]];
    let made = |end: &dyn Fn(&mut Making) -> Vec<u8>| {
        let mut making = Making::new();
        making.suspend(1).started(0, &bounds).surviving(0, 2, &[[0x1000, 0x100], [0x1800, 0x40]]);
        end(making.finished(&bounds).resume())
    };
    let whole = made(&|making| making.bytes());
    let mut flipped = whole.clone();
    let place = whole.len() / 2;
    flipped[place] ^= 0x40;
    let no_header = [b".corprof", &whole[8..40]].concat();
    let folder = tempfile::tempdir().unwrap();
    // What is wrong, the bytes, the exit code, and the code in the table of diagnostics.
    let cases: [(&str, &[u8], i32, &str); 5] = [
        ("whole", &whole, 0, ""),
        ("no end mark", &made(&|making| making.cut()), 2, "no_end_mark"),
        ("cut", &whole[..whole.len() - 70], 2, "cut_"),
        ("flipped", &flipped, 2, "damaged_"),
        ("cut in its header", &no_header, 1, ""),
    ];
    for (what, bytes, code, diagnostic) in cases {
        let (recording, out) = (folder.path().join(format!("{what}.corprof")), folder.path().join(what));
        std::fs::write(&recording, bytes).unwrap();
        let (recording, place) = (recording.to_str().unwrap(), out.to_str().unwrap());
        let converted = run(&["convert", recording, "-o", place]);
        assert_eq!(converted.code, Some(code), "{what}: {}", converted.err);
        let inspected = run(&["inspect", recording]);
        assert_eq!(inspected.code, Some(code), "{what}: {} {}", inspected.out, inspected.err);
        assert_eq!(out.exists(), code != 1, "{what}: a dataset is there when something could be read");
        if code == 2 {
            let found = Table::open(&out.join("diagnostic.parquet")).texts("code");
            assert!(found.iter().any(|c| c.starts_with(diagnostic)), "{what}: {found:?}");
            assert!(Table::open(&out.join("gc.parquet")).rows() == 1, "{what}: the collection is kept");
        }
    }
}
