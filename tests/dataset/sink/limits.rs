//! Many tables, many rows.

use std::time::Instant;

use tracequet::dataset::write::{DatasetWriter, Format};

use super::*;

/// How many of this process's open files are below a directory.
#[cfg(target_os = "linux")]
fn open_files(folder: &Path) -> usize {
    let handles = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = handles.filter_map(|handle| std::fs::read_link(handle.ok()?.path()).ok());
    paths.filter(|path| path.starts_with(folder)).count()
}

const ROWS: u64 = 10_000;

#[test]
fn seven_hundred_tables_need_few_open_files() {
    for format in [Format::Parquet, Format::Arrow] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("set");
        let mut dataset = DatasetWriter::create(&out, options(format, 2)).unwrap();
        let tables: Vec<_> = (0..700).map(|i| dataset.table(numbers(&format!("event/P/E{i}"))).unwrap()).collect();
        for round in 0..3 {
            for table in tables.iter().step_by(2) {
                // More than can wait for the end.
                dataset.write(*table, number_batch(round * ROWS..(round + 1) * ROWS)).unwrap();
            }
            #[cfg(target_os = "linux")]
            assert!(open_files(&folder.path().canonicalize().unwrap()) <= 4);
        }
        let written = dataset.close_tables(&[]).unwrap();
        dataset.commit().unwrap();
        assert_eq!(written.len(), 700);
        assert_eq!(written.iter().map(|table| table.rows).sum::<u64>(), 350 * 3 * ROWS);
        assert!(written.iter().all(|table| out.join(&table.path).is_file()));
    }
}

/// Six million moved ranges, as a large heap dump of one process has them: `cargo test --release -- --ignored
/// --nocapture speed_of`.
#[test]
#[ignore = "a measurement"]
fn speed_of_moved_ranges() {
    use Encoding::{Delta, Dictionary};
    let label = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let columns = [
        ("gc_id", DataType::UInt32, Delta),
        ("old_range_start", DataType::UInt64, Delta),
        ("new_range_start", DataType::UInt64, Delta),
        ("range_length", DataType::UInt64, Delta),
        ("length_kind", label.clone(), Dictionary),
        ("generation_before", label.clone(), Dictionary),
        ("generation_after", label, Dictionary),
    ];
    let fields: Vec<_> = columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let labels: ArrayRef = Arc::new(StringArray::from(vec!["exact", "paired", "gen0", "gen1", "gen2", "loh"]));
    let mut random = 12345u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let (mut old, mut new) = (0x7f00_0000_0000u64, 0x7f00_0000_0000u64);
    let batches: Vec<RecordBatch> = (0..92)
        .map(|batch| {
            let rows: Vec<(u64, u64, u64, u64)> = (0..65536)
                .map(|_| {
                    let random = next();
                    let length = 24 + (random >> 20 & 0x3f) * 8;
                    old += length + (random >> 40 & 0xff) * 8;
                    new += length;
                    (old, new, length, random)
                })
                .collect();
            let numbers = |of: fn(&(u64, u64, u64, u64)) -> u64| -> ArrayRef {
                Arc::new(UInt64Array::from_iter_values(rows.iter().map(of)))
            };
            let label = |of: fn(&(u64, u64, u64, u64)) -> i32| -> ArrayRef {
                let keys: Vec<i32> = rows.iter().map(of).collect();
                Arc::new(arrow_array::DictionaryArray::<Int32Type>::new(keys.into(), labels.clone()))
            };
            let columns = vec![
                Arc::new(UInt32Array::from_value(batch, rows.len())) as ArrayRef,
                numbers(|row| row.0),
                numbers(|row| row.1),
                numbers(|row| row.2),
                label(|row| i32::from(row.3 & 0xfff == 0)),
                label(|row| 2 + i32::from(row.0 >> 24 & 1 == 1)),
                label(|row| 3 + i32::from(row.0 >> 24 & 1 == 1)),
            ];
            RecordBatch::try_new(schema.clone(), columns).unwrap()
        })
        .collect();
    for threads in [1, 2, 3, 1, 2, 3, 1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, threads)).unwrap();
        let encodings = columns.iter().map(|(_, _, encoding)| *encoding).collect();
        let spec = TableSpec { name: "gc_moved_range".into(), schema: schema.clone(), encodings, sorted_by: vec![] };
        let table = dataset.table(spec).unwrap();
        for batch in &batches {
            dataset.write(table, batch.clone()).unwrap();
        }
        let written = dataset.close_tables(&[]).unwrap();
        dataset.commit().unwrap();
        let (rows, bytes) = (written[0].rows, written[0].bytes);
        println!("{threads} threads: {rows} rows, {bytes} bytes, {:?}", began.elapsed());
    }
}
