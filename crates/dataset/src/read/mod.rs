//! Opens a dataset that a conversion wrote: its recordings, its tables, and chosen columns of them in batches.
//!
//! A [`Dataset`] is a directory with a `manifest.json`. Its tables are Parquet or Arrow IPC files, one for the whole
//! dataset (flat) or one for each recording (hive). What is below reads both formats and both layouts alike.

mod arrow_file;
mod brief;
mod cells;
mod column;
mod described;
mod footers;
mod guard;
mod manifest;
mod merged;
mod open;
mod packed_rows;
mod pages;
#[doc(hidden)]
pub mod parquet_file;
pub mod rows;
pub mod shared_file;
mod table;
pub mod tables;
mod thrift;
mod together;
mod verify;
mod wanted;

pub use arrow_array;
pub use arrow_schema;

pub use crate::format::{DamagedEntry, Format, Layout, TableInfo};
pub use brief::{FailedRecording, RecordingInfo};
pub use column::Column;
pub use footers::Footers;
pub use merged::{Merged, MergedBatches, with_columns, with_columns_of};
pub use open::{Dataset, Recording};
pub use table::{Batches, Scan, Table};
pub use verify::{Files, Found, TableFile, What};
