//! Growing datasets in a store in memory with failures on demand.

use std::sync::atomic::AtomicU32;

use super::super::tests::memory::Memory;
use crate::files::{Lake, Put};
use arrow_schema::{DataType, Field, Schema};
use tracequet_dataset::format::AddressType;
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::write::{DatasetOptions, DatasetWriter, Encoders, Encoding, TableSpec};

use super::*;
use crate::upkeep::{Written, check_head, describe as describe_as, mend, of};

const TABLES: [&str; 2] = ["gc", "event/P/E"];

fn entry(key: &str) -> Vec<u8> {
    let tables = TABLES.map(|name| serde_json::json!({ "name": name, "rows": 1, "bytes": 4 }));
    let entry = serde_json::json!({
        "trace_id": key, "path": key, "sha256": key, "status": "ok", "schema_version": SCHEMA_VERSION, "tables": tables,
        "events": 1, "dropped_events": 0, "complete": true,
    });
    entry.to_string().into_bytes()
}

fn lake(store: &Arc<Memory>) -> Lake {
    let address = Address::parse(Path::new("s3://bucket/lake")).unwrap().unwrap();
    of(Bucket::of(store.clone(), address).unwrap())
}

fn describe(lake: &Lake) {
    describe_as(lake, Written::default(), false).unwrap();
}

/// Makes the files of a recording, and puts it.
fn put(lake: &Lake, key: &str, replaced: &[&str]) -> Result<Put> {
    let options = DatasetOptions { partition: Some(paths::partition(key)), ..DatasetOptions::default() };
    let mut part = DatasetWriter::part_of(lake.storage().folder(), Encoders::start(1), options)?;
    for name in TABLES {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        part.table(TableSpec { name: name.into(), schema, encodings: vec![Encoding::Plain], sorted_by: Vec::new() })?;
    }
    part.close_tables(&[])?;
    let replaced = replaced.iter().map(|key| (*key).to_owned()).collect();
    Ok(lake.put(&[NewRecording::new(key, part, &entry(key), replaced)?])?[0])
}

/// The recordings that the summary has.
fn summed(store: &Memory) -> Vec<String> {
    let (bytes, _) = read(store, "lake/manifest.json", u64::MAX).unwrap().unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let inputs = manifest["inputs"].as_array().unwrap().iter();
    // One that another has replaced is named until it is deleted, with no recordings.
    let packs = manifest["packs"].as_array().into_iter().flatten().filter(|pack| pack["recordings"] != 0);
    let packed = packs.flat_map(|pack| {
        let name = pack["name"].as_str().unwrap();
        let (text, _) = read(store, &format!("lake/{}", paths::entry(name)), u64::MAX).unwrap().unwrap();
        let pack: tracequet_dataset::format::Pack = tracequet_dataset::format::Pack::parse(name, &text).unwrap();
        pack.members.into_iter().map(|member| member.recorded.trace_id).collect::<Vec<_>>()
    });
    let packed: Vec<String> = packed.collect();
    let own = inputs.map(|input| input["trace_id"].as_str().unwrap().to_owned());
    let mut all: Vec<String> = own.chain(packed).collect();
    all.sort();
    all
}

fn on_write(store: &Memory, at: impl Fn(&Memory, &str) -> std::result::Result<(), Failure> + Send + Sync + 'static) {
    *store.before.lock().unwrap() = Some(Arc::new(at));
}

#[test]
fn an_entry_comes_when_all_files_are_there() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    on_write(&store, |store, key| {
        let count = store.keys().len();
        if key == "lake/manifest/a.json" && count != 2 {
            return Err(Failure::other(format!("{count} files are there")));
        }
        Ok(())
    });
    assert_eq!(put(&lake, "a", &[]).unwrap(), Put::Done);
    assert_eq!(std::fs::read_dir(lake.storage().folder()).unwrap().count(), 0, "its files are needed no more");
    on_write(&store, |_, key| match key.contains("event/") {
        true => Err(Failure::other("the network is down")),
        false => Ok(()),
    });
    let failed = put(&lake, "b", &[]).unwrap_err().to_string();
    assert!(failed.contains("s3://bucket/lake: the network is down"), "{failed}");
    assert!(!store.keys().contains(&"lake/manifest/b.json".to_owned()));
}

