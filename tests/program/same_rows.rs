//! The same recording gives the same rows in every way of converting it: on one core or two, from a file or a pipe, as
//! Parquet or Arrow, all tables or some, alone or among others.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::Field;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::files::files;
use crate::support::skip::skip;

/// One recording of each format, with much in it.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let sample = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let mut found =
        ["gc-churn.nettrace", "heap-10.nettrace", "stacks.nettrace", "events.nettrace"].map(sample).to_vec();
    let made =
        [("callbacks.corprof", crate::callback::damage::sample()), ("machine.etl", crate::etl::processes::recording())];
    for (name, bytes) in made {
        std::fs::write(folder.join(name), bytes).unwrap();
        found.push(folder.join(name));
    }
    found
}

fn tracequet() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tracequet"))
}

/// Converts with a command that lacks only the arguments of `convert`; gives the exit code.
fn convert(mut command: Command, input: &str, out: &Path, options: &[&str]) -> i32 {
    command.args(["convert", "--quiet", input, "-o"]).arg(out).args(options);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap();
    assert!(matches!(code, 0 | 2), "{command:?}: {code}: {errors}");
    code
}

/// The columns of a table without dictionaries, each in one piece.
type Rows = BTreeMap<String, ArrayRef>;

/// The tables of a whole dataset by their names.
fn tables(folder: &Path) -> BTreeMap<String, Rows> {
    let found = read_tables(folder);
    assert!(found.len() > 20, "{} tables", found.len());
    found
}

fn read_tables(folder: &Path) -> BTreeMap<String, Rows> {
    let mut found = BTreeMap::new();
    // Last those without rows, which a dataset of several recordings has for those that have none.
    let (empty, recorded): (Vec<String>, Vec<String>) =
        files(folder).into_keys().partition(|name| name.contains("/trace=none/"));
    let others = recorded.len();
    for (number, name) in recorded.into_iter().chain(empty).enumerate() {
        let path = folder.join(&name);
        // Of several recordings: the table is the folder of the file's folder.
        let table = |ending: &str| {
            let name = name.strip_suffix(ending)?;
            let Some((table, _)) = name.split_once("/trace=") else { return Some(name.to_owned()) };
            // There the columns of events that a recording describes itself are a part of the name.
            let is_hash = |end: &str| end.len() == 8 && end.bytes().all(|b| b.is_ascii_hexdigit());
            let event = table.rsplit_once('.').filter(|(event, end)| event.starts_with("event/") && is_hash(end));
            Some(event.map_or(table, |(event, _)| event).to_owned())
        };
        let (table, batches) = if let Some(table) = table(".parquet") {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            let schema = reader.schema().clone();
            let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
            (table, (schema, batches))
        } else if let Some(table) = table(".arrow") {
            let reader = arrow_ipc::reader::FileReader::try_new(File::open(path).unwrap(), None).unwrap();
            let schema = reader.schema();
            (table, (schema, reader.map(Result::unwrap).collect()))
        } else {
            continue;
        };
        let (schema, batches) = batches;
        let column = |(at, field): (usize, &Arc<Field>)| {
            let pieces: Vec<ArrayRef> = match batches.len() {
                0 => vec![plain(&arrow_array::new_empty_array(field.data_type()))],
                _ => batches.iter().map(|batch| plain(batch.column(at))).collect(),
            };
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            (field.name().clone(), arrow_select::concat::concat(&pieces).unwrap())
        };
        let rows: Rows = schema.fields().iter().enumerate().map(column).collect();
        if number < others {
            assert!(found.insert(table, rows).is_none(), "{name}: one recording");
        } else {
            assert!(rows.values().all(|column| column.is_empty()), "{name}: it is of no recording");
            found.entry(table).or_insert(rows);
        }
    }
    found
}

