//! Errors of a dataset, or on the way to it.

use std::path::PathBuf;

use tracequet_trace::error::Error as TraceError;

/// The result of functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that ends the work on a dataset. What is said of recordings, sessions and processes is in
/// [`Error::Trace`]; the variants that both layers have (files, requests, bounds, defects) are those of this type,
/// wherever the failure comes from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A recording, a session or a process failed.
    #[error(transparent)]
    Trace(TraceError),
    /// A file or stream could not be opened, read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A dataset, or a table of one, is missing, damaged, or of another version.
    #[error("{path}: {what}, expected {expected}")]
    Dataset {
        /// The directory or the file.
        path: PathBuf,
        /// The finding, as a sentence.
        what: String,
        /// The value that should have been there.
        expected: String,
    },
    /// A dataset, or a part of one, was written by another version, with other columns.
    #[error("{path}: {what}, expected {expected}")]
    OtherVersion {
        /// The file that says so.
        path: PathBuf,
        /// The version that it has.
        what: String,
        /// The version of now.
        expected: String,
    },
    /// The dataset is written in another way than what is to be added.
    #[error("{path}: its {difference}, so nothing is added")]
    Incompatible {
        /// The directory.
        path: PathBuf,
        /// The option in which the two differ.
        difference: Difference,
    },
    /// The output is there already.
    #[error("{path} exists already")]
    Exists {
        /// The directory or the address.
        path: PathBuf,
        /// Whether a request can replace it.
        replaceable: bool,
    },
    /// The tables of a live recording could not be written; the recording is kept.
    #[error("{cause}; what was recorded is in {kept}: convert it where there is room")]
    NotConverted {
        /// The recording.
        kept: PathBuf,
        /// Why.
        cause: Box<Error>,
    },
    /// The dataset does not have the thing that the request names.
    #[error("{message}")]
    NotFound {
        /// The kind of thing that was named.
        what: Named,
        /// The name that was looked for, where, and what is there instead.
        message: String,
    },
    /// The recording does not have the events that the answer is made of.
    #[error("{message}")]
    NotRecorded {
        /// The events.
        what: Evidence,
        /// The missing facts, and the keywords that record them.
        message: String,
    },
    /// A batch does not have a column, or has it with a type that cannot be used.
    #[error("column {column}: {found}, expected {expected}")]
    MissingColumn {
        /// The column.
        column: String,
        /// The type that is there instead, or nothing.
        found: String,
        /// The type that should be there.
        expected: String,
    },
    /// The answer takes more memory than the request allows.
    #[error("{0}")]
    OverMemory(String),
    /// The input has more of something than is ever held.
    #[error("{0}")]
    TooLarge(String),
    /// The request itself cannot be carried out: options that exclude each other, an output that exists already.
    #[error("{0}")]
    Usage(String),
    /// A shipped schema or the Arrow and Parquet writers refused; this is a defect of tracequet.
    #[error("internal: {0}")]
    Internal(String),
}

/// A kind of thing that a request can name in a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Named {
    /// A recording of a dataset.
    Recording,
    /// A collection of a recording.
    Collection,
    /// A table.
    Table,
}

/// An option by which datasets are written differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// For one recording, without keys.
    #[error("tables are those of one recording, without keys")]
    OneRecording,
    /// As files of this format.
    #[error("tables are {0} files")]
    Format(&'static str),
    /// With addresses of this type.
    #[error("addresses are {0}")]
    AddressType(&'static str),
}

/// Events that an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// The ranges of memory that survive collections.
    SurvivingRanges,
    /// A walk of the heap.
    HeapWalk,
    /// Allocations with the addresses of their objects.
    AllocatedObjects,
    /// Activity ids of events.
    Activities,
}

impl Error {
    /// Whether the request is at fault, not its input nor the system: it fails again, whatever the recording.
    pub fn is_of_request(&self) -> bool {
        match self {
            Error::Trace(error) => error.is_of_request(),
            Error::Usage(_)
            | Error::Exists { .. }
            | Error::Incompatible { .. }
            | Error::NotFound { .. }
            | Error::NotRecorded { .. }
            | Error::MissingColumn { .. } => true,
            _ => false,
        }
    }

    /// Wraps an I/O error with the path it happened on.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Error {
        match error {
            TraceError::Io { path, source } => Error::Io { path, source },
            TraceError::TooLarge(what) => Error::TooLarge(what),
            TraceError::Usage(what) => Error::Usage(what),
            TraceError::Internal(what) => Error::Internal(what),
            other => Error::Trace(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_layers_say_has_one_shape() {
        let io = || TraceError::io("a.nettrace")(std::io::Error::other("full"));
        assert!(matches!(io().into(), Error::Io { .. }));
        assert!(matches!(TraceError::Usage("no".into()).into(), Error::Usage(_)));
        let damaged = TraceError::Damaged { path: "a".into(), offset: 3, what: "cut".into() };
        let message = damaged.to_string();
        let error = Error::from(damaged);
        assert!(matches!(error, Error::Trace(TraceError::Damaged { offset: 3, .. })) && !error.is_of_request());
        assert_eq!(error.to_string(), message);
        assert_eq!(Error::from(io()).to_string(), io().to_string());
    }
}