#[test]
fn files_of_tables_without_rows_are_uploaded_once() {
    use crate::upkeep::Empty;
    use tracequet_dataset::table::select::Selection;

    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    let encoders = Encoders::start(1);
    let put = |tables: &[&str], version| {
        let tables: Vec<String> = tables.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::new(&tables).unwrap();
        Empty::of(AddressType::default(), &selection, DatasetOptions::default())
            .unwrap()
            .put(&lake, &encoders, version)
            .unwrap();
    };
    let gc = "lake/gc/trace=none/part-0.parquet";
    put(&["gc"], None);
    let keys = store.keys();
    assert!(keys.len() == 4 && keys.contains(&gc.to_owned()), "{keys:?}");
    store.set(gc, b"as it is");
    put(&["gc", "gc_pause"], Some(SCHEMA_VERSION));
    let content = |key: &str| read(store.as_ref(), key, u64::MAX).unwrap().unwrap().0;
    assert_eq!((store.keys().len(), content(gc).as_slice()), (5, &b"as it is"[..]));
    // The tables of another version may have had other columns.
    put(&["gc"], Some(SCHEMA_VERSION - 1));
    assert!(content(gc).starts_with(b"PAR1"));
    describe(&lake);
    let manifest = String::from_utf8(content("lake/manifest.json")).unwrap();
    assert!(manifest.contains("\"gc\""), "{manifest}");
}

#[test]
fn two_who_sum_up_at_once_lose_nothing() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    put(&lake, "a", &[]).unwrap();
    let others = AtomicU32::new(0);
    on_write(&store, move |store, key| {
        // Another one comes between the reading of the entries and the writing of the summary, three times.
        if key == "lake/manifest.json" && others.load(Ordering::Acquire) < 3 {
            let other = format!("other{}", others.fetch_add(1, Ordering::AcqRel) + 1);
            store.set(&format!("lake/manifest/{other}.json"), &entry(&other));
            store.set("lake/manifest.json", b"{}");
        }
        Ok(())
    });
    describe(&lake);
    assert_eq!(summed(&store), ["a", "other1", "other2", "other3"]);
    assert!(lake.storage().note().is_none());
}

#[test]
fn a_recording_that_somebody_else_wrote_stays() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    on_write(&store, |store, key| {
        match key {
            "lake/manifest/a.json" => store.set(key, b"{\"trace_id\": \"a\", \"sha256\": \"a\"}"),
            "lake/manifest/c.json" => store.set(key, b"{\"trace_id\": \"c\", \"sha256\": \"another\"}"),
            _ => {}
        }
        Ok(())
    });
    assert_eq!(put(&lake, "a", &[]).unwrap(), Put::WasThere);
    assert_eq!(put(&lake, "a", &[]).unwrap(), Put::WasThere, "without an upload");
    assert_eq!(put(&lake, "c", &[]).unwrap(), Put::IsTaken);
    assert_eq!(put(&lake, "c", &[]).unwrap(), Put::IsTaken, "without an upload");
    // The answer to our own request was lost, and it was sent again.
    on_write(&store, |store, key| {
        if key == "lake/manifest/b.json" {
            store.set(key, &entry("b"));
        }
        Ok(())
    });
    assert_eq!(put(&lake, "b", &[]).unwrap(), Put::Done);
}

#[test]
fn what_is_replaced_goes_first() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    put(&lake, "old", &[]).unwrap();
    assert_eq!(put(&lake, "new", &["old", "never"]).unwrap(), Put::Done);
    let keys = store.keys();
    assert!(keys.iter().all(|key| !key.contains("old")) && keys.len() == 3, "{keys:?}");
    describe(&lake);
    assert!(lake.remove("new").unwrap() && !lake.remove("new").unwrap());
    // An entry that does not say what there is.
    put(&lake, "torn", &[]).unwrap();
    store.set("lake/manifest/torn.json", b"{");
    assert!(lake.remove("torn").unwrap());
    describe(&lake);
    assert_eq!((summed(&store).len(), store.keys().len()), (0, 2));
}

#[test]
fn a_store_without_conditions_is_told() {
    let store = Arc::new(Memory { unconditional: true, ..Memory::default() });
    let lake = lake(&store);
    put(&lake, "a", &[]).unwrap();
    describe(&lake);
    assert_eq!(summed(&store), ["a"]);
    assert!(lake.storage().note().unwrap().contains("one run at a time"));
}

