//! Threads: CPU samples, exceptions, waits, and the thread pool.

pub mod exceptions;
pub mod pool;
pub mod samples;
pub mod waits;
