//! Tests of the sink: what it is given is what is in the files, and nothing else is left on disk.

mod content;
mod layout;
mod limits;
mod place;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use tracequet::dataset::write::{DatasetOptions, Encoding, Format, TableSpec};

/// What a manifest must say for its directory to be replaceable.
const MANIFEST: &[u8] = br#"{ "tool": "tracequet", "inputs": [{ "trace_id": "a1" }, { "trace_id": "b2" }],
    "tables": [{ "name": "gc" }, { "name": "event/P/E" }, { "name": "a" }, { "name": "b" }, { "name": "c" }] }"#;

fn options(format: Format, threads: usize) -> DatasetOptions {
    DatasetOptions { format, threads, ..DatasetOptions::default() }
}

/// A table of one column of numbers.
fn numbers(name: &str) -> TableSpec {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::UInt64, false)]));
    TableSpec { name: name.into(), schema, encodings: vec![Encoding::Delta], sorted_by: vec!["n".into()] }
}

fn number_batch(values: impl IntoIterator<Item = u64>) -> RecordBatch {
    let values: ArrayRef = Arc::new(UInt64Array::from_iter_values(values));
    RecordBatch::try_new(numbers("").schema, vec![values]).unwrap()
}

/// A table with a column of every kind.
fn every_kind(name: &str) -> TableSpec {
    use Encoding::{Delta, Dictionary, Plain};
    let item = |data_type| DataType::List(Arc::new(Field::new("item", data_type, false)));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let columns = [
        ("ts", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), Delta),
        ("ts_ns", DataType::Int64, Delta),
        ("gc_id", DataType::UInt32, Delta),
        ("range_start", DataType::UInt64, Delta),
        ("size_bytes", DataType::UInt64, Plain),
        ("generation", DataType::UInt32, Dictionary),
        ("length_kind", dictionary.clone(), Dictionary),
        ("name", DataType::Utf8, Dictionary),
        ("message", DataType::Utf8, Delta),
        ("payload", DataType::Binary, Plain),
        ("complete", DataType::Boolean, Dictionary),
        ("ratio", DataType::Float64, Delta),
        ("frames", item(DataType::UInt64), Delta),
        ("words", item(dictionary), Dictionary),
        ("point", DataType::Struct(point_fields()), Delta),
        ("points", item(DataType::Struct(point_fields())), Delta),
    ];
    let nullable = |name: &str| matches!(name, "message" | "length_kind");
    TableSpec {
        name: name.into(),
        schema: Arc::new(Schema::new(
            columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), nullable(name))).collect::<Vec<_>>(),
        )),
        encodings: columns.iter().map(|(_, _, encoding)| *encoding).collect(),
        sorted_by: vec!["gc_id".into(), "range_start".into()],
    }
}

fn point_fields() -> Fields {
    Fields::from(vec![Field::new("x", DataType::UInt64, false), Field::new("label", DataType::Utf8, false)])
}

/// `rows` rows of [`every_kind`]; `seed` makes the values, and the dictionaries, differ.
fn every_kind_batch(seed: u64, rows: usize) -> RecordBatch {
    let at = move |i: usize| seed * 1_000_000 + i as u64;
    let numbers = || UInt64Array::from_iter_values((0..rows).map(|i| at(i) * 8 + 0x7f00_0000_0000));
    let mut kinds = StringDictionaryBuilder::<Int32Type>::new();
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    let mut messages = StringBuilder::new();
    for i in 0..rows {
        kinds.append_option((i % 7 != 0).then(|| ["exact", "clamped", "paired"][(i + seed as usize) % 3]));
        messages.append_option((i % 5 != 0).then(|| format!("message {}", at(i))));
        for word in 0..i % 3 {
            words.append_value(format!("word {}", (at(i) + word as u64) % 11));
        }
    }
    let list = |spec: &DataType, lengths: &dyn Fn(usize) -> usize, values: ArrayRef| -> ArrayRef {
        let DataType::List(item) = spec else { panic!("no list") };
        Arc::new(ListArray::new(item.clone(), OffsetBuffer::from_lengths((0..rows).map(lengths)), values, None))
    };
    let points = |count: usize| -> ArrayRef {
        let x: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..count).map(at)));
        let label: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|i| format!("p{}", i % 4))));
        Arc::new(StructArray::new(point_fields(), vec![x, label], None))
    };
    let schema = every_kind("").schema;
    let kind = |name: &str| schema.field_with_name(name).unwrap().data_type();
    let frames = UInt64Array::from_iter_values((0..(0..rows).map(|i| i % 4).sum()).map(at));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(|i| at(i) as i64)).with_timezone("UTC")),
        Arc::new(Int64Array::from_iter_values((0..rows).map(|i| at(i) as i64 * 1000))),
        Arc::new(UInt32Array::from_iter_values((0..rows).map(|i| (i / 100) as u32))),
        Arc::new(numbers()),
        Arc::new(numbers()),
        Arc::new(UInt32Array::from_iter_values((0..rows).map(|i| (i % 3) as u32))),
        Arc::new(kinds.finish()),
        Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("name {}", i % 20)))),
        Arc::new(messages.finish()),
        Arc::new(BinaryArray::from_iter_values((0..rows).map(|i| vec![i as u8; i % 6]))),
        Arc::new(BooleanArray::from_iter((0..rows).map(|i| Some(i % 2 == 0)))),
        Arc::new(Float64Array::from_iter_values((0..rows).map(|i| i as f64 / 3.0))),
        list(kind("frames"), &|i| i % 4, Arc::new(frames)),
        list(kind("words"), &|i| i % 3, Arc::new(words.finish())),
        points(rows),
        list(kind("points"), &|i| i % 2, points((0..rows).map(|i| i % 2).sum())),
    ];
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

fn parquet_metadata(path: &Path) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    reader.parse_and_finish(&File::open(path).unwrap()).unwrap()
}

fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    joined(&schema, reader.build().unwrap().map(Result::unwrap).collect())
}

fn read_arrow(path: &Path) -> RecordBatch {
    let reader = arrow_ipc::reader::FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    joined(&schema, reader.map(Result::unwrap).collect())
}

fn joined(schema: &SchemaRef, batches: Vec<RecordBatch>) -> RecordBatch {
    arrow_select::concat::concat_batches(schema, &batches).unwrap()
}

/// Every file below a directory with its bytes, and the directories with none.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.insert(format!("{name}/"), Vec::new());
            files.extend(tree(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}
