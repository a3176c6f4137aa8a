//! Reads datasets back as a user would: from the files.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tracequet::analyze::survived::{self, Step};
use tracequet::dataset::error::Result;
use tracequet::dataset::read::{Column, Recording};
use tracequet::trace::source::live::Live;
use tracequet::{Convert, Summary, collect_etw, convert};

/// What became of an object, by the dataset in a directory.
pub fn survived(path: &Path, trace: Option<&str>, gc: u32, address: u64, follow: bool) -> Result<Vec<Step>> {
    let dataset = tracequet::dataset::read::Dataset::open(path)?;
    survived::survived(&dataset.recording(trace)?, gc, address, follow)
}

/// All rows of some columns of a table; text as it is, numbers in decimal.
pub fn rows<const N: usize>(recording: &Recording<'_>, table: &str, names: [&str; N]) -> Vec<[String; N]> {
    let mut all = Vec::new();
    for batch in recording.table(table).unwrap().scan().columns(names).batches().unwrap() {
        let batch = batch.unwrap();
        let columns = names.map(|name| Column::of(&batch, name).unwrap());
        for row in 0..batch.num_rows() {
            all.push(columns.map(|column| match column.text(row) {
                Some(text) => text.to_owned(),
                None => column.number(row).unwrap_or_default().to_string(),
            }));
        }
    }
    all
}

/// Objects, types and references of the heap in a dataset. Each reference leads to an object, and none is missing.
pub fn whole_heap(out: &Path) -> [usize; 3] {
    let [objects, types, references] =
        ["heap_object", "type", "heap_reference"].map(|table| Table::open(&out.join(format!("{table}.parquet"))));
    let known = objects.numbers("object_id");
    assert!(references.numbers("target_object_id").iter().all(|target| known.contains(target)));
    assert_eq!(objects.numbers("reference_count").iter().sum::<u64>(), references.rows() as u64);
    [objects, types, references].map(|table| table.rows())
}

/// A converted recording in a directory of its own.
pub struct Dataset {
    pub summary: Summary,
    directory: tempfile::TempDir,
}

impl Dataset {
    /// Converts one recording.
    pub fn of(recording: &Path) -> Dataset {
        Dataset::with(Convert::default().inputs([recording.to_owned()]))
    }

    /// Carries out a request in a directory of its own.
    pub fn with(request: Convert) -> Dataset {
        let directory = tempfile::tempdir().unwrap();
        let request = request.output(directory.path().join("out"));
        let summary = convert(&request, &mut |_| {}).unwrap_or_else(|e| panic!("{:?}: {e}", request.input_paths()));
        Dataset { summary, directory }
    }

    /// Carries out a request on a session until it ends.
    pub fn of_live(request: Convert, live: Live) -> Dataset {
        let directory = tempfile::tempdir().unwrap();
        let request = request.output(directory.path().join("out"));
        let summary = collect_etw(&request, || Ok(live), &mut |_| {}).unwrap_or_else(|e| panic!("live: {e}"));
        Dataset { summary, directory }
    }

    /// Code and sum of counts of what was lost or damaged.
    pub fn problems(&self) -> Vec<(&'static str, u64)> {
        self.summary.inputs[0].problems.iter().map(|p| (p.code, p.count)).collect()
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// The recordings of a dataset, in the order of their names.
    pub fn open_paths(path: &Path) -> Vec<String> {
        let opened = tracequet::dataset::read::Dataset::open(path).unwrap();
        let mut all: Vec<String> = opened.recordings().iter().map(|of| of.path.display().to_string()).collect();
        all.sort();
        all
    }

    /// All rows of a table.
    pub fn table(&self, name: &str) -> Table {
        Table::open(&self.path().join(format!("{name}.parquet")))
    }
}

/// All rows of one file.
pub struct Table {
    pub batches: Vec<RecordBatch>,
    name: String,
}

impl Table {
    pub fn open(path: &Path) -> Table {
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        Table { batches: reader.map(std::result::Result::unwrap).collect(), name: path.display().to_string() }
    }

    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<String> {
        let schema = self.batches.first().map(RecordBatch::schema);
        schema.iter().flat_map(|s| s.fields()).map(|field| field.name().clone()).collect()
    }

    fn arrays<'t>(&'t self, column: &'t str) -> impl Iterator<Item = &'t ArrayRef> {
        self.batches.iter().map(move |batch| {
            batch.column_by_name(column).unwrap_or_else(|| panic!("{}: no column {column}", self.name))
        })
    }

    /// A column of unsigned numbers of any width.
    pub fn optional(&self, column: &str) -> Vec<Option<u64>> {
        let mut out = Vec::new();
        for array in self.arrays(column) {
            match array.data_type() {
                DataType::UInt8 => out.extend(array.as_primitive::<UInt8Type>().iter().map(|v| v.map(u64::from))),
                DataType::UInt16 => out.extend(array.as_primitive::<UInt16Type>().iter().map(|v| v.map(u64::from))),
                DataType::UInt32 => out.extend(array.as_primitive::<UInt32Type>().iter().map(|v| v.map(u64::from))),
                DataType::UInt64 => out.extend(array.as_primitive::<UInt64Type>().iter()),
                other => panic!("{}: {column} is {other}", self.name),
            }
        }
        out
    }

    /// A column of unsigned numbers without nulls.
    pub fn numbers(&self, column: &str) -> Vec<u64> {
        self.optional(column).into_iter().map(|v| v.unwrap_or_else(|| panic!("null in {column}"))).collect()
    }

    /// A column of 64-bit signed numbers.
    pub fn signed(&self, column: &str) -> Vec<Option<i64>> {
        self.arrays(column).flat_map(|a| a.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    }

    /// A column of floating-point numbers.
    pub fn floats(&self, column: &str) -> Vec<Option<f64>> {
        self.arrays(column).flat_map(|a| a.as_primitive::<Float64Type>().iter().collect::<Vec<_>>()).collect()
    }

    /// A column of truth values.
    pub fn bools(&self, column: &str) -> Vec<bool> {
        self.arrays(column).flat_map(|a| a.as_boolean().iter().map(Option::unwrap).collect::<Vec<_>>()).collect()
    }

    /// A column of text or labels; null is empty.
    pub fn texts(&self, column: &str) -> Vec<String> {
        let mut out = Vec::new();
        for array in self.arrays(column) {
            let plain = match array.data_type() {
                DataType::Dictionary(..) => {
                    let dictionary = array.as_any_dictionary();
                    let values = dictionary.values().as_string::<i32>();
                    let text = |key: usize| values.value(key).to_owned();
                    let keys = dictionary.normalized_keys();
                    let valid = |i: usize| !array.is_null(i);
                    out.extend(
                        keys.into_iter().enumerate().map(|(i, k)| if valid(i) { text(k) } else { String::new() }),
                    );
                    continue;
                }
                _ => array.as_string::<i32>(),
            };
            out.extend(plain.iter().map(|t| t.unwrap_or_default().to_owned()));
        }
        out
    }
}
