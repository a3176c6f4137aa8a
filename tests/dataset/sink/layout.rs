//! How Parquet files are laid out: encodings, statistics, order, row groups, footers.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{Compression as Codec, Encoding as Layout};
use tracequet::dataset::write::{Compression, DatasetWriter, Encoding, Format, TableSpec};

use super::*;

/// Writes one table with [`every_kind`] of column and returns what its footer says.
fn every_kind_metadata(compression: Compression) -> ParquetMetaData {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset =
        DatasetWriter::create(&out, DatasetOptions { compression, ..options(Format::Parquet, 2) }).unwrap();
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
        let metadata = every_kind_metadata(compression);
        // A column of less than 1 KB, such as one of 3,000 bits, is not worth a compressor.
        let (mut large, mut small) = (0, 0);
        for column in metadata.row_group(0).columns() {
            match column.compression() {
                codec if wanted(&codec) => large += 1,
                codec => {
                    small += usize::from(codec == Codec::UNCOMPRESSED && column.column_path().string() == "complete")
                }
            }
        }
        large + small == metadata.row_group(0).columns().len() && small <= 1
    };
    assert!(is(Compression::Zstd(1), |codec| matches!(codec, Codec::ZSTD(_))));
    assert!(is(Compression::Snappy, |codec| *codec == Codec::SNAPPY));
    assert!(is(Compression::None, |codec| *codec == Codec::UNCOMPRESSED));
}

/// To make a compressor takes longer than to write a few rows.
#[test]
fn columns_of_a_few_rows_are_not_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 2)).unwrap();
    let [few, many] = ["few", "many"].map(|name| dataset.table(numbers(name)).unwrap());
    // 8 bytes a row; those of all batches together count.
    for start in 0..10 {
        dataset.write(few, number_batch(start * 10..start * 10 + 10)).unwrap();
        dataset.write(many, number_batch(start * 50..start * 50 + 50)).unwrap();
    }
    dataset.close_tables(&[]).unwrap();
    dataset.commit().unwrap();
    let codec = |name: &str| parquet_metadata(&out.join(name)).row_group(0).column(0).compression();
    assert_eq!(codec("few.parquet"), Codec::UNCOMPRESSED);
    assert!(matches!(codec("many.parquet"), Codec::ZSTD(_)));
    assert_eq!(read_parquet(&out.join("few.parquet")).num_rows(), 100);
}

#[test]
fn searched_and_sorted_columns_have_statistics_by_page_others_by_chunk_and_texts_in_lists_none() {
    let metadata = every_kind_metadata(Compression::default());
    let by_page = ["ts", "ts_ns", "gc_id", "range_start"];
    let index = metadata.page_index().unwrap();
    let mut texts_in_lists = 0;
    for (leaf, column) in metadata.row_group(0).columns().iter().enumerate() {
        let path = column.column_path().string();
        let is_text_in_list = path.contains('.') && column.column_type() == parquet::basic::Type::BYTE_ARRAY;
        texts_in_lists += usize::from(is_text_in_list);
        assert_eq!(column.statistics().is_none(), is_text_in_list, "{path}");
        let has_pages = index.column_index(0, leaf).is_some();
        assert_eq!(has_pages, by_page.contains(&path.as_str()), "{path}");
    }
    assert!(texts_in_lists > 0);
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
    let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    assert!(dataset.table(TableSpec { sorted_by: vec!["m".into()], ..numbers("t") }).is_err());
    assert!(dataset.table(TableSpec { encodings: Vec::new(), ..numbers("u") }).is_err());
}

/// The rows of each row group of the table `t` after what `write` does.
fn groups(spec: TableSpec, write: impl FnOnce(&mut DatasetWriter, tracequet::dataset::write::TableId)) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 2)).unwrap();
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

/// Rows in any order, equal keys among them, with the number of each row.
fn keyed(first: u64, keys: impl Iterator<Item = u64>) -> RecordBatch {
    let keys: Vec<u64> = keys.collect();
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(first..first + keys.len() as u64));
    let keys: ArrayRef = Arc::new(UInt64Array::from(keys));
    RecordBatch::try_from_iter([("key", keys), ("number", numbers)]).unwrap()
}

