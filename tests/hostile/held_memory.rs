//! Commands that read a dataset take a bounded memory, whatever small files unpack to.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tracequet::dataset::read::Dataset;
use tracequet::{Convert, convert};

/// What the texts of a column take when they are unpacked.
const UNPACKED: usize = 2 << 30;

/// Address space of a command, in KB: its code, the stacks of its threads, and what it may hold.
const ADDRESS_SPACE: u32 = 1_600_000;

/// Writes a table again with long texts in a column, each of them another one. Gives the bytes of the file.
fn inflate(dataset: &Path, name: &str, column: &str) -> u64 {
    let opened = Dataset::open(dataset).unwrap();
    let recording = opened.recording(None).unwrap();
    let table = recording.table(name).unwrap();
    let batches: Vec<RecordBatch> = table.scan().batches().unwrap().map(|batch| batch.unwrap()).collect();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert!(rows > 20, "{name}: {rows}");
    let length = UNPACKED / rows;
    let path: PathBuf = table.path().to_owned();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .set_write_batch_size(1)
        .set_max_row_group_row_count(Some(16))
        .build();
    let schema = batches[0].schema();
    let place = schema.index_of(column).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema.clone(), Some(properties)).unwrap();
    let mut number = 0;
    for batch in &batches {
        for row in 0..batch.num_rows() {
            number += 1;
            let text = format!("{}{number}", "x".repeat(length));
            let mut columns: Vec<ArrayRef> = batch.slice(row, 1).columns().to_vec();
            columns[place] = Arc::new(StringArray::from(vec![text]));
            assert_eq!(columns[place].data_type(), schema.field(place).data_type(), "{name}.{column}");
            writer.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
        }
    }
    writer.close().unwrap();
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn small_files_that_unpack_to_much_are_refused_in_bounded_memory() {
    let cases = [("heap", "heap", "type", "name"), ("stats", "gc-churn", "metric", "key")];
    for (command, sample, table, column) in cases {
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("dataset");
        convert(&Convert::new([format!("samples/{sample}.nettrace")], &dataset), &mut |_| {}).unwrap();
        let bytes = inflate(&dataset, table, column);
        assert!(bytes < 20 << 20, "{table}: {bytes} bytes");
        let script = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" {command} \"$1\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_tracequet")]).arg(&dataset);
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let is_refused = said.contains("have more than 256 MB") || said.contains("that are needed");
        assert!(output.status.code() == Some(1) && is_refused, "{command}: {:?} {said}", output.status);
    }
}
