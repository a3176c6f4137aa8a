//! The files of a dataset: what is written, and who can read it.

mod batches;
mod column_names;
mod opened;
#[cfg(unix)]
pub mod readers;
#[cfg(unix)]
mod relations;
mod sink;
