//! Failures of the Arrow and Parquet writers as errors of this crate.

use crate::prelude::*;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// A failure of the Parquet writer on `path`. What the operating system said (a full disk, say) stays an I/O error.
pub fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_owned();
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::Io { path, source: *source },
            Err(source) => internal(&path, &source),
        },
        other => internal(&path, &other),
    }
}

/// A failure of the Arrow IPC writer on `path`.
pub fn arrow(path: &Path) -> impl FnOnce(ArrowError) -> Error {
    let path = path.to_owned();
    move |error| match error {
        ArrowError::IoError(_, source) => Error::Io { path, source },
        other => internal(&path, &other),
    }
}

fn internal(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Internal(format!("{}: {error}", path.display()))
}
