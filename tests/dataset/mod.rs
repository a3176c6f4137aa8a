//! The files of a dataset: what is written, and who can read it.

mod batches;
mod column_names;
mod opened;
#[cfg(all(feature = "cli", unix))]
pub mod readers;
#[cfg(all(feature = "cli", unix))]
mod relations;
mod sink;
