//! Datasets: facts and events as Arrow tables, written to and read from files.
//!
//! | module | what it does |
//! |---|---|
//! | [`table`] | facts and events to Arrow batches: a builder for each table, schemas from `schemas/tables/*.toml` |
//! | [`mod@format`] | names of the files of a dataset, `manifest.json` and the entries of recordings |
//! | [`mod@write`] | batches to files: a directory is one dataset, committed whole or not at all |
//! | [`read`] | opens what was written: recordings, tables, chosen columns in batches |
//! | [`error`] | what went wrong with a dataset, or on the way to it |
//! | [`table_spec`] | what the three agree on of a table: name, columns, encodings, order |

pub mod error;
pub mod format;
mod prelude;
pub mod read;
pub mod table;
pub mod table_spec;
pub mod write;
