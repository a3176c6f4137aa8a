//! The tables of one recording in a dataset, read row by row: Parquet or Arrow IPC, in either layout.

use std::fs::File;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::error::{Error, Result};

/// Rows of a Parquet file read at once.
const BATCH: usize = 16 << 10;
/// Keys of recordings that an error lists.
const MAX_LISTED: usize = 20;

/// Where the tables of one recording are.
pub struct Files {
    dataset: PathBuf,
    /// `trace=<key>` in a dataset of several.
    partition: Option<String>,
    is_arrow: bool,
}

impl Files {
    /// The recording `trace` of a dataset; it has to be named when there are several.
    pub fn open(dataset: &Path, trace: Option<&str>) -> Result<Files> {
        let keys = keys(&dataset.join("gc"));
        let partition = match (keys.as_slice(), trace) {
            ([], None) => None,
            ([], Some(_)) => {
                let why = "it does not have several recordings to choose from";
                return Err(Error::Usage(format!("{}: {why}", dataset.display())));
            }
            ([only], None) => Some(only),
            (_, Some(wanted)) if keys.iter().any(|key| key == wanted) => keys.iter().find(|key| *key == wanted),
            (_, wanted) => {
                let listed: Vec<_> = keys.iter().take(MAX_LISTED).map(String::as_str).collect();
                let more = if keys.len() > listed.len() { ", ..." } else { "" };
                let what = wanted.map_or("it has several recordings".into(), |key| format!("no recording {key}"));
                let choose = format!("choose one with --trace: {}{more}", listed.join(", "));
                return Err(Error::Usage(format!("{}: {what}, {choose}", dataset.display())));
            }
        };
        let partition = partition.map(|key| format!("trace={key}"));
        let arrow = Files { dataset: dataset.to_owned(), partition, is_arrow: true };
        let is_arrow = arrow.path("gc").is_file();
        Ok(Files { is_arrow, ..arrow })
    }

    fn path(&self, table: &str) -> PathBuf {
        let extension = if self.is_arrow { "arrow" } else { "parquet" };
        match &self.partition {
            Some(partition) => self.dataset.join(table).join(partition).join(format!("part-0.{extension}")),
            None => self.dataset.join(format!("{table}.{extension}")),
        }
    }

    /// Rows of a table whose `gc_id` is one of `ids`; others may come as well.
    pub fn batches(
        &self,
        table: &str,
        columns: &[&str],
        ids: &RangeInclusive<u32>,
        mut each: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(table);
        if !path.is_file() {
            let why = "expected a dataset with this table, or a recording";
            return Err(Error::Usage(format!("{}: is not there, {why}", path.display())));
        }
        let damaged = |e: &dyn std::fmt::Display| Error::Unreadable {
            path: path.clone(),
            offset: 0,
            what: e.to_string(),
            expected: if self.is_arrow { "an Arrow IPC file" } else { "a Parquet file" }.into(),
        };
        let file = File::open(&path).map_err(Error::io(&path))?;
        if self.is_arrow {
            for batch in FileReader::try_new(BufReader::new(file), None).map_err(|e| damaged(&e))? {
                each(&batch.map_err(|e| damaged(&e))?)?;
            }
            return Ok(());
        }
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
        let groups = builder.metadata().row_groups().iter().enumerate();
        let wanted = groups.filter(|(_, group)| may_have(group, ids)).map(|(index, _)| index).collect();
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        let builder = builder.with_row_groups(wanted).with_projection(mask).with_batch_size(BATCH);
        for batch in builder.build().map_err(|e| damaged(&e))? {
            each(&batch.map_err(|e| damaged(&e))?)?;
        }
        Ok(())
    }
}

/// Keys of the recordings that a table's folder has parts of, sorted.
fn keys(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut keys: Vec<_> = names.filter_map(|name| name.strip_prefix("trace=").map(str::to_owned)).collect();
    keys.sort_unstable();
    keys
}

/// Whether a row group may have rows of these collections, by its statistics.
fn may_have(group: &RowGroupMetaData, ids: &RangeInclusive<u32>) -> bool {
    let column = group.columns().iter().find(|column| column.column_path().string() == "gc_id");
    match column.and_then(|column| column.statistics()) {
        // uint32 is stored in the bits of an int32.
        Some(Statistics::Int32(found)) => match (found.min_opt(), found.max_opt()) {
            (Some(min), Some(max)) => *min as u32 <= *ids.end() && *max as u32 >= *ids.start(),
            _ => true,
        },
        _ => true,
    }
}

/// A column of numbers, or of text, row by row.
pub struct Column<'a>(&'a dyn Array);

impl<'a> Column<'a> {
    /// The column with this name.
    pub fn of(batch: &'a RecordBatch, name: &str) -> Result<Column<'a>> {
        let column = batch.column_by_name(name).ok_or_else(|| Error::Usage(format!("no column {name}")))?;
        Ok(Column(column.as_ref()))
    }

    /// A number; signed ones by their bits (`--address-type int64`), `None` when it is null or no number.
    pub fn number(&self, row: usize) -> Option<u64> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::UInt64 => Some(self.0.as_primitive::<UInt64Type>().value(row)),
            DataType::UInt32 => Some(u64::from(self.0.as_primitive::<UInt32Type>().value(row))),
            DataType::UInt16 => Some(u64::from(self.0.as_primitive::<UInt16Type>().value(row))),
            DataType::UInt8 => Some(u64::from(self.0.as_primitive::<UInt8Type>().value(row))),
            DataType::Int64 => Some(self.0.as_primitive::<Int64Type>().value(row) as u64),
            DataType::Boolean => Some(u64::from(self.0.as_boolean().value(row))),
            _ => None,
        }
    }

    /// A number of 8 bits.
    pub fn small(&self, row: usize) -> Option<u8> {
        self.number(row).and_then(|n| u8::try_from(n).ok())
    }

    /// A number of 32 bits; 0 when it is none.
    pub fn id(&self, row: usize) -> u32 {
        self.number(row).and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
    }

    /// A text, plain or by a dictionary.
    pub fn text(&self, row: usize) -> Option<&str> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::Utf8 => Some(self.0.as_string::<i32>().value(row)),
            DataType::Dictionary(..) => {
                let column = self.0.as_dictionary_opt::<Int32Type>()?;
                let key = usize::try_from(column.keys().value(row)).ok()?;
                let values = column.values().as_string_opt::<i32>()?;
                (key < values.len()).then(|| values.value(key))
            }
            _ => None,
        }
    }
}
