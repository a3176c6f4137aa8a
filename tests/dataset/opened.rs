//! Opening a dataset: either format and layout, both types of addresses, chosen columns and rows, and what is damaged.

use std::path::{Path, PathBuf};

use tracequet::dataset::error::{Error, Result};
use tracequet::dataset::read::{Column, Dataset, Layout};
use tracequet::{AddressType, Compression, Convert, DatasetLayout, Format, convert};

/// A recording with 3,400 moved ranges, and one without any.
const MANY: &str = "samples/gc-churn.nettrace";
const NONE: &str = "samples/events.nettrace";

fn make(folder: &Path, inputs: &[&str], change: impl FnOnce(Convert) -> Convert) -> PathBuf {
    let output = folder.join("out");
    let request = change(Convert::new(inputs, &output).overwrite(true));
    convert(&request, &mut |_| {}).unwrap();
    output
}

/// All values of the columns of a table, as a program that only knows [`Column`] reads them.
fn rows(dataset: &Dataset, trace: Option<&str>, table: &str, columns: [&str; 2]) -> Result<Vec<[Option<u64>; 2]>> {
    let table = dataset.recording(trace)?.table(table)?;
    let mut rows = Vec::new();
    for batch in table.scan().columns(columns).batches()? {
        let batch = batch?;
        assert_eq!(batch.num_columns(), 2);
        assert!(batch.num_rows() <= 16_384);
        let [first, second] = columns.map(|name| Column::of(&batch, name).unwrap());
        rows.extend((0..batch.num_rows()).map(|row| [first.number(row), second.number(row)]));
    }
    Ok(rows)
}

#[test]
fn every_format_layout_and_type_of_address_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let columns = ["gc_id", "new_range_start"];
    let mut expected: Option<Vec<_>> = None;
    for format in [Format::Parquet, Format::Arrow] {
        for address_type in [AddressType::Uint64, AddressType::Int64] {
            for (inputs, layout, trace) in [
                (&[MANY][..], DatasetLayout::Auto, None),
                (&[MANY], DatasetLayout::Hive, None),
                (&[MANY], DatasetLayout::Auto, Some("gc-churn")),
                (&[NONE, MANY], DatasetLayout::Auto, Some("gc-churn")),
            ] {
                let path = make(folder.path(), inputs, |request| {
                    request.format(format).address_type(address_type).layout(layout)
                });
                let dataset = Dataset::open(&path).unwrap();
                assert_eq!(dataset.format(), format);
                let flat = inputs.len() == 1 && layout == DatasetLayout::Auto;
                assert_eq!(dataset.layout(), if flat { Layout::Flat } else { Layout::Hive });
                assert_eq!(dataset.recordings().len(), inputs.len());
                let rows = rows(&dataset, trace, "gc_moved_range", columns).unwrap();
                assert_eq!(rows.len(), 3400);
                assert!(rows.iter().all(|[gc, start]| gc.is_some() && start.is_some_and(|start| start > 0xFFFF_FFFF)));
                assert_eq!(
                    *expected.get_or_insert_with(|| rows.clone()),
                    rows,
                    "{format:?} {address_type:?} {layout:?}"
                );
            }
        }
    }
}