#[test]
fn something_else_is_not_added_to() {
    let store = Arc::new(Memory::default());
    let check = || check_head(&lake(&store), Written::default());
    // Another run has begun, and has no entry yet.
    store.set("lake/gc/trace=none/part-0.parquet", b"no rows");
    store.set("lake/event/P/E/trace=a-00000000/part-0.parquet", b"rows");
    assert_eq!(check().unwrap(), None);
    // It has gone on since the manifest was looked for.
    let holds = || lake(&store).storage().holds().unwrap();
    for name in ["views.sql", "manifest.json", "manifest/a-00000000.json"] {
        store.set(&format!("lake/{name}"), b"{}");
        assert_eq!(holds(), Holds::Recordings);
    }
    store.objects.lock().unwrap().retain(|key, _| key.contains("/trace="));
    for name in ["manifest.json.bak", "cat.jpg"] {
        store.set(&format!("lake/{name}"), b"cat");
        assert_eq!(holds(), Holds::SomethingElse);
        assert!(check().unwrap_err().to_string().contains("something else"));
        store.delete(&format!("lake/{name}")).unwrap();
    }
    store.objects.lock().unwrap().clear();
    assert_eq!((holds(), check().unwrap()), (Holds::Nothing, None));
}

/// They cost themselves, and can be removed.
#[test]
fn entries_that_are_too_large_or_lead_out_are_damaged() {
    let store = Arc::new(Memory::default());
    let first = lake(&store);
    for key in ["a", "b", "c"] {
        put(&first, key, &[]).unwrap();
    }
    store.set("lake/manifest/a.json", &vec![b' '; MOST_ENTRY_BYTES as usize + 1]);
    let out = String::from_utf8(entry("b")).unwrap().replace("\"gc\"", "\"../../away\"");
    store.set("lake/manifest/b.json", out.as_bytes());
    store.set("away/trace=b/part-0.parquet", b"rows");
    let opened = lake(&store).summed(false).unwrap();
    let damaged: Vec<&str> = opened.damaged().iter().map(|damaged| damaged.key.as_str()).collect();
    assert_eq!((damaged, opened.len()), (vec!["a", "b"], 1));
    describe(&first);
    assert_eq!(summed(&store), ["c"]);
    for key in ["a", "b"] {
        assert!(first.remove(key).unwrap());
    }
    let keys = store.keys();
    assert!(!keys.iter().any(|key| key.starts_with("lake/") && key.contains("trace=a")), "{keys:?}");
    assert!(keys.contains(&"away/trace=b/part-0.parquet".to_owned()) && keys.len() == 1 + 5, "{keys:?}");
}

#[test]
fn a_manifest_is_made_anew_in_a_store() {
    let store = Arc::new(Memory::default());
    let first = lake(&store);
    put(&first, "a", &[]).unwrap();
    describe_as(&first, Written { address_type: AddressType::Int64, ..Written::default() }, false).unwrap();
    let (whole, _) = read(store.as_ref(), "lake/manifest.json", u64::MAX).unwrap().unwrap();
    // Another writer was killed before it updated the manifest, and the row counts in the manifest were edited.
    put(&first, "b", &[]).unwrap();
    let other = String::from_utf8(whole).unwrap().replace("\"rows\":1", "\"rows\":7");
    store.set("lake/manifest.json", other.as_bytes());
    assert_eq!(mend(&lake(&store)).unwrap(), Vec::<String>::new());
    assert_eq!(summed(&store), ["a", "b"]);
    let (text, _) = read(store.as_ref(), "lake/manifest.json", u64::MAX).unwrap().unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\"rows\":2") && text.contains("int64") && !text.contains("\"rows\":7"), "{text}");
}

