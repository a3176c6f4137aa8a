//! Recordings that are written together from the start (`convert --pack`): they have the rows that they have in files
//! of their own, the same bytes whatever is ready first, and nothing is lost or doubled by kills and other writers.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tracequet::dataset::read::Dataset;

use crate::lake::compaction::{rows, same};
use crate::lake::many::{FEW, Recordings, content};
use crate::support::files::sample;
#[cfg(target_os = "linux")]
use crate::support::killed::{NAMES, killed_at};
use crate::support::program::{Run, command, run};
#[cfg(target_os = "linux")]
use crate::support::skip::can_trace;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

const SAMPLES: [&str; 6] = [
    "events.nettrace", "gc-churn.nettrace", "gc-churn-3.1.nettrace", "stacks.nettrace", "heap-10.nettrace",
    "callbacks.corprof",
];

fn convert(out: &Path, samples: &[&str], more: &[&str]) -> Run {
    let paths: Vec<PathBuf> = samples.iter().map(|name| sample(name)).collect();
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    let made = run(&["convert", "-q", "-o", out.to_str().unwrap()]
        .into_iter()
        .chain(more.iter().copied())
        .chain(paths)
        .collect::<Vec<_>>());
    assert!(matches!(made.code, Some(0 | 2)), "{}", made.err);
    made
}

/// For each pack its recordings, and the recordings that are in none.
fn packs(lake: &Path) -> (Vec<usize>, usize) {
    let manifest = std::fs::read_to_string(lake.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let packs = manifest["packs"].as_array().cloned().unwrap_or_default();
    let recordings = packs.iter().map(|pack| pack["recordings"].as_u64().unwrap() as usize).collect();
    (recordings, manifest["inputs"].as_array().unwrap().len())
}

#[test]
fn small_recordings_have_the_rows_that_they_have_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let label = ["--append", "--label", "branch=main"];
    convert(&at("plain"), &SAMPLES, &label);
    convert(&at("lake"), &SAMPLES, &[&label[..], &["--pack"]].concat());
    same(&at("lake"), &at("plain"), "packed");
    assert_eq!(packs(&at("lake")), (vec![6], 0));
    assert_eq!(rows(&at("lake")).len(), rows(&at("plain")).len());
    assert!(rows(&at("lake")).values().any(|rows| rows.is_empty()), "tables without rows are tables, too");
    // Neither jobs nor the order of the inputs change anything, nor does whether the dataset grows.
    let mut backwards = SAMPLES;
    backwards.reverse();
    convert(&at("again"), &backwards, &[&label[..], &["--pack", "--jobs", "3"]].concat());
    assert!(content(&at("again")) == content(&at("lake")));
    convert(&at("whole"), &SAMPLES, &["--label", "branch=main", "--pack", "--jobs", "2"]);
    assert!(content(&at("whole")) == content(&at("lake")));
    // What is there is skipped, and there is nothing to compact.
    convert(&at("again"), &SAMPLES, &[&label[..], &["--pack"]].concat());
    assert!(content(&at("again")) == content(&at("lake")));
    let compacted = run(&["dataset", "compact", at("lake").to_str().unwrap()]);
    assert!(compacted.out.starts_with("0 recordings compacted"), "{}", compacted.out);
    // Compaction puts a pack and other recordings together.
    convert(&at("mixed"), &SAMPLES[4..], &[&label[..], &["--pack"]].concat());
    convert(&at("mixed"), &SAMPLES[..4], &label);
    assert_eq!(packs(&at("mixed")), (vec![2], 4));
    same(&at("mixed"), &at("plain"), "a pack and others");
    let compacted = run(&["dataset", "compact", at("mixed").to_str().unwrap(), "--grace", "0"]);
    assert_eq!(compacted.code, Some(0), "{}", compacted.err);
    assert_eq!(packs(&at("mixed")), (vec![6], 0));
    same(&at("mixed"), &at("plain"), "compacted");
}

/// Checks that there are files for each view, and returns how many views there are.
fn views_with_files(lake: &Path) -> usize {
    let script = std::fs::read_to_string(lake.join("views.sql")).unwrap();
    let globs: Vec<&str> =
        script.split("read_parquet('").skip(1).map(|rest| rest.split('\'').next().unwrap()).collect();
    for glob in &globs {
        let folder = lake.join(glob.strip_suffix("/*/*.parquet").expect("a glob of parts"));
        assert!(std::fs::read_dir(&folder).is_ok_and(|parts| parts.count() > 0), "{glob}");
    }
    globs.len()
}

