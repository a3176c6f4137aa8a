//! Several recordings into one dataset: what cannot be read costs itself, jobs change nothing, a dataset grows, and
//! what is killed goes on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::dataset::Table;
use crate::support::files::files;
#[cfg(target_os = "linux")]
use crate::support::killed::{NAMES, killed_at};
use crate::support::program::{Run, command, finished, run};
#[cfg(target_os = "linux")]
use crate::support::skip::can_trace;

pub const FEW: &str = "gc,gc_pause,event";

/// A folder of recordings, with a broken one, text, and one that is there twice.
pub struct Recordings {
    folder: tempfile::TempDir,
}

impl Recordings {
    pub fn new() -> Recordings {
        let recordings = Recordings { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(recordings.at("traces/night")).unwrap();
        for (sample, name) in [
            ("gc-churn.nettrace", "traces/gc.nettrace"),
            ("events.nettrace", "traces/night/events.nettrace"),
            ("events-3.1.nettrace", "traces/night/old.nettrace"),
            ("callbacks.corprof", "traces/night/7.corprof"),
            ("gc-churn.nettrace", "traces/night/twice.nettrace"),
        ] {
            std::fs::copy(Path::new("samples").join(sample), recordings.at(name)).unwrap();
        }
        let heap = std::fs::read("samples/heap.nettrace").unwrap();
        std::fs::write(recordings.at("traces/broken.nettrace"), &heap[..100]).unwrap();
        std::fs::write(recordings.at("traces/notes.txt"), "no recording, and not named like one").unwrap();
        recordings
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program in the folder, so that the paths of recordings are the same in each.
    pub fn run(&self, arguments: &[&str]) -> Run {
        finished(command(arguments).current_dir(self.folder.path())).into()
    }

    pub fn convert(&self, out: &str, more: &[&str]) -> Run {
        self.run(&[&["convert", "-q", "--tables", FEW, "traces", "-o", out], more].concat())
    }
}

/// A path as this system writes it.
pub fn native(path: &str) -> String {
    path.replace('/', std::path::MAIN_SEPARATOR_STR)
}

/// What is in a dataset, without the files that are only locked.
pub fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut content = files(folder);
    content.remove("manifest/.lock");
    content.remove("manifest/.packing");
    content
}

/// The files that recordings have of a table, without the one that has no rows.
pub fn recorded(table: &Path) -> Vec<String> {
    files(table).into_keys().filter(|name| !name.starts_with("trace=none/")).collect()
}

fn keys(dataset: &Path) -> Vec<String> {
    let names = files(&dataset.join("manifest")).into_keys();
    names.filter_map(|name| Some(name.strip_suffix(".json")?.rsplit_once('-')?.0.to_owned())).collect()
}

pub fn json_lines(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_label_has_one_value() {
    let recordings = Recordings::new();
    let arguments =
        ["convert", "traces", "-o", "lake", "--append", "--label", "a=1", "--label", "b=1", "--label", "a=2"];
    let run = recordings.run(&arguments);
    assert!(run.code == Some(1) && run.err.contains("--label a is given twice"), "{}", run.err);
    assert!(!recordings.at("lake").exists());
}

#[test]
fn a_failure_is_a_row_and_a_line_and_the_others_are_converted() {
    let recordings = Recordings::new();
    let run = recordings.run(&["convert", "traces", "-o", "lake", "--append", "--label", "branch=main"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    let path = native("traces/broken.nettrace");
    assert!(run.err.contains(&format!("{path}: at byte 100: the file ends inside its header")), "{}", run.err);
    assert!(run.err.contains("twice.nettrace: is in the dataset already as gc-47551c824a692fa9"), "{}", run.err);
    let lake = recordings.at("lake");
    assert_eq!(keys(&lake), ["broken", "events", "gc", "old", "t7"]);
    let mut seen = Vec::new();
    for name in recorded(&lake.join("trace")) {
        let table = Table::open(&lake.join("trace").join(name));
        let row = [table.texts("status"), table.texts("error_message")].map(|column| column[0].clone());
        seen.push((table.texts("path")[0].clone(), row, table.optional("error_offset")[0]));
    }
    let broken = seen.iter().find(|row| row.0 == path).unwrap();
    assert_eq!((broken.1[0].as_str(), broken.2), ("failed", Some(100)));
    assert!(broken.1[1].contains("the file ends inside its header"), "{broken:?}");
    assert_eq!(seen.iter().filter(|row| row.1[0] == "failed").count(), 1);
    assert!(seen.iter().any(|row| row.1[0] == "ok" && row.2.is_none()));
    let labels = recorded(&lake.join("trace_label"));
    assert_eq!(labels.len(), 5);
    for name in labels {
        let table = Table::open(&lake.join("trace_label").join(name));
        assert_eq!((table.texts("name"), table.texts("value")), (vec!["branch".into()], vec!["main".to_owned()]));
    }
}

#[test]
fn the_exit_code_is_that_of_all_recordings() {
    let recordings = Recordings::new();
    let code = |arguments: &[&str]| recordings.run(&[&["convert", "-q", "--tables", "gc"], arguments].concat()).code;
    assert_eq!(code(&["traces/gc.nettrace", "traces/night/7.corprof", "-o", "good"]), Some(0));
    assert_eq!(code(&["traces/gc.nettrace", "traces/broken.nettrace", "-o", "mixed"]), Some(2));
    assert_eq!(code(&["traces/broken.nettrace", "traces/notes.txt", "-o", "none"]), Some(1));
    assert_eq!(code(&["traces/broken.nettrace", "traces/gc.nettrace", "-o", "fast", "--fail-fast"]), Some(1));
    assert!(!recordings.at("none").exists() && !recordings.at("fast").exists());
    // With --append what failed is in the dataset.
    assert_eq!(code(&["traces/broken.nettrace", "-o", "lake", "--append"]), Some(1));
    assert_eq!(keys(&recordings.at("lake")), ["broken"]);
    assert_eq!(code(&["traces/gc.nettrace", "-o", "lake", "--append"]), Some(0));
    assert_eq!(code(&["traces/gc.nettrace", "-o", "lake", "--append"]), Some(0), "what is there is no loss");
    assert_eq!(code(&["traces/gc.nettrace", "traces/broken.nettrace", "-o", "lake", "--append"]), Some(2));
}

#[test]
fn jobs_and_order_change_no_byte() {
    let recordings = Recordings::new();
    assert_eq!(recordings.convert("one", &[]).code, Some(2));
    let one = content(&recordings.at("one"));
    assert!(one.len() > 20);
    for (out, more) in [
        ("many", &["--jobs", "4"][..]),
        ("tight", &["--jobs", "0", "--memory", "1M"]),
        ("added", &["--append", "--jobs", "3"]),
    ] {
        assert_eq!(recordings.convert(out, more).code, Some(2));
        let other = content(&recordings.at(out));
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{out}");
        assert!(one.iter().zip(&other).all(|(a, b)| a == b), "{out}");
    }
    // One by one, in another order.
    for path in ["traces/night/old.nettrace", "traces/night/7.corprof", "traces/broken.nettrace", "traces/gc.nettrace"]
    {
        recordings.run(&["convert", "-q", "--tables", FEW, &native(path), "-o", "slowly", "--append"]);
    }
    let last = native("traces/night/events.nettrace");
    recordings.run(&["convert", "-q", "--tables", FEW, &last, "-o", "slowly", "--append"]);
    assert!(one == content(&recordings.at("slowly")));
}

#[test]
fn what_is_there_is_skipped_and_refreshed_when_asked() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let before = content(&recordings.at("lake"));
    let again = recordings.convert("lake", &["--append", "--json"]);
    assert_eq!(again.code, Some(2));
    let lines = json_lines(&again);
    let count = |outcome: &str| lines.iter().filter(|line| line["outcome"] == outcome).count();
    assert_eq!(
        (count("skipped"), count("failed"), count("converted"), count("summary")),
        (5, 1, 0, 1),
        "{}",
        again.out
    );
    assert!(before == content(&recordings.at("lake")));
    // Other options: said, and done when asked.
    let more = ["--append", "--json", "--from", "1ms"];
    let other = json_lines(&recordings.convert("lake", &more));
    assert_eq!(other.iter().filter(|line| line["other_options"] == true).count(), 4, "{other:?}");
    assert!(before == content(&recordings.at("lake")));
    let refreshed = json_lines(&recordings.convert("lake", &[&more[..], &["--refresh"]].concat()));
    assert_eq!(refreshed.iter().filter(|line| line["outcome"] == "converted").count(), 4, "{refreshed:?}");
    assert!(before != content(&recordings.at("lake")));
    // Written by another version: refreshed, and then all is as it was.
    let entry = recordings.at("lake/manifest/gc-47551c824a692fa9.json");
    let text = std::fs::read_to_string(&entry).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    recordings.convert("lake", &["--append", "--refresh"]);
    std::fs::write(&entry, std::fs::read_to_string(&entry).unwrap().replace(&version, "\"version\":\"0.0.1\""))
        .unwrap();
    let old = json_lines(&recordings.convert("lake", &["--append", "--refresh", "--json"]));
    let converted: Vec<_> = old.iter().filter(|line| line["outcome"] == "converted").map(|l| &l["trace_id"]).collect();
    assert_eq!(converted, ["gc-47551c824a692fa9"]);
    assert!(before == content(&recordings.at("lake")));
}

/// A baseline is chosen by labels: who converts again after an update must not lose them, and a broken file of last
/// week is not one of today.
#[test]
fn labels_stay_when_a_recording_is_converted_again_or_fails_again() {
    let recordings = Recordings::new();
    let labelled = |more: &[&str]| {
        let run = recordings.convert("lake", &[&["--append"], more].concat());
        assert_eq!(run.code, Some(2), "{}", run.err);
        let lake = tracequet::dataset::read::Dataset::open(recordings.at("lake")).unwrap();
        let read = lake.recordings().iter().map(|info| info.labels.clone());
        let failed = lake.failed().iter().map(|info| info.labels.clone());
        (read.chain(failed).collect::<Vec<_>>(), content(&recordings.at("lake/trace_label")))
    };
    let first = labelled(&["--label", "night=1", "--label", "branch=main"]);
    assert!(
        first.0.len() == 5 && first.0.iter().all(|labels| labels["night"] == "1" && labels.len() == 2),
        "{first:?}"
    );
    let again = ["--refresh", "--label", "night=2", "--from", "1ms"];
    assert!(labelled(&["--label", "night=2"]) == first);
    assert_eq!(labelled(&again).0, first.0);
    assert!(labelled(&["--refresh"]) == first);
}

/// The recordings of a directory that grows keep theirs.
#[test]
fn labels_of_what_is_there_stay_and_that_is_said() {
    let recordings = Recordings::new();
    let gc = native("traces/gc.nettrace");
    let add = |more: &[&str]| {
        recordings.run(&[&["convert", "--tables", "gc", gc.as_str(), "-o", "lake", "--append"], more].concat())
    };
    add(&["--label", "branch=main"]);
    let entry = || std::fs::read(recordings.at("lake/manifest/gc-47551c824a692fa9.json")).unwrap();
    let before = entry();
    assert!(!add(&["--label", "branch=main"]).err.contains("labels"));
    assert!(!add(&[]).err.contains("labels"));
    let other = add(&["--label", "branch=feature", "--refresh"]);
    assert!(
        other.err.contains("is in the dataset already as gc-47551c824a692fa9, with other labels, which stay"),
        "{}",
        other.err
    );
    let reported = json_lines(&add(&["--label", "branch=feature", "--json"]));
    assert!(reported.iter().any(|line| line["other_labels"] == true), "{reported:?}");
    assert!(before == entry());
}

#[test]
fn recordings_are_added_to_nothing_else_than_such_a_dataset() {
    let recordings = Recordings::new();
    let add = |out: &str, more: &[&str]| {
        let arguments = ["convert", "-q", "--tables", "gc", "traces/gc.nettrace", "-o", out, "--append"];
        recordings.run(&[&arguments[..], more].concat())
    };
    recordings.run(&["convert", "-q", "--tables", "gc", "traces/gc.nettrace", "-o", "flat"]);
    std::fs::create_dir(recordings.at("photos")).unwrap();
    std::fs::write(recordings.at("photos/cat.jpg"), "cat").unwrap();
    assert_eq!(add("lake", &[]).code, Some(0));
    for (out, more, what) in [
        ("flat", &[][..], "tables are those of one recording"),
        ("photos", &[], "holds something else than a dataset"),
        ("lake", &["--format", "arrow"], "expected --format parquet"),
        ("lake", &["--address-type", "int64"], "expected --address-type uint64"),
    ] {
        let before = content(&recordings.at(out));
        let refused = add(out, more);
        assert_eq!(refused.code, Some(1));
        assert!(refused.err.contains(what), "{}", refused.err);
        assert!(before == content(&recordings.at(out)));
    }
    let entry = recordings.at("lake/manifest/gc-47551c824a692fa9.json");
    let text = std::fs::read_to_string(&entry).unwrap();
    let old = of_other_version(&text);
    std::fs::write(&entry, old).unwrap();
    let refused = add("lake", &[]);
    assert!(refused.code == Some(1) && refused.err.contains("--refresh"), "{}", refused.err);
    assert_eq!(add("lake", &["--refresh"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&entry).unwrap(), text);
}

/// The entry with another version of the tables.
fn of_other_version(text: &str) -> String {
    let mut entry: Value = serde_json::from_str(text).unwrap();
    entry["schema_version"] = 1.into();
    entry.to_string()
}

#[test]
fn two_writers_at_once_lose_nothing_of_each_other() {
    let recordings = Recordings::new();
    recordings.convert("alone", &["--append"]);
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let arguments = ["convert", "-q", "--tables", FEW, "traces", "-o", "lake", "--append", "--jobs", "2"];
            command(&arguments).current_dir(recordings.folder.path()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        assert_eq!(writer.wait().unwrap().code(), Some(2));
    }
    assert!(content(&recordings.at("alone")) == content(&recordings.at("lake")));
}

#[test]
fn directories_patterns_and_lists_stand_for_recordings() {
    let recordings = Recordings::new();
    let keys_of = |arguments: &[&str]| {
        let run =
            recordings.run(&[&["convert", "-q", "--tables", "gc", "-o", "out", "--overwrite"], arguments].concat());
        assert!(matches!(run.code, Some(0 | 2)), "{}", run.err);
        keys(&recordings.at("out"))
    };
    assert_eq!(keys_of(&["traces/night"]), ["events", "old", "t7", "twice"]);
    assert_eq!(keys_of(&["traces/**/*.corprof"]), ["t7"]);
    assert_eq!(keys_of(&["traces/night/[e]*", "traces/gc.nettrace"]), ["events", "gc"]);
    std::fs::write(recordings.at("list"), "traces/night/7.corprof\n\ntraces/gc.nettrace\n").unwrap();
    assert_eq!(keys_of(&["--files-from", "list"]), ["gc", "t7"]);
    for (argument, what) in [("traces/*.etl", "no file has a name like this"), ("out/gc", "there is no recording")] {
        let run = recordings.run(&["convert", argument, "-o", "other"]);
        assert!(run.code == Some(1) && run.err.contains(what), "{}", run.err);
    }
    let both = run(&["convert", "-", "--files-from", "-", "-o", "/nowhere"]);
    assert!(both.code == Some(1) && both.err.contains("standard input"), "{}", both.err);
}

/// Events whose layout a recording describes: their ids depend on the process, and the names of their tables must not.
#[test]
fn a_table_of_described_events_is_named_by_its_columns() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let lake = recordings.at("lake");
    let mut columns: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut described = 0;
    for (name, _) in files(&lake).iter().filter(|(name, _)| name.ends_with(".parquet")) {
        let (table, part) = name.split_once("/trace=").unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
            std::fs::File::open(lake.join(name)).unwrap(),
        );
        let reader = reader.unwrap();
        let own: Vec<_> =
            reader.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().to_string())).collect();
        described +=
            usize::from(part.starts_with("events-") && table.rsplit_once('.').is_some_and(|(_, h)| h.len() == 8));
        assert_eq!(*columns.entry(table.to_owned()).or_insert_with(|| own.clone()), own, "{name}");
    }
    assert!(described > 3, "{:?}", columns.keys());
}

