//! How the program ends when not all can be read, or not all can be printed.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::dataset::Table;
use crate::support::program::{Run, command, run};

const GC_CHURN: &str = "samples/gc-churn.nettrace";

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for arguments in [
        &["inspect", GC_CHURN][..],
        &["inspect", GC_CHURN, "--json"],
        &["schema", "--events", "Microsoft-Windows-DotNETRuntime"],
        &["generate", "zsh"],
        &["--help"],
        &["--version"],
    ] {
        let output = command(arguments).stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
        let run = Run::from(output.wait_with_output().unwrap());
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // Losses stay losses, even when the report is not read.
    let folder = tempfile::tempdir().unwrap();
    let lossy = "samples/exit-early.nettrace";
    let (out, quiet) = (folder.path().join("out"), folder.path().join("quiet"));
    for arguments in [
        &["inspect", lossy][..],
        &["inspect", lossy, "--json"],
        &["convert", lossy, "-o", out.to_str().unwrap(), "--json"],
        &["convert", lossy, "-o", quiet.to_str().unwrap(), "--quiet"],
    ] {
        let output = command(arguments).stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
        let run = Run::from(output.wait_with_output().unwrap());
        assert_eq!((run.code, run.err.as_str()), (Some(2), ""), "{arguments:?}");
    }
    // An error stays an error, even when its message is not read.
    for arguments in [&["inspect", "missing"][..], &["inspect"]] {
        assert_eq!(command(arguments).stderr(closed()).status().unwrap().code(), Some(1), "{arguments:?}");
    }
}

/// A recording that is damaged before its end mark is not complete, whoever is asked.
#[test]
fn commands_manifests_and_tables_say_the_same_of_a_damaged_recording() {
    let folder = tempfile::tempdir().unwrap();
    let [damaged, out] = ["damaged.nettrace", "out"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let mut bytes = std::fs::read(GC_CHURN).unwrap();
    bytes[100_000..200_000].fill(0xFF);
    std::fs::write(&damaged, bytes).unwrap();
    for (recording, is_whole) in [(GC_CHURN, true), (damaged.as_str(), false)] {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let looked = json(&run(&["inspect", "--json", recording]).out);
        let made = json(&run(&["convert", "--json", "--overwrite", "--tables", "gc,trace", "-o", &out, recording]).out);
        let manifest = json(&std::fs::read_to_string(format!("{out}/manifest.json")).unwrap());
        let mark = Table::open(&Path::new(&out).join("trace.parquet")).bools("complete");
        let reported = [&looked["complete"], &made["inputs"][0]["complete"], &manifest["inputs"][0]["complete"]];
        assert_eq!((reported, mark), ([&Value::Bool(is_whole); 3], vec![is_whole]), "{recording}");
    }
}

/// One file of many that is empty, no recording, or not there costs itself.
#[test]
fn an_unreadable_input_among_many_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, empty, text, missing) = (at("out"), at("empty.nettrace"), at("text.nettrace"), at("missing.nettrace"));
    std::fs::write(&empty, b"").unwrap();
    std::fs::write(&text, b"this is no recording at all, whatever its name says").unwrap();
    let all = run(&["convert", &empty, GC_CHURN, &text, &missing, "-o", &out, "--json"]);
    assert_eq!(all.code, Some(2), "{}", all.err);
    let said: Vec<&str> = all.err.lines().filter(|line| line.contains("it is left out")).collect();
    assert_eq!(said.len(), 3, "{}", all.err);
    assert!([&empty, &text, &missing].iter().zip(&said).all(|(path, line)| line.contains(path.as_str())), "{said:?}");
    let lines: Vec<Value> = all.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<&str> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "converted", "failed", "failed", "summary"], "{}", all.out);
    let counts = ["converted_count", "failed_count", "skipped_count"].map(|name| lines[4][name].as_u64().unwrap());
    assert_eq!((&lines[4]["has_losses"], counts), (&true.into(), [1, 3, 0]));
    let manifest: Value = serde_json::from_slice(&std::fs::read(at("out/manifest.json")).unwrap()).unwrap();
    let listed: Vec<&str> = manifest["failed"].as_array().unwrap().iter().filter_map(|f| f["path"].as_str()).collect();
    assert_eq!(listed, [&empty, &missing, &text]);
    let rows = Table::open(Path::new(&at("out/gc/trace=gc-churn-47551c824a692fa9/part-0.parquet"))).rows();
    assert_eq!(rows, 19);

    // Alone, or when none can be read, it is an error as before, and leaves nothing.
    for inputs in [&[empty.as_str()][..], &[&empty, &text]] {
        let none = at("none");
        let run = run(&[&["convert"], inputs, &["-o", &none]].concat());
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("empty.nettrace") && !Path::new(&none).exists(), "{}", run.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = command(&["inspect", GC_CHURN]).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(1));
    assert!(run.err.starts_with("tracequet: standard output: No space left on device"), "{}", run.err);
    // Losses come first: whoever looks at the code alone must learn of them.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let lossy = "samples/exit-early.nettrace";
    for arguments in [
        &["inspect", lossy][..],
        &["inspect", lossy, "--json"],
        &["convert", lossy, "-o", out.to_str().unwrap(), "--json"],
    ] {
        let child = command(arguments).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.err.contains("tracequet: standard output: No space left on device"), "{}", run.err);
    }
}

/// A name that matches nothing makes an empty dataset: who typed it would take that for an answer.
#[test]
fn names_that_match_nothing_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let convert = |options: &[&str]| {
        std::fs::remove_dir_all(&out).ok();
        run(&[&["convert", GC_CHURN, "-o", out.to_str().unwrap()], options].concat())
    };
    for (options, words) in [
        (&["--providers", "Microsoft-Windows-DotNETRunntime"][..], "did you mean Microsoft-Windows-DotNETRuntime?"),
        (&["--providers", "Microsoft-Windows-DotNETRuntime,Nope"], "no events of the provider Nope"),
        (&["--tables", "event/Nope"], "no events for the table event/Nope"),
        (&["--tables", "gc,event/Microsoft-Windows-DotNETRuntime/GCStrt"], "DotNETRuntime/GCStart?"),
        (&["--tables", "gc_puase"], "did you mean gc_pause?"),
        (&["--from", "1h"], "the last event is"),
    ] {
        let run = convert(options);
        assert!(run.code == Some(1) && run.err.contains(words), "{options:?}: {}", run.err);
        assert!(!out.exists(), "{options:?}");
    }
    // What is known and was not recorded is no mistake, but said.
    let known = convert(&["--providers", "microsoft-windows-dotnetruntime,Microsoft-DotNETCore-SampleProfiler"]);
    assert_eq!(known.code, Some(0), "{}", known.err);
    let said = [known.out, known.err].concat();
    assert!(said.contains("no events of the provider Microsoft-DotNETCore-SampleProfiler"), "{said}");
    assert_eq!(Table::open(&out.join("gc.parquet")).rows(), 19);
    let codes = Table::open(&out.join("diagnostic.parquet")).texts("code");
    assert!(codes.iter().any(|code| code == "provider_not_recorded"), "{codes:?}");
    // One of several recordings may lack what another has.
    let several = ["convert", GC_CHURN, "samples/events.nettrace", "--tables", "event/Tracequet-Churn"];
    std::fs::remove_dir_all(&out).ok();
    let both = run(&[&several[..], &["-o", out.to_str().unwrap()]].concat());
    assert_eq!(both.code, Some(0), "{}", both.err);
}
