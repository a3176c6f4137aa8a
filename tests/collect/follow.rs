//! `tracequet collect --follow`: a recording that is read while it is made.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::dataset::Table;
use crate::support::live::{Folder, Program, each_runtime, ended, run, text, tracequet};
use crate::support::patience::wait_for;
use crate::support::python::python;

/// Counts rows as long as the recording runs, and again when its standard input ends; says how many there were each
/// time.
const COUNTS: &str = "
import duckdb, sys, time, json
out, seen = sys.argv[1], []
end = time.time() + 100
while time.time() < end and '\"unfinished\"' in open(sys.argv[2]).read():
    try:
        seen.append(duckdb.execute(f\"SELECT count(*) FROM '{out}/gc_pause/*/*.parquet'\").fetchone()[0])
        print('counted', flush=True)
    except duckdb.IOException as e:
        # The whole took the place of the parts between the list of files and the first read of them.
        assert 'No such file' in str(e)
    time.sleep(0.1)
sys.stdin.read()
seen.append(duckdb.execute(f\"SELECT count(*) FROM '{out}/gc_pause/*/*.parquet'\").fetchone()[0])
print(json.dumps(seen))
";

/// The files of a dataset, without those that are being written.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            if !entry.file_name().to_string_lossy().starts_with('.') {
                files.extend(self::files(&entry.path()));
            }
        } else {
            files.insert(entry.path());
        }
    }
    files
}

/// The files of a table that recordings have, without the one that has no rows.
fn parts(out: &Path, table: &str) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "parquet") && !path.parent().is_some_and(|p| p.ends_with("trace=none"))
    };
    files(&out.join(table)).into_iter().filter(is_part).collect()
}

/// Waits until a table has this many parts.
fn wait_for_parts(out: &Path, table: &str, count: usize) {
    wait_for(&format!("part {count} of {table}"), || parts(out, table).len() >= count);
}

/// The entry of the one recording, which comes after its first part.
fn only_entry(out: &Path) -> PathBuf {
    let mut entries = Vec::new();
    wait_for("the entry", || {
        let all = files(&out.join("manifest")).into_iter();
        entries = all.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
        !entries.is_empty()
    });
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

fn rows(out: &Path, table: &str) -> usize {
    parts(out, table).iter().map(|part| Table::open(part).rows()).sum()
}

#[test]
fn parts_can_be_read_while_they_are_recorded_and_the_whole_takes_their_place() {
    let Some(python) = python("collect --follow") else { return };
    for runtime in each_runtime("collect --follow").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let (out, keep, pid) = (folder.text("out"), folder.text("kept.nettrace"), program.id().to_string());
        let arguments = ["collect", "-p", &pid, "--for", "gc-survival", "--follow=1s", "--keep", &keep, "-o", &out];
        let collect = tracequet(&arguments).spawn().expect("it starts");
        let out = folder.path("out");
        wait_for_parts(&out, "gc_pause", 1);
        let entry = only_entry(&out);
        let mut counts = Command::new(&python);
        counts.args(["-c", COUNTS]).arg(&out).arg(&entry).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut counts = counts.spawn().expect("Python");
        let mut lines = BufReader::new(counts.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
        // More rows come than are there when it counts first.
        assert_eq!(lines.next().as_deref(), Some("counted"));
        wait_for_parts(&out, "gc_pause", parts(&out, "gc_pause").len() + 2);
        wait_for_parts(&out, "gc", 2);
        // What docs/LIVE.md says is there only at the end.
        let late = ["trace", "trace_label", "metric", "event_type", "thread", "process", "assembly", "managed_module"];
        for table in late.iter().chain(&["module", "enum_value", "callsite", "frame"]) {
            assert!(parts(&out, table).is_empty(), "{}: {table}", runtime.name);
        }
        Command::new("kill").args(["-INT", &collect.id().to_string()]).status().expect("kill");
        let output = ended(collect, "collect --follow");
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        drop(counts.stdin.take());
        let last = lines.last().expect("counts");
        counts.wait().expect("an end");
        let counts: Vec<u64> = serde_json::from_str(&last).expect("numbers");
        assert!(counts.is_sorted() && counts.first() < counts.last(), "{}: {counts:?}", runtime.name);
        // The whole is there, once, with everything that is in the recording.
        let again = folder.path("again");
        let output = run(&["convert", &keep, "--layout", "hive", "-o", &again.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        for table in
            ["gc", "gc_pause", "gc_surviving_range", "gc_moved_range", "method", "thread", "event_type", "trace"]
        {
            let has_rows = rows(&again, table) > 0;
            assert_eq!(parts(&out, table).len(), usize::from(has_rows), "{}: {table}", runtime.name);
            assert_eq!(rows(&out, table), rows(&again, table), "{}: {table}", runtime.name);
        }
        assert_eq!(*counts.last().expect("a count"), rows(&out, "gc_pause") as u64);
        let said = text(&run(&["dataset", "verify", &out.to_string_lossy()]));
        assert!(said.contains(" 0 wrong"), "{said}");
        assert!(text(&run(&["stats", &out.to_string_lossy()])).contains("gc"), "it is read like any dataset");
        let hidden = std::fs::read_dir(&out).expect("a folder").flatten();
        assert!(hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count() == 0);
    }
}

#[test]
fn a_recorder_that_is_killed_leaves_whole_parts() {
    for runtime in each_runtime("kill -9 of collect --follow").iter().take(1) {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let folder = Folder::new();
        let (out, pid) = (folder.text("out"), program.id().to_string());
        let arguments = ["collect", "-p", &pid, "--follow=1s", "-o", &out];
        let mut collect = tracequet(&arguments).spawn().expect("it starts");
        wait_for_parts(&folder.path("out"), "gc", 2);
        collect.kill().expect("a kill");
        collect.wait().expect("an end");
        let out_path = folder.path("out");
        assert!(rows(&out_path, "gc") > 0 && rows(&out_path, "gc_pause") > 0, "each part can be opened");
        for path in files(&out_path).iter().filter(|path| path.extension().is_some_and(|e| e == "parquet")) {
            Table::open(path);
        }
        let entry = only_entry(&out_path);
        let key = entry.file_stem().expect("a key").to_string_lossy().into_owned();
        let list = text(&run(&["dataset", "list", &out]));
        assert!(list.contains(&key) && list.contains("unfinished"), "{list}");
        let said = text(&run(&["survived", &out, "1", "0x1000"]));
        assert!(said.contains("is still written, or its recorder was killed"), "{said}");
        // It can be replaced like any dataset, though not where something else lies in it.
        let copy = folder.text("copy");
        assert!(Command::new("cp").args(["-r", &out, &copy]).status().is_ok_and(|status| status.success()));
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/events.nettrace");
        let arguments = ["convert", &sample.to_string_lossy(), "--overwrite", "--tables", "trace", "-o", &copy];
        let stray = folder.path("copy/gc").join(format!("trace={key}/part-x.parquet"));
        std::fs::write(&stray, "stray").expect("a file");
        let refused = text(&run(&arguments));
        assert!(refused.contains("part-x.parquet, which tracequet did not write"), "{refused}");
        std::fs::remove_file(&stray).expect("it is there");
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        // The next recording goes into the same dataset, and takes away what was not published.
        let output = run(&["collect", "-p", &pid, "--follow=1s", "--duration", "1", "-o", &out]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        let entries = std::fs::read_dir(&out_path).expect("a folder").flatten();
        assert!(entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count() == 0);
        let output = run(&["dataset", "remove", &out, &key]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let said = text(&run(&["dataset", "verify", &out]));
        assert!(said.contains(" 0 wrong"), "{said}");
    }
}
