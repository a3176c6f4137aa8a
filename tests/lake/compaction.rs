//! Compaction: many recordings in few files have the same rows, for readers of entries and of globs, whatever is done
//! with them afterwards, and wherever a compaction is killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracequet::dataset::read::{Column, Dataset};

use crate::lake::many::content;
use crate::support::files::{files, sample};
#[cfg(target_os = "linux")]
use crate::support::killed::{NAMES, killed_at};
use crate::support::program::{Run, run};
use crate::support::python::python;
#[cfg(target_os = "linux")]
use crate::support::skip::can_trace;

const SAMPLES: [&str; 5] =
    ["events.nettrace", "gc-churn.nettrace", "gc-churn-3.1.nettrace", "stacks.nettrace", "heap-10.nettrace"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn append(lake: &Path, samples: &[&str], more: &[&str]) {
    let paths: Vec<PathBuf> = samples.iter().map(|name| sample(name)).collect();
    let paths = paths.iter().map(|path| text(path));
    let made = run(&["convert", "-q", "--append", "-o", text(lake)]
        .into_iter()
        .chain(more.iter().copied())
        .chain(paths)
        .collect::<Vec<_>>());
    assert!(matches!(made.code, Some(0 | 2)), "{}", made.err);
}

fn dataset(command: &str, lake: &Path, more: &[&str]) -> Run {
    run(&[&["dataset", command, text(lake)], more].concat())
}

fn done(command: &str, lake: &Path, more: &[&str]) -> String {
    let done = dataset(command, lake, more);
    assert_eq!(done.code, Some(0), "{command}: {}{}", done.out, done.err);
    done.out
}

/// The rows of each table of each recording, as the library reads them, in no order.
pub fn rows(lake: &Path) -> BTreeMap<(String, String), Vec<String>> {
    let lake = Dataset::open(lake).unwrap();
    assert!(lake.damaged().is_empty(), "{:?}", lake.damaged());
    let mut all = BTreeMap::new();
    for recording in lake.each_recording() {
        let key = &recording.info().trace_id;
        for table in recording.tables() {
            let mut rows = Vec::new();
            for batch in recording.table(&table.name).unwrap().scan().batches().unwrap() {
                let batch = batch.unwrap();
                let schema = batch.schema();
                let columns: Vec<_> =
                    schema.fields().iter().filter_map(|field| Column::of(&batch, field.name()).ok()).collect();
                assert!(!columns.is_empty());
                let value = |column: &Column<'_>, row| match column.text(row) {
                    Some(text) => text.to_owned(),
                    None => format!("{:?}", column.real(row)),
                };
                rows.extend(
                    (0..batch.num_rows()).map(|row| columns.iter().map(|c| value(c, row) + "|").collect::<String>()),
                );
            }
            rows.sort();
            all.insert((key.clone(), table.name.clone()), rows);
        }
    }
    all
}

/// The names of the files of tables that have rows.
fn table_files(lake: &Path) -> Vec<String> {
    let names = files(lake).into_keys();
    names.filter(|name| name.ends_with(".parquet") && !name.contains("trace=none") && !name.starts_with('.')).collect()
}

/// Each row is there once, and in order: what a glob finds.
fn globbed(lake: &Path) -> BTreeMap<String, u64> {
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    for name in table_files(lake) {
        let file = std::fs::File::open(lake.join(&name)).unwrap();
        let metadata = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let (table, _) = name.split_once("/trace=").unwrap();
        *rows.entry(table.to_owned()).or_default() += metadata.metadata().file_metadata().num_rows() as u64;
    }
    rows
}

fn sums(rows: &BTreeMap<(String, String), Vec<String>>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, table), rows) in rows.iter().filter(|(_, rows)| !rows.is_empty()) {
        *sums.entry(table.clone()).or_default() += rows.len() as u64;
    }
    sums
}

