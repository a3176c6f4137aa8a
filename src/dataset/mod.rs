//! Opens a dataset that a conversion wrote: its recordings, its tables, and chosen columns of them in batches.
//!
//! A [`Dataset`] is a directory with a `manifest.json`. Its tables are Parquet or Arrow IPC files, one for the whole
//! dataset (flat) or one for each recording (hive). What is below reads both formats and both layouts alike.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use tracequet::pipeline::{Convert, convert};
//! use tracequet::dataset::{Column, Dataset};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("out");
//! # convert(&Convert::new(["samples/gc-churn.nettrace"], &path), &mut |_| {})?;
//! let dataset = Dataset::open(&path)?;
//! let recording = dataset.recording(None)?;
//! let mut bytes = 0;
//! for batch in recording.table("gc_surviving_range")?.scan().columns(["gc_id", "range_length"]).batches()? {
//!     let batch = batch?;
//!     let length = Column::of(&batch, "range_length")?;
//!     bytes += (0..batch.num_rows()).filter_map(|row| length.number(row)).sum::<u64>();
//! }
//! assert!(bytes > 0);
//! # Ok(())
//! # }
//! ```

mod arrow_file;
mod column;
mod guard;
mod manifest;
mod open;
mod pages;
mod parquet_file;
mod table;
mod thrift;
mod verify;
mod wanted;

pub use arrow_array;
pub use arrow_schema;

pub use crate::sink::{DamagedEntry, Format};
pub use column::Column;
pub use manifest::{FailedRecording, Layout, RecordingInfo, TableInfo};
pub use open::{Dataset, Recording};
pub use table::{Batches, Scan, Table};
pub use verify::{Files, Found, TableFile, What};
