//! What went wrong, where, and what was expected.

mod nearest;
mod problem;
mod unseen;

use std::path::PathBuf;

pub use nearest::{did_you_mean, nearest};
pub use problem::{Problem, ProblemLog, Report, Severity};
pub use unseen::is_unseen;

/// The result of functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that ends the work on one input. Damage that leaves something readable is no error but a [`Problem`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or stream could not be opened, read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The input is no recording that tracequet reads, or its header cannot be used.
    #[error("{path}: at byte {offset}: {what}, expected {expected}")]
    Unreadable {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// Byte offset in the (unpacked) stream.
        offset: u64,
        /// What was found.
        what: String,
        /// What was expected there.
        expected: String,
    },
    /// A dataset, or a table of one, is missing, damaged, or of another version.
    #[error("{path}: {what}, expected {expected}")]
    Dataset {
        /// The directory or the file.
        path: PathBuf,
        /// What was found.
        what: String,
        /// What should have been there.
        expected: String,
    },
    /// A recording is damaged, and the request was to stop there.
    #[error("{path}: at byte {offset}: {what}; nothing was written, because --strict treats damage as an error")]
    Damaged {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// Byte offset in the (unpacked) stream.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The tables of a live recording could not be written; the recording is kept.
    #[error("{cause}; what was recorded is in {kept}: convert it where there is room")]
    NotConverted {
        /// The recording.
        kept: PathBuf,
        /// Why.
        cause: Box<Error>,
    },
    /// The request itself cannot be carried out: an unknown table, an output that exists already.
    #[error("{0}")]
    Usage(String),
    /// A shipped schema or the Arrow and Parquet writers refused; this is a defect of tracequet.
    #[error("internal: {0}")]
    Internal(String),
}

impl Error {
    /// Wraps an I/O error with the path it happened on.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}