/// Checks that a compacted dataset is whole and has the rows and recordings of one that was never compacted.
pub fn same(lake: &Path, plain: &Path, what: &str) {
    assert!(rows(lake) == rows(plain), "{what}");
    assert_eq!(globbed(lake), sums(&rows(lake)), "{what}");
    let verified = dataset("verify", lake, &[]);
    assert_eq!(verified.code, Some(0), "{what}: {}", verified.out);
    assert_eq!(done("list", lake, &[]), done("list", plain, &[]), "{what}");
}

#[test]
fn compacted_recordings_have_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [before, lake, again] = ["before", "lake", "again"].map(|name| folder.path().join(name));
    for lake in [&before, &lake, &again] {
        append(lake, &SAMPLES, &["--label", "branch=main"]);
    }
    let (expected, files_before) = (rows(&lake), table_files(&lake).len());
    assert!(expected.len() > 150 && files_before > 100);
    let said = done("compact", &lake, &["--grace", "0"]);
    assert!(said.starts_with("5 recordings compacted: "), "{said}");
    assert!(rows(&lake) == expected);
    let left = table_files(&lake);
    assert!(left.len() < files_before && left.iter().all(|name| name.contains("/trace=packed.")), "{left:?}");
    assert_eq!(globbed(&lake), sums(&expected));
    assert!(done("verify", &lake, &[]).ends_with(" 0 wrong\n"));
    assert!(!files(&lake).into_keys().any(|name| name.starts_with('.')), "nothing hidden is left");
    // The same input gives the same bytes, and there is nothing more to do.
    done("compact", &again, &["--grace", "0"]);
    assert!(content(&lake) == content(&again));
    assert_eq!(
        done("compact", &lake, &[]),
        "0 recordings compacted: 0 files with 0 bytes became 0 files with 0 bytes\n"
    );
    assert!(content(&lake) == content(&again));
    // A list says the same of both, and what is there is skipped.
    assert_eq!(done("list", &lake, &[]), done("list", &before, &[]));
    append(&lake, &SAMPLES, &[]);
    assert!(content(&lake) == content(&again));
    // The manifest can be made of the entries.
    std::fs::remove_file(lake.join("manifest.json")).unwrap();
    done("repair", &lake, &[]);
    assert!(content(&lake) == content(&again));
    if let Some(python) = python("compacted_recordings_have_the_same_rows") {
        let output = Command::new(python).arg("tests/python/same_lakes.py").args([&before, &lake]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("tables are the same"), "{said}");
    }
}

/// What is read of many recordings at once is what is read of each alone, wherever their rows lie.
#[test]
fn recordings_that_are_read_together_have_their_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [lake, plain] = ["lake", "plain"].map(|name| folder.path().join(name));
    append(&lake, &SAMPLES[..4], &["--tables", "trace,process,gc,method,cpu_sample,event_type,metric"]);
    done("compact", &lake, &["--grace", "0"]);
    append(&lake, &SAMPLES[4..], &["--tables", "trace,gc,method"]);
    let set = Dataset::open(&lake).unwrap();
    let keys: Vec<&str> = set.recordings().iter().map(|info| info.trace_id.as_str()).collect();
    let shown = |batches: Vec<tracequet::dataset::read::arrow_array::RecordBatch>| -> Vec<String> {
        let rows =
            batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1))));
        rows.collect()
    };
    let mut compared = 0;
    // Each choice of five recordings, in turn and the other way round.
    for choice in 1..32u32 {
        let mut chosen: Vec<&str> = (0..5).filter(|at| choice >> at & 1 == 1).map(|at| keys[at]).collect();
        if choice % 2 == 0 {
            chosen.reverse();
        }
        for (table, column) in [("gc", "gc_id"), ("method", "method_id"), ("cpu_sample", "ts_ns"), ("metric", "name")] {
            let mut together = vec![Vec::new(); chosen.len()];
            let have = set
                .each_batch(
                    table,
                    &chosen,
                    |_| Ok(vec![column]),
                    |place, batch| {
                        together[place].push(batch.clone());
                        Ok(())
                    },
                )
                .unwrap();
            for ((key, found), has_it) in chosen.iter().zip(together).zip(have) {
                let alone = set.recording(Some(key)).unwrap().table(table);
                assert_eq!(has_it, alone.is_ok(), "{table} of {key}");
                let alone =
                    alone.map(|table| table.scan().columns([column]).batches().unwrap().map(Result::unwrap).collect());
                let alone = shown(alone.unwrap_or_default());
                assert!(shown(found) == alone, "{table} of {key} among {chosen:?}");
                compared += alone.len();
            }
        }
    }
    assert!(compared > 10_000, "{compared} rows");
    // The figures, and what makes recordings comparable, are read so.
    append(&plain, &SAMPLES[..4], &["--tables", "trace,process,gc,method,cpu_sample,event_type,metric"]);
    append(&plain, &SAMPLES[4..], &["--tables", "trace,gc,method"]);
    let stats = |lake: &Path| run(&["stats", text(lake), "--json"]);
    let (packed, apart) = (stats(&lake), stats(&plain));
    assert!(packed.out.len() > 10_000 && packed.out == apart.out && packed.code == apart.code, "{}", packed.err);
}

