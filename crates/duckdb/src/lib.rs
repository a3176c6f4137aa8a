//! An extension of DuckDB that reads recordings of .NET processes as tables.
//!
//! ```text
//! DuckDB -> capi (all unsafe code) -> table  FROM tracequet(file, table)   -> session (recordings, each converted once)
//!                                     open   CALL tracequet_open(file)     -> the same, and views
//!                                     close  CALL tracequet_close()
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may stop where it stands"
    )
)]

mod capi;
mod close;
mod open;
mod session;
mod table;

use std::sync::{Arc, Mutex};

use capi::Database;

/// Adds the functions to the database that loads the extension.
fn load(database: Database) -> Result<(), String> {
    let connection = Arc::new(Mutex::new(None));
    database.register(table::ReadTable)?;
    database.register(open::OpenAll::new(connection.clone()))?;
    database.register(close::Close::new(connection.clone()))?;
    open::keep(&connection, database.into_connection());
    Ok(())
}