#[test]
fn row_groups_are_in_order_whatever_the_order_of_the_rows() {
    let schema = keyed(0, 0..0).schema();
    let encodings = vec![Encoding::Delta; 2];
    let spec = TableSpec { name: "t".into(), schema, encodings, sorted_by: vec!["key".into()] };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 2)).unwrap();
    let table = dataset.table(spec).unwrap();
    let mut rows = 0;
    let mut write = |dataset: &mut DatasetWriter, keys: &mut dyn Iterator<Item = u64>| {
        let batch = keyed(rows, keys);
        rows += batch.num_rows() as u64;
        dataset.write(table, batch).unwrap();
    };
    // These wait, and the late ones find their places.
    write(&mut dataset, &mut (1000..2000));
    write(&mut dataset, &mut (500..1500));
    // With these the encoders begin. What follows them is written, in order or not.
    write(&mut dataset, &mut (2000..500_000));
    write(&mut dataset, &mut (500_000..600_000).rev());
    write(&mut dataset, &mut (600_000..700_000).map(|n: u64| n.next_multiple_of(7)));
    // These are late: they end the row group.
    write(&mut dataset, &mut (0..100_000).map(|n| n * 7919 % 1_000_003));
    write(&mut dataset, &mut (0..100_000).map(|n| n * 104_729 % 1000));
    dataset.close_tables(&[]).unwrap();
    dataset.commit().unwrap();
    let metadata = parquet_metadata(&out.join("t.parquet"));
    let groups: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [700_000, 200_000]);
    let read = read_parquet(&out.join("t.parquet"));
    let numbers = |index: usize| read.column(index).as_primitive::<arrow_array::types::UInt64Type>().values().to_vec();
    let pairs: Vec<(u64, u64)> = numbers(0).into_iter().zip(numbers(1)).collect();
    let (first, second) = pairs.split_at(700_000);
    // Equal keys stay in the order in which they came.
    assert!(first.is_sorted() && second.is_sorted());
    let mut all = numbers(1);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..rows));
}

#[test]
fn rows_of_a_table_without_an_order_stay_as_they_come() {
    let spec = TableSpec { sorted_by: Vec::new(), ..numbers("t") };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 2)).unwrap();
    let table = dataset.table(spec).unwrap();
    [5..9, 0..4, 2..7].into_iter().for_each(|values| dataset.write(table, number_batch(values)).unwrap());
    dataset.close_tables(&[]).unwrap();
    dataset.commit().unwrap();
    let read = read_parquet(&out.join("t.parquet"));
    assert_eq!(read.columns(), number_batch((5..9).chain(0..4).chain(2..7)).columns());
}

#[test]
fn a_table_cannot_be_sorted_by_what_has_no_plain_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    for column in ["name", "ratio", "frames", "no such column"] {
        let spec = TableSpec { sorted_by: vec![column.into()], ..every_kind("t") };
        assert!(dataset.table(spec).is_err(), "{column}");
    }
}

/// A table of texts, and a batch of it of a little less than 8 MiB.
fn texts(name: &str) -> (TableSpec, RecordBatch) {
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
    let values: ArrayRef = Arc::new(StringArray::from_iter_values((0..8192).map(|i| format!("{i:01000}"))));
    let batch = RecordBatch::try_new(schema.clone(), vec![values]).unwrap();
    (TableSpec { name: name.into(), schema, encodings: vec![Encoding::Plain], sorted_by: Vec::new() }, batch)
}

#[test]
fn row_groups_hold_at_most_32_mebibytes() {
    let (spec, batch) = texts("t");
    let rows = groups(spec, |dataset, table| {
        for _ in 0..20 {
            dataset.write(table, batch.clone()).unwrap();
        }
    });
    let most = (32 << 20) / 1004;
    assert_eq!(rows[..4], [most; 4]);
    assert_eq!(rows[4..], [20 * 8192 - 4 * most]);
}