#[test]
fn recordings_of_packs_go_are_reduced_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let [lake, plain] = ["lake", "plain"].map(|name| folder.path().join(name));
    const TABLES: [&str; 2] = ["--tables", "gc,gc_pause,gc_moved_range,event_type,metric,event/Tracequet-Churn"];
    append(&lake, &SAMPLES[..3], &TABLES);
    done("compact", &lake, &["--grace", "0"]);
    append(&lake, &SAMPLES[3..], &TABLES);
    append(&plain, &SAMPLES, &TABLES);
    assert!(rows(&lake) == rows(&plain), "packs and recordings beside each other");
    // Small packs and recordings come together.
    done("compact", &lake, &["--grace", "0"]);
    assert_eq!(std::fs::read_dir(lake.join("manifest/packed")).unwrap().count(), 1);
    let same = |what: &str| same(&lake, &plain, what);
    same("compacted again");
    let keys: Vec<String> = Dataset::open(&lake).unwrap().recordings().iter().map(|r| r.trace_id.clone()).collect();
    for lake in [&lake, &plain] {
        done("remove", lake, &[&keys[1], &keys[3]]);
    }
    same("removed");
    assert_eq!(dataset("remove", &lake, &[&keys[1]]).code, Some(1), "it is gone");
    for lake in [&lake, &plain] {
        append(lake, &SAMPLES, &TABLES);
    }
    same("added again");
    for more in [&["--keep-last", "4", "--keep-tables", "metric"][..], &["--keep-last", "3"]] {
        let count = |out: &str| out.lines().count();
        let planned = done("expire", &lake, &[more, &["--dry-run"]].concat());
        let [said, plainly] = [&lake, &plain].map(|lake| done("expire", lake, more));
        assert_eq!((count(&planned), count(&said)), (count(&plainly), count(&plainly)), "{said}{plainly}");
        same("expired");
    }
    // With other options they are converted again, and leave the pack.
    for lake in [&lake, &plain] {
        append(lake, &SAMPLES, &["--refresh", "--tables", "gc,gc_pause"]);
    }
    same("refreshed");
    done("compact", &lake, &["--grace", "0"]);
    same("and compacted");
    for lake in [&lake, &plain] {
        done("expire", lake, &["--keep-last", "0"]);
    }
    assert_eq!(table_files(&lake), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(lake.join("manifest/packed")).unwrap().count(), 0);
    assert_eq!(dataset("verify", &lake, &[]).code, Some(0));
}

