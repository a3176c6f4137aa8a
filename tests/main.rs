//! All integration tests, as one binary: linking Arrow and Parquet once is slow enough.

#[cfg(feature = "tables")]
mod sink;
