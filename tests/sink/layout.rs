//! How Parquet files are laid out: encodings, statistics, order, row groups, footers.

use std::collections::BTreeMap;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{Compression as Codec, Encoding as Layout};
use tracequet::sink::{Compression, Dataset, Encoding, Format, TableSpec};

use super::*;

/// Writes one table with [`every_kind`] of column and returns what its footer says.
fn every_kind_metadata(compression: Compression) -> ParquetMetaData {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = Dataset::create(&out, DatasetOptions { compression, ..options(Format::Parquet, 2) }).unwrap();
    let table = dataset.table(every_kind("t")).unwrap();
    dataset.write(table, every_kind_batch(1, 3000)).unwrap();
    dataset.close_tables(&[]).unwrap();
    dataset.commit().unwrap();
    parquet_metadata(&out.join("t.parquet"))
}

#[test]
fn every_leaf_is_encoded_as_its_column_declares() {
    use Layout::{DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE_DICTIONARY};
    let metadata = every_kind_metadata(Compression::default());
    let expected = BTreeMap::from([
        ("ts", DELTA_BINARY_PACKED),
        ("ts_ns", DELTA_BINARY_PACKED),
        ("gc_id", DELTA_BINARY_PACKED),
        ("range_start", DELTA_BINARY_PACKED),
        ("size_bytes", PLAIN),
        ("generation", RLE_DICTIONARY),
        ("length_kind", RLE_DICTIONARY),
        ("name", RLE_DICTIONARY),
        ("message", DELTA_LENGTH_BYTE_ARRAY),
        ("payload", PLAIN),
        ("complete", PLAIN),
        ("ratio", PLAIN),
        ("frames.list.item", DELTA_BINARY_PACKED),
        ("words.list.item", RLE_DICTIONARY),
        ("point.x", DELTA_BINARY_PACKED),
        ("point.label", RLE_DICTIONARY),
        ("points.list.item.x", DELTA_BINARY_PACKED),
        ("points.list.item.label", RLE_DICTIONARY),
    ]);
    let columns = metadata.row_group(0).columns();
    assert_eq!(columns.len(), expected.len());
    for column in columns {
        let path = column.column_path().string();
        let layout = expected[path.as_str()];
        let found: Vec<Layout> = column.encodings().collect();
        assert!(found.contains(&layout), "{path}: {found:?} without {layout}");
        // Dictionary pages are plain inside; nothing else may be.
        let others = |other: &Layout| ![layout, Layout::RLE].contains(other) && *other != PLAIN;
        assert!(!found.iter().any(others), "{path}: {found:?}");
        let has_dictionary = layout == RLE_DICTIONARY;
        assert_eq!(column.dictionary_page_offset().is_some(), has_dictionary, "{path}");
        assert_eq!(found.contains(&PLAIN), has_dictionary || layout == PLAIN, "{path}: {found:?}");
    }
}

#[test]
fn files_are_of_version_1_and_name_their_writer() {
    let metadata = every_kind_metadata(Compression::default());
    assert_eq!(metadata.file_metadata().version(), 1);
    let writer = metadata.file_metadata().created_by().unwrap();
    assert_eq!(writer, concat!("tracequet version ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn compression_is_as_asked_for() {
    let is = |compression, wanted: fn(&Codec) -> bool| {
        every_kind_metadata(compression).row_group(0).columns().iter().all(|column| wanted(&column.compression()))
    };
    assert!(is(Compression::Zstd(1), |codec| matches!(codec, Codec::ZSTD(_))));
    assert!(is(Compression::Snappy, |codec| *codec == Codec::SNAPPY));
    assert!(is(Compression::None, |codec| *codec == Codec::UNCOMPRESSED));
}

#[test]
fn searched_and_sorted_columns_have_statistics_by_page_and_the_others_by_chunk() {
    let metadata = every_kind_metadata(Compression::default());
    let by_page = ["ts", "ts_ns", "gc_id", "range_start"];
    let index = metadata.page_index().unwrap();
    for (leaf, column) in metadata.row_group(0).columns().iter().enumerate() {
        let path = column.column_path().string();
        assert!(column.statistics().is_some(), "{path}");
        let has_pages = index.column_index(0, leaf).is_some();
        assert_eq!(has_pages, by_page.contains(&path.as_str()), "{path}");
    }
}

#[test]
fn sorting_columns_name_the_leaves() {
    let metadata = every_kind_metadata(Compression::default());
    let sorting = metadata.row_group(0).sorting_columns().unwrap();
    let found: Vec<_> = sorting.iter().map(|column| (column.column_idx, column.descending)).collect();
    assert_eq!(found, [(2, false), (3, false)]);
}

#[test]
fn a_sort_column_that_does_not_exist_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = Dataset::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    assert!(dataset.table(TableSpec { sorted_by: vec!["m".into()], ..numbers("t") }).is_err());
    assert!(dataset.table(TableSpec { encodings: Vec::new(), ..numbers("u") }).is_err());
}

/// The rows of each row group of the table `t` after what `write` does.
fn groups(spec: TableSpec, write: impl FnOnce(&mut Dataset, tracequet::sink::TableId)) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = Dataset::create(&out, options(Format::Parquet, 2)).unwrap();
    let table = dataset.table(spec).unwrap();
    write(&mut dataset, table);
    dataset.close_tables(&[]).unwrap();
    dataset.commit().unwrap();
    parquet_metadata(&out.join("t.parquet")).row_groups().iter().map(|group| group.num_rows()).collect()
}