/// A thousand requests for a thousand entries are slow.
#[test]
fn entries_that_the_manifest_has_are_not_fetched() {
    let store = Arc::new(Memory::default());
    let first = lake(&store);
    for key in ["a", "b", "c"] {
        put(&first, key, &[]).unwrap();
    }
    describe(&first);
    let fetched = |run: &dyn Fn(&Lake)| {
        store.got.lock().unwrap().clear();
        let lake = lake(&store);
        let keys: Vec<String> =
            lake.summed(false).unwrap().recordings().iter().map(|line| line.key().to_owned()).collect();
        run(&lake);
        describe(&lake);
        let mut got = store.got.lock().unwrap().clone();
        got.retain(|key| key.starts_with("lake/manifest/"));
        (keys.join(" "), got.join(" ").replace("lake/manifest/", ""))
    };
    assert_eq!(fetched(&|_| {}), ("a b c".into(), String::new()));
    let one_more = fetched(&|lake| assert_eq!(put(lake, "d", &[]).unwrap(), Put::Done));
    assert_eq!(one_more, ("a b c".into(), "d.json".into()));
    assert_eq!(summed(&store), ["a", "b", "c", "d"]);
    // Another one in the place of b, by a run that was killed before it summed up.
    let other = String::from_utf8(entry("b")).unwrap().replace("\"rows\":1", "\"rows\":5");
    store.set("lake/manifest/b.json", other.as_bytes());
    assert_eq!(fetched(&|_| {}).1.matches("json").count(), 4);
    let (bytes, _) = read(store.as_ref(), "lake/manifest.json", u64::MAX).unwrap().unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(manifest["tables"][0]["rows"], 8);
    // The same failure again.
    store.got.lock().unwrap().clear();
    let again = lake(&store);
    let before = store.keys();
    // A program that replaces files holds the lease.
    on_write(&store, |_, key| match key.ends_with("manifest/.lease") {
        true => Ok(()),
        false => Err(Failure::other(format!("{key} is written"))),
    });
    assert_eq!(put(&again, "a", &["a", "a"]).unwrap(), Put::Done);
    assert_eq!(store.keys(), before);
}

/// A lake that names no table loses the views of those without rows.
#[test]
fn tables_without_rows_stay_when_a_recording_goes() {
    let store = Arc::new(Memory::default());
    let first = lake(&store);
    put(&first, "a", &[]).unwrap();
    store.set("lake/gc_pause/trace=none/part-0.parquet", b"no rows");
    describe(&first);
    let tables = || {
        let (bytes, _) = read(store.as_ref(), "lake/manifest.json", u64::MAX).unwrap().unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let tables = manifest["tables"].as_array().unwrap().iter();
        tables.map(|table| table["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tables(), ["gc", "gc_pause", "event/P/E"]);
    let again = lake(&store);
    assert!(again.remove("a").unwrap());
    describe(&again);
    assert_eq!(tables(), ["gc_pause"]);
}

#[test]
fn tables_of_a_recording_go_after_its_entry_has_changed() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    for key in ["a", "ab"] {
        put(&lake, key, &[]).unwrap();
    }
    describe(&lake);
    assert_eq!(lake.shrink("a", |table| table == "gc").unwrap(), Some(4));
    assert_eq!(lake.shrink("a", |table| table == "gc").unwrap(), Some(0));
    assert_eq!(lake.shrink("b", |_| false).unwrap(), None);
    describe(&lake);
    let keys: Vec<String> = store.keys().into_iter().filter(|key| key.ends_with("parquet")).collect();
    let of = |name: &str| format!("lake/{name}/part-0.parquet");
    assert_eq!(keys, ["event/P/E/trace=ab", "gc/trace=a", "gc/trace=ab"].map(of));
    let (text, _) = read(store.as_ref(), "lake/manifest.json", u64::MAX).unwrap().unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#"{"name":"event/P/E","rows":1,"bytes":4}"#), "{text}");
}

/// A recording with rows of the table `gc`.
fn put_rows(lake: &Lake, key: &str, rows: &[i64]) {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch};

    let options = DatasetOptions { partition: Some(paths::partition(key)), ..DatasetOptions::default() };
    let mut part = DatasetWriter::part_of(lake.storage().folder(), Encoders::start(1), options).unwrap();
    let keys: DictionaryArray<Int32Type> = rows.iter().map(|_| Some(key)).collect();
    let columns: [(&str, ArrayRef); 2] =
        [("trace_id", Arc::new(keys)), ("n", Arc::new(Int64Array::from(rows.to_vec())))];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, false))).unwrap();
    let encodings = vec![Encoding::Dictionary, Encoding::Delta];
    let id = part
        .table(TableSpec { name: "gc".into(), schema: batch.schema(), encodings, sorted_by: vec!["n".into()] })
        .unwrap();
    part.write(id, batch).unwrap();
    let written = part.close_tables(&[]).unwrap();
    let entry = serde_json::json!({
        "trace_id": key, "path": key, "sha256": key, "status": "ok", "schema_version": SCHEMA_VERSION,
        "tables": [{ "name": "gc", "rows": rows.len(), "bytes": written[0].bytes }],
        "events": 1, "dropped_events": 0, "complete": true, "start": "2026-11-01T00:00:00.000Z",
    });
    let new = NewRecording::new(key, part, entry.to_string().as_bytes(), Vec::new()).unwrap();
    assert_eq!(lake.put(&[new]).unwrap(), [Put::Done]);
}