#[test]
fn the_recordings_and_tables_of_a_dataset_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(make(folder.path(), &[NONE, MANY], |request| request)).unwrap();
    let [none, many] = dataset.recordings() else { panic!("{:?}", dataset.recordings()) };
    assert_eq!(
        (none.trace_id.as_str(), many.trace_id.as_str()),
        ("events-320cbf0fe8a6e270", "gc-churn-47551c824a692fa9")
    );
    assert_eq!((many.path.to_str(), many.complete, many.dropped_events), (Some(MANY), true, 0));
    assert_eq!(many.size_bytes, std::fs::metadata(MANY).unwrap().len());
    let tables_of = |trace| {
        let recording = dataset.recording(Some(trace)).unwrap();
        recording.tables().map(|table| table.name.clone()).collect::<Vec<_>>()
    };
    let (none, many) = (tables_of("events"), tables_of("gc-churn"));
    let fixed = dataset.tables().iter().filter(|table| !table.is_payload());
    for table in fixed {
        assert!(none.contains(&table.name) && many.contains(&table.name), "{}", table.name);
    }
    let collection = "event/Microsoft-Windows-DotNETRuntime/GCStart".to_owned();
    assert!(many.contains(&collection) && !none.contains(&collection), "{none:?}");
    let error = dataset.recording(Some("events")).unwrap().table(&collection).unwrap_err().to_string();
    assert!(error.contains("expected the table event/"), "{error}");

    let listed = dataset.tables().iter().find(|table| table.name == "gc_moved_range").unwrap();
    assert_eq!(listed.rows, 3400);
    for trace in [None, Some("neither")] {
        let error = dataset.recording(trace).unwrap_err().to_string();
        assert!(error.contains("expected one of events-320cbf0fe8a6e270, gc-churn-47551c824a692fa9"), "{error}");
    }
}

#[test]
fn row_groups_without_wanted_rows_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), &[MANY], |request| request);
    let dataset = Dataset::open(path).unwrap();
    let table = dataset.recording(None).unwrap().table("gc_moved_range").unwrap();
    let count = |low, high| {
        let batches = table.scan().columns(["gc_id"]).between("gc_id", low..=high).batches().unwrap();
        batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    assert_eq!(count(0, u64::MAX), 3400);
    assert_eq!(count(1_000_000, u64::MAX), 0, "no row group has such collections");
    // A column that is not in the projection may be asked for, too, and one that is not there leaves out nothing.
    let scan = table.scan().columns(["range_length"]).between("gc_id", 1_000_000..=u64::MAX);
    assert_eq!(scan.batches().unwrap().count(), 0);
    assert!(table.scan().between("nonsense", 0..=0).batches().unwrap().count() > 0);
}

#[test]
fn text_and_truth_are_columns_too() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Parquet, Format::Arrow] {
        let dataset = Dataset::open(make(folder.path(), &[MANY], |request| request.format(format))).unwrap();
        let table = dataset.recording(None).unwrap().table("gc").unwrap();
        let batch = table.scan().batches().unwrap().next().unwrap().unwrap();
        let column = |name| Column::of(&batch, name).unwrap();
        assert_eq!((column("kind").text(0), column("kind").number(0)), (Some("blocking"), None));
        assert_eq!((column("complete").number(0), column("complete").text(0)), (Some(1), None));
        assert_eq!(column("kind").text(batch.num_rows()), None, "behind the last row there is nothing");
        assert!(column("start_ts").number(0).is_some_and(|us| us > 1_500_000_000_000_000));
        assert!(Column::of(&batch, "nonsense").unwrap_err().to_string().contains("column nonsense: not there"));
    }
}

#[test]
fn what_is_not_there_is_named_with_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| Dataset::open(path).map(|_| ()).unwrap_err().to_string();
    let error = open(folder.path());
    assert!(error.contains("manifest.json: is not there, expected the directory of a dataset"), "{error}");

    let path = make(folder.path(), &[MANY], |request| request.tables(["gc"]));
    let dataset = Dataset::open(&path).unwrap();
    let recording = dataset.recording(None).unwrap();
    let error = recording.table("gc_root").unwrap_err().to_string();
    assert!(error.contains("gc_root.parquet: the dataset has no table gc_root; it may have been left out"), "{error}");
    for outside in ["../out/gc", "/etc/passwd", ""] {
        assert!(recording.table(outside).is_err(), "{outside}");
    }
    let table = recording.table("gc").unwrap();
    let error = table.scan().columns(["gc_id", "nonsense"]).batches().unwrap_err().to_string();
    assert!(error.contains("gc.parquet: there is no column nonsense, expected a column of this table"), "{error}");
    std::fs::remove_file(path.join("gc.parquet")).unwrap();
    let error = recording.table("gc").unwrap_err().to_string();
    assert!(error.contains("gc.parquet: the file is missing"), "{error}");
    assert!(table.scan().batches().is_err(), "it was there when it was looked for");
}

