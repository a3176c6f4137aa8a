//! Subjects of a recording, each the only place that knows which rows count, how much, and whose they are.

pub mod allocations;
pub mod collections;
pub mod compiling;
pub mod heap;
pub(crate) mod named;
pub mod pauses;
pub mod pool;
pub mod processor;
pub mod requests;
pub(crate) mod sites;
pub(crate) mod texts;
pub(crate) mod unnamed;
pub mod waits;