/// The rows of each recording, as readers of entries find them.
fn rows_of(store: &Arc<Memory>) -> std::collections::BTreeMap<String, Vec<u64>> {
    use super::super::dataset::StoredDataset;
    use tracequet_dataset::read::{Column, Dataset};

    let address = Address::parse(Path::new("s3://bucket/lake")).unwrap().unwrap();
    let stored = StoredDataset::open(store.clone(), address).unwrap().unwrap();
    stored.copy_tables(&["gc"]).unwrap();
    let dataset = Dataset::open(stored.path()).unwrap();
    let rows = |recording: tracequet_dataset::read::Recording<'_>| {
        let mut rows = Vec::new();
        for batch in recording.table("gc").unwrap().scan().batches().unwrap() {
            let batch = batch.unwrap();
            let column = Column::of(&batch, "n").unwrap();
            rows.extend((0..batch.num_rows()).filter_map(|row| column.number(row)));
        }
        (recording.info().trace_id.clone(), rows)
    };
    dataset.each_recording().map(rows).collect()
}

/// How often a glob finds each row, by the places of files.
fn globbed(store: &Arc<Memory>) -> Vec<u64> {
    use tracequet_dataset::read::{Column, Table};

    let folder = tempfile::tempdir().unwrap();
    let mut rows = Vec::new();
    for key in store.keys().iter().filter(|key| key.starts_with("lake/gc/") && !key.contains("trace=none")) {
        let path = folder.path().join("file.parquet");
        std::fs::write(&path, read(store.as_ref(), key, u64::MAX).unwrap().unwrap().0).unwrap();
        for batch in Table::of_file("gc", path, tracequet_dataset::format::Format::Parquet).scan().batches().unwrap() {
            let batch = batch.unwrap();
            let column = Column::of(&batch, "n").unwrap();
            rows.extend((0..batch.num_rows()).filter_map(|row| column.number(row)));
        }
    }
    rows.sort_unstable();
    rows
}

/// A compaction and a removal fail at each of their writes in turn: readers of entries find all rows, a glob finds none
/// twice, and the next run finishes.
#[test]
fn a_store_that_fails_in_the_middle_of_a_compaction_loses_nothing() {
    use crate::compact::{Limits, compact, take_out};

    let made = || {
        let store = Arc::new(Memory::default());
        let lake = lake(&store);
        put_rows(&lake, "a-1", &[1, 2, 3]);
        put_rows(&lake, "b-1", &[4]);
        compact(&lake, SCHEMA_VERSION, &Limits::default()).unwrap();
        put_rows(&lake, "c-1", &[5, 6]);
        describe(&lake);
        store
    };
    let all: std::collections::BTreeMap<String, Vec<u64>> =
        [("a-1", vec![1, 2, 3]), ("b-1", vec![4]), ("c-1", vec![5, 6])]
            .map(|(key, rows)| (key.to_owned(), rows))
            .into();
    let store = made();
    assert_eq!((rows_of(&store), globbed(&store)), (all.clone(), vec![1, 2, 3, 4, 5, 6]));
    type Step<'s> = (&'s str, &'s dyn Fn(&Lake) -> Result<()>, usize);
    let steps: [Step<'_>; 2] = [
        ("compact", &|lake| compact(lake, SCHEMA_VERSION, &Limits::default()).map(drop), 0),
        ("remove", &|lake| take_out(lake, &["a-1".to_owned()], 1).map(drop), 1),
    ];
    for (what, step, gone) in steps {
        let mut failures = 0;
        loop {
            let store = made();
            let own = lake(&store);
            let count = Arc::new(AtomicU32::new(0));
            let counted = count.clone();
            let at = failures;
            on_write(&store, move |_, key| {
                // The lease is renewed by time, and given back in any case.
                let number = if key.ends_with(".lease") { u32::MAX } else { counted.fetch_add(1, Ordering::AcqRel) };
                if number == at { Err(Failure::other("the network is down")) } else { Ok(()) }
            });
            let outcome = step(&own);
            *store.before.lock().unwrap() = None;
            let rows = rows_of(&store);
            assert!(
                rows.iter().all(|(key, rows)| all[key] == *rows) && rows.len() + gone >= 3,
                "{what} {at}: {rows:?}"
            );
            assert!(globbed(&store).windows(2).all(|pair| pair[0] < pair[1]), "{what} {at}: {:?}", globbed(&store));
            let next = lake(&store);
            next.storage().open().unwrap();
            step(&next).unwrap();
            describe(&next);
            let rows = rows_of(&store);
            assert_eq!(rows.len(), 3 - gone, "{what} {at}");
            let mut expected: Vec<u64> = rows.values().flatten().copied().collect();
            expected.sort_unstable();
            assert_eq!(globbed(&store), expected, "{what} {at}");
            assert!(!store.keys().iter().any(|key| key.ends_with(".lease")), "{what} {at}");
            assert_eq!(summed(&store), rows.into_keys().collect::<Vec<_>>(), "{what} {at}");
            if outcome.is_ok() {
                break;
            }
            failures += 1;
            assert!(failures < 100, "it does not end");
        }
        assert!(failures >= 6, "{what}: {failures}");
    }
}

