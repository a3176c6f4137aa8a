//! What went wrong, where, and what was expected.

use std::path::PathBuf;

/// The result of everything in this crate that can fail for good.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that ends the work on one input. Damage that leaves something readable is no error but a [`Problem`].
#[derive(Debug, thiserror::Error)]
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
        /// What should have stood there.
        expected: String,
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

/// How much a [`Problem`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Info,
    /// Something the process emitted is not in the tables, or not decoded.
    DataLoss,
    /// The recording is damaged here.
    Error,
}

impl Severity {
    /// The word in the `diagnostic` table.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::DataLoss => "data_loss",
            Severity::Error => "error",
        }
    }
}

/// Something that was lost, damaged or not understood while the rest was read: a row of the `diagnostic` table.
#[derive(Clone, Debug)]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// A stable snake_case word for the kind of problem, for queries.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: String,
    /// Byte offset in the (unpacked) stream.
    pub offset: u64,
    /// How many events, bytes or records it concerns; 1 when it is a single thing.
    pub count: u64,
    /// The capturing thread's OS id; 0 when it concerns no thread.
    pub thread_id: u64,
}

impl Problem {
    /// A problem that concerns one thing at `offset`.
    pub fn new(severity: Severity, code: &'static str, offset: u64, message: impl Into<String>) -> Problem {
        Problem { severity, code, message: message.into(), offset, count: 1, thread_id: 0 }
    }

    /// The same with a count.
    pub fn count(mut self, count: u64) -> Problem {
        self.count = count;
        self
    }

    /// The same with the thread it concerns.
    pub fn thread(mut self, thread_id: u64) -> Problem {
        self.thread_id = thread_id;
        self
    }
}
