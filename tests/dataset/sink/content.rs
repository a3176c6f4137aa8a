//! What is read back is what was written, and it is the same bytes each time.

use std::path::{Path, PathBuf};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;
use tracequet::dataset::write::{Compression, DatasetWriter, Format};

use super::*;

/// Several tables with rows in turns, slices and an empty table, in a directory that lives as long as the first.
fn busy_dataset(options: DatasetOptions) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options).unwrap();
    let mixed = dataset.table(every_kind("mixed")).unwrap();
    let count = dataset.table(numbers("event/Some-Provider/Count")).unwrap();
    dataset.table(every_kind("empty")).unwrap();
    for seed in 0..5 {
        dataset.write(mixed, every_kind_batch(seed, 3000)).unwrap();
        dataset.write(count, number_batch(seed * 10..seed * 10 + 10)).unwrap();
        dataset.write(mixed, every_kind_batch(seed, 500).slice(100, 300)).unwrap();
    }
    let metadata = [("tool", "tracequet 0"), ("source", "a.nettrace")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    dataset.close_tables(&metadata).unwrap();
    dataset.file("manifest.json", MANIFEST).unwrap();
    dataset.commit().unwrap();
    (folder, out)
}

/// The rows of `mixed` in the order in which they are written.
fn expected() -> RecordBatch {
    let parts = (0..5).flat_map(|seed| [every_kind_batch(seed, 3000), every_kind_batch(seed, 500).slice(100, 300)]);
    joined(&every_kind("").schema, parts.collect())
}

/// The rows of `mixed` in its order, equal ones as they came.
fn expected_in_order() -> RecordBatch {
    let rows = expected();
    let numbers = |name| wide(rows.column_by_name(name).unwrap());
    let (collections, starts) = (numbers("gc_id"), numbers("range_start"));
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by_key(|&row| (collections[row as usize], starts[row as usize]));
    arrow_select::take::take_record_batch(&rows, &UInt32Array::from(order)).unwrap()
}

fn wide(column: &ArrayRef) -> Vec<u64> {
    match column.as_primitive_opt::<arrow_array::types::UInt32Type>() {
        Some(narrow) => narrow.values().iter().copied().map(u64::from).collect(),
        None => column.as_primitive::<arrow_array::types::UInt64Type>().values().to_vec(),
    }
}

/// Compares what the columns say, whether in dictionaries or not.
fn assert_same(read: &RecordBatch, written: &RecordBatch) {
    assert_eq!(read.num_columns(), written.num_columns());
    for (index, field) in written.schema().fields().iter().enumerate() {
        let (read, written) = (undone(read.column(index)), undone(written.column(index)));
        assert!(read.to_data() == written.to_data(), "{}: {read:?} is not {written:?}", field.name());
    }
}

fn undone(column: &ArrayRef) -> ArrayRef {
    if let Some(labels) = column.as_any_dictionary_opt() {
        return arrow_select::take::take(labels.values(), labels.keys(), None).unwrap();
    }
    let Some(list) = column.as_list_opt::<i32>() else { return column.clone() };
    let values = undone(list.values());
    let item = Arc::new(Field::new("item", values.data_type().clone(), false));
    Arc::new(ListArray::new(item, list.offsets().clone(), values, list.nulls().cloned()))
}

#[test]
fn parquet_gives_back_the_batches_and_their_schema() {
    let (_folder, out) = busy_dataset(options(Format::Parquet, 2));
    let read = read_parquet(&out.join("mixed.parquet"));
    assert_eq!(read.schema().fields(), every_kind("").schema.fields());
    assert_same(&read, &expected_in_order());
    let counts = read_parquet(&out.join("event/Some-Provider/Count.parquet"));
    assert_eq!(counts.columns(), number_batch(0..50).columns());
}