/// Who finds a lease of a killed program waits, and two that take places do so one after the other.
#[test]
fn compactors_of_a_store_wait_for_each_other() {
    use crate::compact::{Limits, compact};

    let store = Arc::new(Memory::default());
    let first = lake(&store);
    for (key, rows) in [("a-1", [1, 2]), ("b-1", [3, 4]), ("c-1", [5, 6])] {
        put_rows(&first, key, &rows);
    }
    let made: Vec<u64> = std::thread::scope(|scope| {
        let work = || {
            let own = lake(&store);
            compact(&own, SCHEMA_VERSION, &Limits { threads: 1, ..Limits::default() }).unwrap().made
        };
        let threads = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.iter().sum::<u64>(), 1, "{made:?}");
    describe(&first);
    assert_eq!(globbed(&store), [1, 2, 3, 4, 5, 6]);
    assert_eq!(rows_of(&store).len(), 3);
}

#[test]
fn labels_change_if_the_entry_is_the_one_that_was_read() {
    let store = Arc::new(Memory::default());
    let lake = lake(&store);
    put(&lake, "a", &[]).unwrap();
    let content = |key: &str| read(store.as_ref(), key, u64::MAX).unwrap().map(|found| found.0);
    let label = |name: &str| {
        let change = |labels: &mut tracequet_dataset::format::Labels| {
            labels.insert(name.to_owned(), "1".to_owned());
        };
        lake.relabel("a", change, |_| {
            let options = DatasetOptions { partition: Some(paths::partition("a")), ..DatasetOptions::default() };
            let mut part = DatasetWriter::part_of(lake.storage().folder(), Encoders::start(1), options)?;
            let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
            let (encodings, sorted_by) = (vec![Encoding::Plain], Vec::new());
            part.table(TableSpec { name: paths::LABELS.into(), schema, encodings, sorted_by })?;
            part.close_tables(&[])?;
            Ok(part)
        })
    };
    // Another one changes it between the reading and the writing, once.
    let others = AtomicU32::new(0);
    on_write(&store, move |store, key| {
        if key == "lake/manifest/a.json" && others.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut other: serde_json::Value = serde_json::from_slice(&entry("a")).unwrap();
            other["labels"] = serde_json::json!({ "other": "1" });
            store.set(key, other.to_string().as_bytes());
        }
        Ok(())
    });
    assert_eq!(label("own").unwrap(), Some(true));
    let there: serde_json::Value = serde_json::from_slice(&content("lake/manifest/a.json").unwrap()).unwrap();
    assert_eq!(there["labels"], serde_json::json!({ "other": "1", "own": "1" }));
    assert!(content("lake/trace_label/trace=a/part-0.parquet").is_some());
    assert_eq!(label("own").unwrap(), Some(false));
    // Nothing is written when the entry cannot be.
    store.delete("lake/trace_label/trace=a/part-0.parquet").unwrap();
    on_write(
        &store,
        |_, key| if key.contains("manifest") { Err(Failure::other("the network is down")) } else { Ok(()) },
    );
    assert!(label("more").is_err());
    assert!(content("lake/trace_label/trace=a/part-0.parquet").is_none());
}