/// What a reader has opened before, it finds under the hidden name, and a later run removes that when its time has
/// come. Not on Windows, which neither opens a directory to set its time nor moves it while a file in it is open.
#[cfg(unix)]
#[test]
fn who_has_begun_to_read_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    append(&lake, &SAMPLES[..3], &["--tables", "gc,gc_pause"]);
    let opened = Dataset::open(&lake).unwrap();
    let table = opened.each_recording().nth(1).unwrap().table("gc").unwrap();
    done("compact", &lake, &[]);
    let count = |table: &tracequet::Table| {
        table.scan().batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    assert!(count(&table) > 0, "it was looked for before");
    for recording in opened.each_recording() {
        assert_eq!(
            count(&recording.table("gc").unwrap()) as u64,
            rows(&lake)[&(recording.info().trace_id.clone(), "gc".into())].len() as u64
        );
    }
    let hidden = || {
        let names = std::fs::read_dir(&lake).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".packed.")).collect::<Vec<_>>()
    };
    let [name] = &hidden()[..] else { panic!("{:?}", hidden()) };
    assert_eq!(done("verify", &lake, &[]).lines().count(), 1);
    append(&lake, &SAMPLES[..1], &[]);
    assert_eq!(hidden().len(), 1, "its time has not come");
    let set = |time| std::fs::File::open(lake.join(name)).unwrap().set_modified(time).unwrap();
    let now = std::time::SystemTime::now();
    set(now + std::time::Duration::from_secs(90_000));
    append(&lake, &SAMPLES[..1], &[]);
    // The clock has gone back: an hour from now it is over.
    assert!(lake.join(name).metadata().unwrap().modified().unwrap() <= now + std::time::Duration::from_secs(600));
    set(now - std::time::Duration::from_secs(4000));
    append(&lake, &SAMPLES[..1], &[]);
    assert_eq!(hidden(), Vec::<String>::new());
    assert_eq!(dataset("verify", &lake, &[]).code, Some(0));
}

#[test]
fn what_cannot_be_read_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    append(&lake, &SAMPLES[..3], &["--tables", "gc,gc_pause"]);
    let keys: Vec<String> = Dataset::open(&lake).unwrap().recordings().iter().map(|r| r.trace_id.clone()).collect();
    let file = lake.join(format!("gc/trace={}/part-0.parquet", keys[1]));
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let compacted = dataset("compact", &lake, &["--grace", "0"]);
    assert!(compacted.code == Some(2) && compacted.err.contains(&keys[1]), "{}{}", compacted.out, compacted.err);
    assert!(compacted.out.starts_with("2 recordings compacted: "), "{}", compacted.out);
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(dataset("verify", &lake, &[]).code, Some(0));
    assert_eq!(rows(&lake).keys().filter(|(_, table)| table == "gc").count(), 3);
    let arrow = folder.path().join("arrow");
    append(&arrow, &SAMPLES[..2], &["--tables", "gc", "--format", "arrow"]);
    let refused = dataset("compact", &arrow, &[]);
    assert!(refused.code == Some(1) && refused.err.contains("only Parquet files are compacted"), "{}", refused.err);
}

