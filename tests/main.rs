//! All integration tests in one binary, a folder for each subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop where it stands, and so may what it calls"
)]

// The fuzz targets ask for libfuzzer's macro: here it is one of tests/hostile/fuzzing.rs.
extern crate self as libfuzzer_sys;

#[cfg(feature = "cli")]
mod answers;
mod callback;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect;
mod dataset;
#[cfg(feature = "packed")]
mod etl;
#[cfg(all(feature = "cli", feature = "packed"))]
mod findings;
mod hostile;
#[cfg(feature = "cli")]
mod lake;
#[cfg(feature = "cli")]
mod metrics;
#[cfg(feature = "cli")]
mod program;
mod project;
mod reader;
mod support;
mod tables;
