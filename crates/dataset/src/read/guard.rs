//! Errors about a file of a table, with its name and format.

use crate::prelude::*;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The error for a file that is no whole file of its format.
pub(super) fn damaged(path: &Path, format: &str, what: impl Into<String>) -> Error {
    Error::Dataset { path: path.to_owned(), what: what.into(), expected: format.into() }
}

/// Calls a reader of arrow-rs. Those panic over some damaged files; here that is an error as any other.
pub(super) fn guarded<T, E: Display>(
    path: &Path,
    format: &str,
    read: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    // Unwind safe: what panicked is not used again.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|e| damaged(path, format, e.to_string())),
        Err(_) => Err(damaged(path, format, "the reader gave up on the file")),
    }
}
