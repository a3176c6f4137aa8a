//! Threads: where they were found running.

pub mod samples;