/// By the entry, by the table, and by a query, also of those that are compacted again.
#[test]
fn labels_of_compacted_recordings_change() {
    let folder = tempfile::tempdir().unwrap();
    let [lake, plain] = ["lake", "plain"].map(|name| folder.path().join(name));
    const TABLES: [&str; 4] = ["--tables", "gc,gc_pause,metric", "--label", "branch=main"];
    for lake in [&lake, &plain] {
        append(lake, &SAMPLES[..3], &TABLES);
    }
    done("compact", &lake, &["--grace", "0"]);
    for lake in [&lake, &plain] {
        append(lake, &SAMPLES[3..], &TABLES);
    }
    let same = |what: &str| same(&lake, &plain, what);
    let keys: Vec<String> = Dataset::open(&lake).unwrap().recordings().iter().map(|r| r.trace_id.clone()).collect();
    let packed: Vec<&String> = keys.iter().filter(|key| !lake.join(format!("manifest/{key}.json")).exists()).collect();
    assert_eq!((keys.len(), packed.len()), (5, 3));
    let pack = || std::fs::read_dir(lake.join("manifest/packed")).unwrap().next().unwrap().unwrap().file_name();
    let before = pack();
    for more in [
        &["--set", "baseline=2026-11", packed[1]][..],
        &["--set", "n=1", "--unset", "branch", packed[0], &keys[4]],
        &["--set", "n=2", "--where", "branch=main"],
        &["--unset", "n", "--unset", "branch", "--unset", "baseline", "--all"],
        &["--set", "branch=main", "--all"],
        &["--set", "baseline=2026-12", packed[2]],
    ] {
        let planned = done("label", &lake, &[more, &["--dry-run"]].concat());
        let [said, plainly] = [&lake, &plain].map(|lake| done("label", lake, more));
        assert_eq!(said, plainly, "{more:?}");
        assert_eq!(planned.replace("would get", "have").lines().count(), said.lines().count(), "{more:?}");
        same(&format!("{more:?}"));
    }
    assert!(pack() != before, "another pack has taken its place");
    let now = pack();
    assert!(done("label", &lake, &["--set", "branch=main", "--all"]).starts_with("0 recordings"));
    assert_eq!(pack(), now, "nothing is written for labels that are there");
    // A baseline that begins with a label, before and after another compaction.
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "rules = [\"gc.count >= 0\", \"gc.count <= baseline * 1000\"]\n").unwrap();
    let checked = |lake: &Path| {
        let since = ["--new", "branch=none", "--baseline", "branch=main", "--since", "baseline=2026-12", "--json"];
        let run = run(&[&["check", text(lake), "--rules", text(&rules)], &since[..]].concat());
        (run.code, run.out, run.err)
    };
    let expected = checked(&plain);
    assert_eq!(checked(&lake), expected);
    done("compact", &lake, &["--grace", "0"]);
    same("compacted again");
    assert_eq!(checked(&lake), expected);
}

#[test]
fn a_damaged_entry_of_a_pack_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    append(&lake, &SAMPLES[..3], &["--tables", "gc"]);
    done("compact", &lake, &["--grace", "0"]);
    let whole = content(&lake);
    let entry = std::fs::read_dir(lake.join("manifest/packed")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&entry).unwrap();
    std::fs::write(&entry, text.replace("\"gc\"", "\"../gc\"")).unwrap();
    for (command, code) in [("list", 2), ("verify", 2), ("repair", 2)] {
        let run = dataset(command, &lake, &[]);
        assert!(run.code == Some(code) && (run.err + &run.out).contains("packed"), "{command}");
    }
    std::fs::write(&entry, text).unwrap();
    done("repair", &lake, &[]);
    assert!(whole == content(&lake));
}