/// A column without dictionaries.
fn plain(column: &ArrayRef) -> ArrayRef {
    if let Some(labels) = column.as_any_dictionary_opt() {
        return arrow_select::take::take(labels.values(), labels.keys(), None).unwrap();
    }
    let Some(list) = column.as_list_opt::<i32>() else { return column.clone() };
    let values = plain(list.values());
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(ListArray::new(item, list.offsets().clone(), values, list.nulls().cloned()))
}

/// What differs between the tables of two datasets. `but` names columns, as `table.column`, about its conversion.
fn differences(one: &BTreeMap<String, Rows>, other: &BTreeMap<String, Rows>, but: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    for (table, rows) in one {
        let Some(others) = other.get(table) else {
            out.push(format!("{table}: missing"));
            continue;
        };
        for (column, values) in rows.iter().filter(|(column, _)| !but.contains(&format!("{table}.{column}").as_str())) {
            match others.get(column) {
                Some(other) if other.to_data() == values.to_data() => {}
                Some(other) => out.push(format!("{table}.{column}: {} rows, {} rows", values.len(), other.len())),
                None => out.push(format!("{table}.{column}: missing")),
            }
        }
    }
    out.extend(other.keys().filter(|table| !one.contains_key(*table)).map(|table| format!("{table}: new")));
    out
}

/// Converts every recording in the plain way and in another one, and compares the tables.
fn compare(but: &[&str], other: impl Fn(&Path, &Path) -> i32) {
    let folder = tempfile::tempdir().unwrap();
    for recording in recordings(folder.path()) {
        let (plain, otherwise) = (folder.path().join("plain"), folder.path().join("otherwise"));
        let code = convert(tracequet(), recording.to_str().unwrap(), &plain, &["--overwrite"]);
        assert_eq!(other(&recording, &otherwise), code, "{}: exit code", recording.display());
        let found = differences(&tables(&plain), &tables(&otherwise), but);
        assert!(found.is_empty(), "{}:\n{}", recording.display(), found.join("\n"));
    }
}