#[test]
fn open_row_groups_of_all_tables_hold_at_most_48_mebibytes() {
    // Six batches of all tables are held; with the seventh the largest table ends its row group.
    let of_three = |mine: usize, others: [usize; 2], last_is_mine: bool| {
        groups(texts("t").0, |dataset, table| {
            let batch = texts("t").1;
            let others =
                [("a", others[0]), ("b", others[1])].map(|(name, n)| (dataset.table(texts(name).0).unwrap(), n));
            for (table, batches) in [(table, mine)].into_iter().chain(others) {
                (0..batches).for_each(|_| dataset.write(table, batch.clone()).unwrap());
            }
            let seventh = if last_is_mine { table } else { others[0].0 };
            dataset.write(seventh, batch.clone()).unwrap();
            dataset.write(table, batch).unwrap();
        })
    };
    assert_eq!(of_three(2, [2, 2], false), [3 * 8192]);
    assert_eq!(of_three(2, [2, 2], true), [3 * 8192, 8192]);
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

/// A number, a text and a word of each row: `distinct` different ones; each tenth is missing.
fn varied_columns(distinct: u64) -> RecordBatch {
    let values = || (0..20_000).map(move |row: u64| (row % 10 != 9).then_some(row * 7919 % distinct));
    let text = |value: Option<u64>| value.map(|value| format!("name {value}"));
    let numbers: ArrayRef = Arc::new(values().collect::<UInt64Array>());
    let texts: ArrayRef = Arc::new(values().map(text).collect::<StringArray>());
    let words: arrow_array::DictionaryArray<Int32Type> = texts.as_string::<i32>().iter().collect();
    RecordBatch::try_from_iter_with_nullable([
        ("number", numbers, true),
        ("text", texts, true),
        ("word", Arc::new(words), true),
    ])
    .unwrap()
}

#[test]
fn a_dictionary_is_for_values_that_come_again() {
    use Layout::{DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, PLAIN, RLE_DICTIONARY};
    let folder = tempfile::tempdir().unwrap();
    for (distinct, wanted) in [
        (1_000, [RLE_DICTIONARY; 3]),
        // pyarrow reads words into a dictionary, for which a text has to be plain or in one.
        (1_000_003, [DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, PLAIN]),
    ] {
        let out = folder.path().join(distinct.to_string());
        let batch = varied_columns(distinct);
        let encodings = vec![Encoding::Dictionary; 3];
        let spec = TableSpec { name: "t".into(), schema: batch.schema(), encodings, sorted_by: Vec::new() };
        let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 2)).unwrap();
        let table = dataset.table(spec).unwrap();
        // In parts: the first alone would not be enough to judge by.
        for at in (0..20_000).step_by(5_000) {
            dataset.write(table, batch.slice(at, 5_000)).unwrap();
        }
        dataset.close_tables(&[]).unwrap();
        dataset.commit().unwrap();
        let file = out.join("t.parquet");
        for (column, layout) in parquet_metadata(&file).row_group(0).columns().iter().zip(wanted) {
            let path = column.column_path().string();
            assert!(column.encodings().any(|found| found == layout), "{path} of {distinct}");
            assert_eq!(column.dictionary_page_offset().is_some(), layout == RLE_DICTIONARY, "{path} of {distinct}");
        }
        let read = read_parquet(&file);
        assert_eq!((read.column(0), read.column(1)), (batch.column(0), batch.column(1)));
        assert_eq!(words_of(&read), words_of(&batch));
        #[cfg(unix)]
        if let Some(python) = crate::support::python::python("a_dictionary_is_for_values_that_come_again") {
            crate::dataset::readers::run(&python, "read_varied.py", &[file, distinct.to_string().into()]);
        }
    }
}

/// The words, whatever their dictionary.
fn words_of(batch: &RecordBatch) -> Vec<Option<String>> {
    let words = batch.column(2).as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
    words.into_iter().map(|word| word.map(str::to_owned)).collect()
}