/// A script of views that reads files that are not there is refused as a whole, and a table without rows is a table.
#[test]
fn a_kind_of_event_without_events_has_a_file_in_a_pack() {
    let folder = tempfile::tempdir().unwrap();
    let [recording, pack, plain, mixed] = ["a.nettrace", "pack", "plain", "mixed"].map(|name| folder.path().join(name));
    let kind = |id, name| Kind { id, provider: "A", event_id: id, version: 0, name };
    let event = Row { metadata_id: 2, sequence: 1, payload: 7u64.to_le_bytes().to_vec(), ..Row::default() };
    let mut writer = Writer::new(Form::V6);
    writer.described(kind(1, "Never"), &[("number", Type::Long)]).described(kind(2, "Once"), &[("number", Type::Long)]);
    std::fs::write(&recording, writer.threads(&[(0, 1, 1)]).events(&[event]).end()).unwrap();
    let convert = |out: &Path, recording: &Path, more: &[&str]| {
        let [recording, out] = [recording, out].map(|path| path.to_str().unwrap());
        let made = run(&[&["convert", "-q", "--append", "-o", out, recording][..], more].concat());
        assert!(matches!(made.code, Some(0 | 2)), "{}", made.err);
    };
    let dataset = |command: &str, lake: &Path, more: &[&str]| {
        let run = run(&[&["dataset", command, lake.to_str().unwrap()][..], more].concat());
        assert_eq!(run.code, Some(0), "{command}: {} {}", run.out, run.err);
        run.out
    };
    let tables = |lake: &Path| {
        assert!(dataset("verify", lake, &[]).ends_with(" 0 wrong\n"));
        let all = rows(lake);
        let never = all.iter().filter(|((_, table), _)| table.contains("Never"));
        assert_eq!(never.map(|(_, rows)| rows.len()).collect::<Vec<_>>(), [0], "{:?}", all.keys());
        views_with_files(lake)
    };
    convert(&plain, &recording, &[]);
    let views = tables(&plain);
    convert(&pack, &recording, &["--pack"]);
    assert_eq!(tables(&pack), views);
    // A compaction of files of their own, and one of a pack and others; a single recording is not compacted.
    for (lake, more) in [(&plain, &[][..]), (&mixed, &["--pack"])] {
        convert(lake, &recording, more);
        convert(lake, &sample("exit-early.nettrace"), &[]);
        let compacted = dataset("compact", lake, &["--grace", "0"]);
        assert!(compacted.contains("compacted") && !compacted.starts_with('0'), "{compacted}");
        let with_others = tables(lake);
        assert!(with_others > views);
        // The file stays as it is when the other recording goes.
        let others = Dataset::open(lake).unwrap();
        let other = others.recordings().iter().map(|one| one.trace_id.clone()).find(|key| key.starts_with("exit"));
        dataset("remove", lake, &[&other.unwrap()]);
        tables(lake);
    }
}

#[test]
fn recordings_that_are_converted_again_leave_their_packs() {
    let folder = tempfile::tempdir().unwrap();
    let [lake, plain] = ["lake", "plain"].map(|name| folder.path().join(name));
    convert(&lake, &SAMPLES[..3], &["--append", "--pack"]);
    convert(&lake, &SAMPLES[1..4], &["--append", "--pack", "--refresh", "--tables", FEW]);
    convert(&plain, &SAMPLES[..1], &["--append"]);
    convert(&plain, &SAMPLES[1..4], &["--append", "--tables", FEW]);
    same(&lake, &plain, "refreshed");
    let mut found = packs(&lake);
    found.0.sort_unstable();
    assert_eq!(found, (vec![1, 3], 0));
}

