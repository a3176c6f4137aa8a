//! Threads: where they were found running, what they threw, what they waited for, and the pool of them.

pub mod exceptions;
pub mod pool;
pub mod samples;
pub mod waits;