#[test]
fn a_dataset_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), &[MANY], |request| request);
    let manifest = path.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&manifest, text.replacen(from, to, 1)).unwrap();
        Dataset::open(&path).map(|_| ()).unwrap_err().to_string()
    };
    let error = changed("\"schema_version\": ", "\"schema_version\": 99");
    assert!(error.contains("the tables are of version 99") && error.contains("convert the recording again"), "{error}");
    assert!(changed("\"tool\": \"tracequet\"", "\"tool\": \"other\"").contains("expected a manifest of tracequet"));
    assert!(changed("\"layout\": \"flat\"", "\"layout\": \"heap\"").contains("expected `flat` or `hive`"));
    assert!(changed("\"format\": \"parquet\"", "\"format\": \"csv\"").contains("expected `parquet` or `arrow`"));
    assert!(changed("\"name\": \"gc\"", "\"name\": \"../gc\"").contains("stay inside the dataset"));
    assert!(changed("\"inputs\"", "\"input\"").contains("inputs"));
    for length in 0..text.trim_end().len() {
        std::fs::write(&manifest, &text[..length]).unwrap();
        assert!(Dataset::open(&path).is_err(), "cut at {length}");
    }
}

/// Cut at many places and with bytes changed all over: an error or other rows, never a panic, and the file is named.
#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for (format, compression) in [
        (Format::Parquet, Compression::default()),
        (Format::Parquet, Compression::None),
        (Format::Arrow, Compression::default()),
        (Format::Arrow, Compression::None),
    ] {
        let path =
            make(folder.path(), &[MANY], |request| request.format(format).compression(compression).tables(["gc"]));
        let dataset = Dataset::open(&path).unwrap();
        let table = dataset.recording(None).unwrap().table("gc").unwrap();
        let whole = std::fs::read(table.path()).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(table.path(), bytes).unwrap();
            let result = table.scan().batches().and_then(|batches| batches.collect::<Result<Vec<_>>>());
            if let Err(error) = &result {
                assert!(matches!(error, Error::Dataset { .. } | Error::Io { .. }), "{error:?}");
                assert!(error.to_string().contains("gc."), "{error}");
            }
            result.map(|batches| batches.iter().map(|batch| batch.num_rows()).sum::<usize>())
        };
        assert_eq!(read(&whole).unwrap(), 19);
        for length in (0..whole.len()).step_by(whole.len() / 200) {
            assert!(read(&whole[..length]).is_err(), "{format:?}: cut at {length} of {}", whole.len());
        }
        let mut failures = 0;
        // The footer says where everything is: most of the changes go there.
        let spots = (0..whole.len()).step_by(whole.len() / 150).chain(whole.len() - 600..whole.len());
        for spot in spots {
            let mut bytes = whole.clone();
            bytes[spot] ^= [0x80, 0x01, 0xFF][spot % 3];
            failures += usize::from(read(&bytes).is_err());
        }
        assert!(failures > 50, "{format:?}: {failures}");
    }
}

/// A batch that is made to expand takes as much memory as it says, for a few bytes.
#[test]
fn a_batch_that_expands_without_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = make(folder.path(), &[MANY], |request| request.format(Format::Arrow).tables(["gc"]));
    let dataset = Dataset::open(&path).unwrap();
    let table = dataset.recording(None).unwrap().table("gc").unwrap();
    let mut bytes = std::fs::read(table.path()).unwrap();
    // The length of a compressed buffer stands in front of it.
    let frames: Vec<usize> = (8..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"\x28\xB5\x2F\xFD")).collect();
    assert!(frames.len() > 10);
    for at in frames {
        bytes[at - 8..at].copy_from_slice(&(1i64 << 40).to_le_bytes());
    }
    std::fs::write(table.path(), bytes).unwrap();
    let read = table.scan().batches().and_then(|batches| batches.collect::<Result<Vec<_>>>());
    let error = read.expect_err("a refusal").to_string();
    assert!(error.contains("says that it expands to"), "{error}");
}
