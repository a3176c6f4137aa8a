//! The C interface of DuckDB, and all unsafe code of the extension. What is outside of this module cannot break memory.
//!
//! DuckDB hands an extension a struct of pointers to its functions. Those that are stable since DuckDB 1.2.0 keep their
//! places in every later release, so that one file loads into all of them. The places are those of `duckdb_ext_api_v1`
//! in `duckdb_extension.h`.

#![allow(unsafe_code, reason = "DuckDB calls through pointers, and is called through them")]

mod at_exit;
mod connection;
mod database;
mod entry;
mod function;
mod guard;
mod interrupt;
mod slots;
mod types;
mod vector;

pub use at_exit::at_exit;
pub use connection::Connection;
pub use database::Database;
pub use function::{Asked, Columns, Rows, TableFunction};
pub use interrupt::Interrupt;
pub use types::{Type, type_of};