#[test]
fn row_groups_hold_at_most_a_mebi_of_rows() {
    let rows = groups(numbers("t"), |dataset, table| {
        dataset.write(table, number_batch(0..10)).unwrap();
        dataset.write(table, number_batch(0..2_200_000)).unwrap();
        dataset.write(table, number_batch(0..10)).unwrap();
    });
    assert_eq!(rows, [1 << 20, 1 << 20, 2_200_020 - (2 << 20)]);
}

#[test]
fn cut_ends_a_row_group_and_only_one_that_has_begun() {
    let rows = groups(numbers("t"), |dataset, table| {
        dataset.cut(table).unwrap();
        dataset.write(table, number_batch(0..10)).unwrap();
        dataset.write(table, number_batch(10..15)).unwrap();
        dataset.cut(table).unwrap();
        dataset.cut(table).unwrap();
        dataset.write(table, number_batch(0..0)).unwrap();
        dataset.write(table, number_batch(0..7)).unwrap();
        dataset.cut(table).unwrap();
    });
    assert_eq!(rows, [15, 7]);
}

/// A table of texts, and a batch of it of a little less than 8 MiB.
fn texts(name: &str) -> (TableSpec, RecordBatch) {
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
    let values: ArrayRef = Arc::new(StringArray::from_iter_values((0..8192).map(|i| format!("{i:01000}"))));
    let batch = RecordBatch::try_new(schema.clone(), vec![values]).unwrap();
    (TableSpec { name: name.into(), schema, encodings: vec![Encoding::Plain], sorted_by: Vec::new() }, batch)
}

#[test]
fn row_groups_hold_at_most_64_mebibytes() {
    let (spec, batch) = texts("t");
    let rows = groups(spec, |dataset, table| {
        for _ in 0..20 {
            dataset.write(table, batch.clone()).unwrap();
        }
    });
    let most = (64 << 20) / 1004;
    assert_eq!(rows, [most, most, 20 * 8192 - 2 * most]);
}

#[test]
fn open_row_groups_of_all_tables_hold_at_most_96_mebibytes() {
    let rows = groups(texts("t").0, |dataset, table| {
        let (spec, batch) = texts("other");
        let other = dataset.table(spec).unwrap();
        for _ in 0..6 {
            dataset.write(table, batch.clone()).unwrap();
        }
        // With the seventh of these there are over 100 MiB; the other table is the larger one.
        for _ in 0..7 {
            dataset.write(other, batch.clone()).unwrap();
        }
        // And now this table is.
        for _ in 0..7 {
            dataset.write(other, batch.clone()).unwrap();
        }
        dataset.write(table, batch.clone()).unwrap();
    });
    assert_eq!(rows, [7 * 8192]);
    let rows = groups(texts("t").0, |dataset, table| {
        let (spec, batch) = texts("other");
        let other = dataset.table(spec).unwrap();
        for _ in 0..7 {
            dataset.write(table, batch.clone()).unwrap();
        }
        for _ in 0..6 {
            dataset.write(other, batch.clone()).unwrap();
        }
        dataset.write(table, batch.clone()).unwrap();
    });
    assert_eq!(rows, [7 * 8192, 8192]);
}

#[test]
fn dictionaries_that_come_again_do_not_fill_row_groups() {
    let wide: ArrayRef = Arc::new(StringArray::from_iter_values((0..4096).map(|i| format!("{i:02048}"))));
    let keys = |start: i32| (0..16).map(move |i| (start + i) % 4096).collect::<Vec<i32>>();
    let batch = |start| {
        let labels = arrow_array::DictionaryArray::<Int32Type>::new(keys(start).into(), wide.clone());
        RecordBatch::try_from_iter([("label", Arc::new(labels) as ArrayRef)]).unwrap()
    };
    let schema = batch(0).schema();
    let spec = TableSpec { name: "t".into(), schema, encodings: vec![Encoding::Dictionary], sorted_by: Vec::new() };
    let rows = groups(spec, |dataset, table| {
        for start in 0..40 {
            dataset.write(table, batch(start)).unwrap();
        }
    });
    assert_eq!(rows, [640]);
}
