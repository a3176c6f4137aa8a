//! Errors: what went wrong, where, and what was expected.

mod cut;
mod nearest;
mod problem;
mod unseen;

use std::path::PathBuf;

pub use cut::{beginning, cut};
pub use nearest::{did_you_mean, edit_distance, nearest};
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The input is no recording that tracequet reads, or its header cannot be used.
    #[error("{path}: at byte {offset}: {what}, expected {expected}")]
    Unreadable {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// Byte offset in the (unpacked) stream.
        offset: u64,
        /// The finding, as a sentence.
        what: String,
        /// The value or the bytes that were expected there.
        expected: String,
    },
    /// A recording is damaged, and the request was to stop there.
    #[error("{path}: at byte {offset}: {what}; nothing was written, because damage was to be an error")]
    Damaged {
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// Byte offset in the (unpacked) stream.
        offset: u64,
        /// The damage or the mistake, as a sentence.
        what: String,
    },
    /// The thing that a request names is not there.
    #[error("{message}")]
    NotFound {
        /// The kind of thing that was named.
        what: Named,
        /// The name that was looked for, where, and what is there instead.
        message: String,
    },
    /// The input has more of something than is ever held.
    #[error("{0}")]
    TooLarge(String),
    /// A process is there, but its runtime cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The system or a runtime does not allow it.
    #[error("{0}")]
    Refused(String),
    /// There was no answer in time.
    #[error("{0}")]
    TimedOut(String),
    /// The request itself cannot be carried out: options that exclude each other, an address of no known kind.
    #[error("{0}")]
    Usage(String),
    /// A shipped file or a thread of our own failed; this is a defect of tracequet.
    #[error("internal: {0}")]
    Internal(String),
}

/// A kind of thing that a request can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Named {
    /// A running process.
    Process,
    /// A program that is to be started.
    Program,
    /// A process, thread or provider with events in the recording.
    Events,
    /// A provider of events that the system knows.
    Provider,
    /// A file or a directory.
    Path,
}

impl Error {
    /// Whether the request is at fault, not its input nor the system: it fails again, whatever the recording.
    pub fn is_of_request(&self) -> bool {
        matches!(self, Error::Usage(_) | Error::NotFound { .. })
    }

    /// Wraps an I/O error with the path it happened on.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }
}