#[test]
fn arrow_gives_back_the_batches_with_dictionaries_undone() {
    for compression in [Compression::Zstd(1), Compression::None] {
        let (_folder, out) = busy_dataset(DatasetOptions { compression, ..options(Format::Arrow, 2) });
        let read = read_arrow(&out.join("mixed.arrow"));
        assert_same(&read, &expected());
        assert_eq!(read.column_by_name("length_kind").unwrap().data_type(), &DataType::Utf8);
        let counts = read_arrow(&out.join("event/Some-Provider/Count.arrow"));
        assert_eq!(counts.columns(), number_batch(0..50).columns());
    }
}

#[test]
fn tables_without_rows_have_their_schema() {
    let (_folder, out) = busy_dataset(options(Format::Parquet, 2));
    let read = read_parquet(&out.join("empty.parquet"));
    assert_eq!(read.num_rows(), 0);
    assert_eq!(read.schema().fields(), every_kind("").schema.fields());
    let (_folder, out) = busy_dataset(options(Format::Arrow, 2));
    let read = read_arrow(&out.join("empty.arrow"));
    assert_eq!(read.num_rows(), 0);
    assert_eq!(read.num_columns(), every_kind("").schema.fields().len());
}

#[test]
fn footers_have_the_key_values() {
    let (_folder, out) = busy_dataset(options(Format::Parquet, 2));
    for name in ["mixed.parquet", "empty.parquet"] {
        let metadata = parquet_metadata(&out.join(name));
        let pairs = metadata.file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
        assert_eq!(value("source"), Some("a.nettrace"));
        assert_eq!(value("tool"), Some("tracequet 0"));
        assert!(value("ARROW:schema").is_some());
    }
    let (_folder, out) = busy_dataset(options(Format::Arrow, 2));
    for name in ["mixed.arrow", "empty.arrow"] {
        let reader = arrow_ipc::reader::FileReader::try_new(File::open(out.join(name)).unwrap(), None).unwrap();
        assert_eq!(reader.custom_metadata().get("source").map(String::as_str), Some("a.nettrace"));
    }
}

#[test]
fn the_same_calls_make_the_same_bytes_whatever_the_number_of_threads() {
    for format in [Format::Parquet, Format::Arrow] {
        let (_folder, out) = busy_dataset(options(format, 1));
        let first = tree(&out);
        assert_eq!(first.len(), 6, "{:?}", first.keys());
        for threads in [0, 1, 2, 3, 16] {
            let (_folder, out) = busy_dataset(options(format, threads));
            assert!(tree(&out) == first, "{format:?} with {threads} threads");
        }
    }
}

/// The plain way to write the same rows.
fn written_in_one_piece(path: &Path, batch: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn columns_encoded_apart_say_what_one_writer_would_have_said() {
    let (folder, out) = busy_dataset(options(Format::Parquet, 4));
    let plain = folder.path().join("plain.parquet");
    written_in_one_piece(&plain, &expected_in_order());
    assert_same(&read_parquet(&out.join("mixed.parquet")), &read_parquet(&plain));
}

#[test]
fn written_tables_are_told_in_the_order_of_declaration() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    for format in [Format::Parquet, Format::Arrow] {
        let mut dataset =
            DatasetWriter::create(&out, DatasetOptions { overwrite: true, ..options(format, 3) }).unwrap();
        let tables: Vec<_> = ["b", "a", "c"].map(|name| dataset.table(numbers(name)).unwrap()).into();
        dataset.write(tables[2], number_batch(0..3)).unwrap();
        dataset.write(tables[0], number_batch(0..1)).unwrap();
        let written = dataset.close_tables(&[]).unwrap();
        dataset.file("manifest.json", MANIFEST).unwrap();
        dataset.commit().unwrap();
        let reported: Vec<_> = written.iter().map(|table| (table.name.as_str(), table.rows)).collect();
        assert_eq!(reported, [("b", 1), ("a", 0), ("c", 3)]);
        for table in written {
            assert_eq!(std::fs::metadata(out.join(&table.path)).unwrap().len(), table.bytes);
        }
    }
}
