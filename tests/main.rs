//! All integration tests in one binary, one file per subject.

#[cfg(feature = "cli")]
mod cli;