/// The files of a failure were written and taken away again at each run: 183 s for 30,000 of them.
#[cfg(target_os = "linux")]
#[test]
fn what_still_cannot_be_read_is_written_once() {
    if !can_trace("what_still_cannot_be_read_is_written_once") {
        return;
    }
    let recordings = Recordings::new();
    let program = env!("CARGO_BIN_EXE_tracequet");
    // Directories for files of recordings that one run makes.
    let made = || {
        let mut traced = std::process::Command::new("strace");
        traced.args(["-f", "-qq", "-o", "calls", "-e", "trace=mkdir,mkdirat", program, "convert", "-q", "--jobs", "1"]);
        traced.args(["traces/broken.nettrace", "gone/1.nettrace", "gone/2.nettrace", "--append", "-o", "lake"]);
        let run = traced.current_dir(recordings.at("")).output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        let calls = std::fs::read_to_string(recordings.at("calls")).unwrap();
        calls.lines().filter(|call| call.contains(".recording.tracequet-new-")).count()
    };
    assert!(made() > 0);
    let first = content(&recordings.at("lake"));
    assert_eq!((made(), content(&recordings.at("lake")) == first), (0, true));
    // What is lost comes back.
    let rows = recorded(&recordings.at("lake/trace"));
    let row = rows.first().unwrap();
    std::fs::remove_file(recordings.at("lake/trace").join(row)).unwrap();
    assert_eq!((made(), content(&recordings.at("lake")) == first), (1, true));
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_at_any_step_and_a_second_run_give_the_same_dataset() {
    if !can_trace("a_kill_at_any_step_and_a_second_run_give_the_same_dataset") {
        return;
    }
    let recordings = Recordings::new();
    let few = ["convert", "-q", "--tables", "gc", "traces", "gone/1.nettrace", "gone/2.nettrace", "--append", "-o"];
    recordings.run(&[&few[..], &["expected"]].concat());
    let expected = content(&recordings.at("expected"));
    let (mut kills, mut step) = (0, 1);
    loop {
        let out = format!("lake{step}");
        let mut killed = killed_at(NAMES, step);
        killed.args(few).arg(&out).current_dir(recordings.folder.path());
        let status = killed.stderr(Stdio::null()).status().unwrap();
        if recordings.at(&out).exists() {
            // What is there is readable at any time.
            if let Ok(lake) = tracequet::dataset::read::Dataset::open(recordings.at(&out)) {
                for recording in lake.recordings() {
                    lake.recording(Some(&recording.trace_id)).unwrap().table("gc").unwrap().scan().batches().unwrap();
                }
            }
        }
        if status.code().is_some() {
            break;
        }
        kills += 1;
        let second = recordings.run(&[&few[..], &[out.as_str()]].concat());
        assert_eq!(second.code, Some(2), "kill {step}: {}", second.err);
        assert_eq!(
            expected.keys().collect::<Vec<_>>(),
            content(&recordings.at(&out)).keys().collect::<Vec<_>>(),
            "kill {step}"
        );
        assert!(expected == content(&recordings.at(&out)), "kill {step}");
        std::fs::remove_dir_all(recordings.at(&out)).unwrap();
        step += 2;
        assert!(step < 2000, "it does not end");
    }
    assert!(kills > 10, "{kills}");
}

#[test]
#[cfg(not(feature = "cloud"))]
fn an_address_needs_the_feature() {
    let recordings = Recordings::new();
    let out = recordings.at("out");
    let gc = recordings.at("traces/gc.nettrace");
    let lake = "s3://bucket/lake?secret";
    for arguments in [
        &["convert", "s3://bucket/night/", "-o", out.to_str().unwrap()][..],
        &["convert", gc.to_str().unwrap(), "-o", "az://container/lake", "--append"],
        &["dataset", "list", lake],
        &["dataset", "remove", lake, "key"],
        &["stats", "https://host/a.nettrace"],
        &["inspect", "gs://bucket/a.nettrace"],
    ] {
        let run = run(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.err.contains("built without the feature `cloud`"), "{arguments:?}: {}", run.err);
    }
    assert!(!out.exists());
}
