//! Words of `manifest.json` for how a dataset is written.

use serde::{Deserialize, Serialize};

tracequet_trace::worded! {
    /// File format of the tables.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum Format {
        /// One Parquet file per table.
        #[default]
        Parquet = "parquet",
        /// One Arrow IPC file (Feather V2) per table.
        Arrow = "arrow",
    }
    /// The name in `manifest.json` and in `--format`, which is the extension of the files, too.
    pub fn name;
}

/// A layout of the files of a dataset in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layout {
    /// `<table>.parquet`: the dataset has one recording.
    Flat,
    /// `<table>/trace=<key>/part-0.parquet`, with the key also in the column `trace_id`.
    Hive,
}

tracequet_trace::worded! {
    /// The type of unsigned 64-bit columns in the files.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum AddressType {
        /// Unsigned, as they are.
        #[default]
        Uint64 = "uint64",
        /// Signed with the same bits, for readers that know no unsigned numbers.
        Int64 = "int64",
    }
    /// The name in `manifest.json` and in `--address-type`.
    pub fn name;
}