/// Checks that a dataset has the recordings of another one, whatever files those have that could not be read.
fn same_but_for_failures(recordings: &Recordings, lake: &str) {
    let [plain, lake] = ["plain", lake].map(|name| recordings.at(name));
    assert!(rows(&lake) == rows(&plain));
    let said = |command: &str, lake: &Path| {
        let run = run(&["dataset", command, lake.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out
    };
    assert_eq!(said("list", &lake), said("list", &plain));
    assert!(said("verify", &lake).ends_with(" 0 wrong\n"));
}

#[test]
fn what_cannot_be_read_is_beside_the_packs() {
    let recordings = Recordings::new();
    let plain = recordings.convert("plain", &["--append"]);
    let packed = recordings.convert("packed", &["--append", "--pack", "--jobs", "2"]);
    assert_eq!((packed.code, &packed.err, &packed.out), (plain.code, &plain.err, &plain.out));
    same_but_for_failures(&recordings, "packed");
    assert_eq!(packs(&recordings.at("packed")), (vec![4], 0));
    // The summary says what the tables have together.
    let said = |out: &str, more: &[&str]| {
        let run = recordings.convert(out, &[&["--append", "--json"], more].concat());
        let last: serde_json::Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
        let tables = last["tables"].as_array().unwrap().iter();
        let rows =
            tables.map(|table| (table["name"].to_string(), table["rows"].as_u64(), table["bytes"].as_u64() > Some(0)));
        let mut rows: Vec<_> = rows.filter(|(_, rows, _)| *rows > Some(0)).collect();
        rows.sort();
        rows
    };
    let plain = said("plain json", &[]);
    assert!(plain.len() > 3);
    assert_eq!(said("packed json", &["--pack"]), plain);
}

#[test]
fn packs_are_for_parquet_and_for_several_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let (out, one) = (folder.path().join("out"), sample("events.nettrace"));
    let (out, one) = (out.to_str().unwrap(), one.to_str().unwrap());
    for (arguments, expected) in [
        (vec!["convert", one, "-o", out, "--pack"], "for datasets of several recordings"),
        (vec!["convert", one, "-o", out, "--append", "--pack", "--format", "arrow"], "only Parquet files"),
    ] {
        let refused = run(&arguments);
        assert_eq!(refused.code, Some(1), "{}", refused.err);
        assert!(refused.err.contains(expected), "{}", refused.err);
        assert!(!Path::new(out).exists());
    }
}

#[test]
fn writers_of_packs_lose_nothing_of_each_other() {
    let recordings = Recordings::new();
    recordings.convert("plain", &["--append"]);
    let writers: Vec<_> = (0..3)
        .map(|number| {
            let pack = if number == 1 { "--quiet" } else { "--pack" };
            let arguments = ["convert", pack, "--tables", FEW, "traces", "-o", "lake", "--append", "--jobs", "2"];
            let mut command = command(&arguments);
            command.current_dir(recordings.at(".")).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        assert_eq!(writer.wait().unwrap().code(), Some(2));
    }
    same_but_for_failures(&recordings, "lake");
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_at_any_step_of_a_pack_and_a_second_run_give_the_same_dataset() {
    if !can_trace("a_kill_at_any_step_of_a_pack_and_a_second_run_give_the_same_dataset") {
        return;
    }
    let recordings = Recordings::new();
    let few = ["convert", "-q", "--tables", "gc,event_type", "traces", "--append", "--pack", "-o"];
    recordings.run(&[&few[..], &["expected"]].concat());
    let (expected, whole) = (content(&recordings.at("expected")), rows(&recordings.at("expected")));
    let (mut kills, mut step) = (0, 1);
    loop {
        let out = format!("lake{step}");
        let mut killed = killed_at(NAMES, step);
        killed.args(few).arg(&out).current_dir(recordings.at("."));
        let status = killed.stderr(Stdio::null()).status().unwrap();
        if Dataset::open(recordings.at(&out)).is_ok() {
            // What is there is whole at any time.
            for (name, found) in rows(&recordings.at(&out)) {
                assert!(whole.get(&name) == Some(&found), "kill {step}: {name:?}");
            }
        }
        if status.code().is_some() {
            break;
        }
        kills += 1;
        let second = recordings.run(&[&few[..], &[out.as_str()]].concat());
        assert_eq!(second.code, Some(2), "kill {step}: {}", second.err);
        assert!(expected == content(&recordings.at(&out)), "kill {step}");
        std::fs::remove_dir_all(recordings.at(&out)).unwrap();
        step += 1;
        assert!(step < 2000, "it does not end");
    }
    assert!(kills > 10, "{kills}");
}
