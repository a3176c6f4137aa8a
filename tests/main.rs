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

mod answers;
mod callback;
#[cfg(target_os = "linux")]
mod collect;
mod dataset;
mod etl;
mod findings;
mod hostile;
mod lake;
mod metrics;
mod program;
mod project;
mod reader;
mod support;
mod tables;