#[test]
fn one_core_and_two_give_the_same_bytes() {
    let affinity = Command::new("taskset").args(["-c", "0", "true"]).stderr(Stdio::null()).status();
    if !affinity.is_ok_and(|status| status.success()) {
        skip(
            "one_core_and_two_give_the_same_bytes",
            "no taskset, or processor 0 is not ours",
            "`apt-get install util-linux`",
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for recording in recordings(folder.path()) {
        let [one, all] = ["one", "all"].map(|name| folder.path().join(name));
        let mut on_one = Command::new("taskset");
        on_one.args(["-c", "0", env!("CARGO_BIN_EXE_tracequet")]);
        let recording = recording.to_str().unwrap();
        let codes = [
            convert(on_one, recording, &one, &["--overwrite"]),
            convert(tracequet(), recording, &all, &["--overwrite"]),
        ];
        assert_eq!(codes[0], codes[1], "{recording}");
        assert!(files(&one) == files(&all), "{recording}");
    }
}

#[test]
fn a_pipe_gives_the_rows_of_the_file() {
    compare(&["trace.path", "trace.blake3", "trace.size_bytes"], |recording, out| {
        let mut command = tracequet();
        command.stdin(File::open(recording).unwrap());
        // A file at standard input is not a pipe.
        let mut cat = Command::new("cat").arg(recording).stdout(Stdio::piped()).spawn().unwrap();
        command.stdin(cat.stdout.take().unwrap());
        let code = convert(command, "-", out, &["--overwrite"]);
        assert!(cat.wait().unwrap().success());
        code
    });
}

#[test]
fn arrow_files_hold_the_rows_of_parquet_files() {
    let options = ["--overwrite", "--format", "arrow"];
    compare(&[], |recording, out| convert(tracequet(), recording.to_str().unwrap(), out, &options));
}

#[test]
fn the_layout_and_the_compression_change_no_row() {
    let options = ["--overwrite", "--layout", "hive", "--compression", "snappy"];
    // A query names the recording where there are several.
    compare(&["event_type.table_name", "finding.evidence_sql"], |recording, out| {
        convert(tracequet(), recording.to_str().unwrap(), out, &options)
    });
}

#[test]
fn a_table_that_is_asked_for_has_the_rows_that_it_has_among_all() {
    let folder = tempfile::tempdir().unwrap();
    for recording in recordings(folder.path()) {
        let out = folder.path().join("out");
        let recording = recording.to_str().unwrap();
        convert(tracequet(), recording, &out, &["--overwrite"]);
        let mut all = tables(&out);
        let judged = all["diagnostic"]["code"]
            .as_string::<i32>()
            .iter()
            .any(|code| code.is_some_and(|c| c.ends_with("_payload")));
        // In turn, each with others that are made from the same events.
        let names: Vec<String> = all.keys().cloned().collect();
        let mut compared = 0;
        for chosen in names.chunks(7) {
            convert(tracequet(), recording, &out, &["--overwrite", "--tables", &chosen.join(",")]);
            for name in chosen {
                // How payloads fit their descriptions is known only for payload tables that are written.
                if judged && ["diagnostic", "event_type"].contains(&name.as_str()) {
                    continue;
                }
                let one = tables_of(&out, name);
                let found = differences(
                    &one,
                    &BTreeMap::from([(name.clone(), all.remove(name).unwrap())]),
                    &["event_type.table_name", "trace.status"],
                );
                assert!(found.is_empty(), "{recording}: --tables {}:\n{}", chosen.join(","), found.join("\n"));
                compared += 1;
            }
        }
        assert!(compared > 20, "{recording}: {compared} tables");
    }
}

/// One table of a dataset of one recording.
fn tables_of(out: &Path, table: &str) -> BTreeMap<String, Rows> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(format!("{table}.parquet"));
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(out.join(format!("{table}.parquet")), &copy).unwrap();
    read_tables(folder.path())
}

#[test]
fn a_recording_among_others_has_the_rows_that_it_has_alone() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = recordings(folder.path());
    let out = folder.path().join("all");
    let mut command = tracequet();
    command.args(["convert", "--quiet", "-o"]).arg(&out).args(&recordings);
    assert!(matches!(command.output().unwrap().status.code(), Some(0 | 2)));
    for recording in &recordings {
        let alone = folder.path().join("alone");
        convert(tracequet(), recording.to_str().unwrap(), &alone, &["--overwrite", "--layout", "hive"]);
        let mut own = files(&alone);
        let all = files(&out);
        own.retain(|name, _| name.ends_with(".parquet"));
        assert!(own.len() > 20);
        for (name, bytes) in own {
            // A payload table of several recordings has the columns of them all.
            if !name.starts_with("event/") {
                assert!(all.get(&name) == Some(&bytes), "{}: {name}", recording.display());
            }
        }
    }
}

#[test]
fn differences_are_found() {
    let column = |values: &[u64]| -> ArrayRef { Arc::new(arrow_array::UInt64Array::from(values.to_vec())) };
    let dataset = |table: &str, columns: &[(&str, &[u64])]| {
        let rows = columns.iter().map(|(name, values)| ((*name).to_owned(), column(values))).collect();
        BTreeMap::from([(table.to_owned(), rows)])
    };
    let one = dataset("t", &[("a", &[1, 2]), ("b", &[3, 4])]);
    assert_eq!(differences(&one, &one.clone(), &[]), [] as [&str; 0]);
    assert_eq!(differences(&one, &dataset("t", &[("a", &[1, 2]), ("b", &[4, 3])]), &[]), ["t.b: 2 rows, 2 rows"]);
    assert_eq!(differences(&one, &dataset("t", &[("a", &[1, 2]), ("b", &[4, 3])]), &["t.b"]), [] as [&str; 0]);
    assert_eq!(differences(&one, &dataset("t", &[("a", &[1, 2])]), &[]), ["t.b: missing"]);
    assert_eq!(differences(&one, &dataset("u", &[]), &[]), ["t: missing", "u: new"]);
}
