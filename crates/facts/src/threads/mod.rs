//! Threads: CPU samples, exceptions, waits, the thread pool, and the activities that threads work on.

pub mod activity_path;
pub mod exceptions;
pub mod pool;
pub mod samples;
pub mod waits;
pub mod working;