#[cfg(target_os = "linux")]
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        std::fs::remove_dir_all(to).unwrap();
    }
    for (name, bytes) in files(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Wherever it is killed: readers of entries find each row at once, a glob finds none twice, and the next run finishes
/// or forgets what was begun.
#[cfg(target_os = "linux")]
#[test]
fn a_kill_at_each_step_of_a_compaction_loses_nothing_and_doubles_nothing() {
    if !can_trace("a_kill_at_each_step_of_a_compaction_loses_nothing_and_doubles_nothing") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [plain, packed, at] = ["plain", "packed", "at"].map(|name| folder.path().join(name));
    append(&packed, &SAMPLES[..2], &["--tables", "gc,gc_pause"]);
    done("compact", &packed, &["--grace", "0"]);
    append(&packed, &SAMPLES[2..3], &["--tables", "gc,gc_pause"]);
    append(&plain, &SAMPLES[1..3], &["--tables", "gc,gc_pause"]);
    let key = Dataset::open(&packed)
        .unwrap()
        .recordings()
        .iter()
        .find(|r| r.trace_id.starts_with("gc-churn-4"))
        .map(|r| r.trace_id.clone());
    let key = key.expect("a recording of the pack");
    let mut all = 0;
    for (lake, command) in [
        (&plain, vec!["compact", "--grace", "0"]),
        (&packed, vec!["compact"]),
        (&packed, vec!["remove", &key]),
        (&packed, vec!["expire", "--keep-last", "1"]),
        (&packed, vec!["expire", "--keep-last", "1", "--keep-tables", "gc_pause"]),
    ] {
        let (what, more) = command.split_first().unwrap();
        let before = rows(lake);
        copy(lake, &at);
        done(what, &at, more);
        let (after, undisturbed) = (rows(&at), content(&at));
        let mut kills = 0;
        loop {
            copy(lake, &at);
            let mut killed = killed_at(NAMES, kills + 1);
            let is_done = killed.args(["dataset", what]).arg(&at).args(more).status().unwrap().success();
            // Of several packs and recordings each goes by itself.
            let now = rows(&at);
            let is_one_of_both =
                now.iter().all(|(name, rows)| before.get(name) == Some(rows) || after.get(name) == Some(rows));
            assert!(is_one_of_both, "{command:?}, kill {}", kills + 1);
            assert!(
                after.keys().all(|name| now.contains_key(name)),
                "{command:?}, kill {}: a table is lost",
                kills + 1
            );
            let most = sums(&before);
            for (table, rows) in globbed(&at) {
                assert!(rows <= most[&table], "{command:?}, kill {}: {table} has {rows} rows", kills + 1);
            }
            done("repair", &at, &[]);
            let verified = dataset("verify", &at, &[]);
            assert_eq!(verified.code, Some(0), "{command:?}, kill {}: {}", kills + 1, verified.out);
            let finished = dataset(what, &at, more);
            assert!(finished.code == Some(0) || *what == "remove", "{command:?}, kill {}: {}", kills + 1, finished.err);
            assert!(rows(&at) == after, "{command:?}, kill {}", kills + 1);
            assert_eq!(globbed(&at), sums(&after), "{command:?}, kill {}", kills + 1);
            let visible = |content: BTreeMap<String, Vec<u8>>| {
                content.into_iter().filter(|(name, _)| !name.starts_with('.')).collect::<BTreeMap<_, _>>()
            };
            assert!(visible(content(&at)) == visible(undisturbed.clone()), "{command:?}, kill {}", kills + 1);
            if is_done {
                break;
            }
            kills += 1;
            assert!(kills < 2000, "it does not end");
        }
        assert!(kills >= 8, "{command:?}: {kills} kills");
        all += kills;
        println!("{command:?}: {kills} kills");
    }
    println!("{all} kills");
}

/// Two compactors, writers, and who removes, all at once. Not on Windows, which replaces no file that a reader has
/// open.
#[cfg(unix)]
#[test]
fn compactors_work_beside_each_other_and_beside_writers() {
    let folder = tempfile::tempdir().unwrap();
    let [lake, plain] = ["lake", "plain"].map(|name| folder.path().join(name));
    let tables = ["--tables", "gc,gc_pause,event_type"];
    append(&lake, &SAMPLES[..2], &tables);
    append(&plain, &SAMPLES, &tables);
    let expected = rows(&plain);
    let key = Dataset::open(&lake).unwrap().recordings()[0].trace_id.clone();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let compacted = dataset("compact", &lake, &["--grace", "1h"]);
                    assert_eq!(compacted.code, Some(0), "{}", compacted.err);
                }
            });
        }
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                // What is there is whole.
                for (name, found) in rows(&lake) {
                    assert!(expected.get(&name) == Some(&found), "{name:?}");
                }
                looks += 1;
            }
            looks
        });
        for name in &SAMPLES[2..] {
            append(&lake, &[name], &tables);
            let _ = dataset("remove", &lake, &[&key]);
            append(&lake, &SAMPLES[..2], &tables);
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(looks > 0);
    done("compact", &lake, &["--grace", "0"]);
    assert!(rows(&lake) == expected);
    assert_eq!(globbed(&lake), sums(&expected));
    assert_eq!(dataset("verify", &lake, &[]).code, Some(0));
    assert_eq!(std::fs::read_dir(lake.join("manifest/packed")).unwrap().count(), 1);
}
