//! All integration tests in one binary, one file per subject.

#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "packed")]
mod hostile;
#[cfg(feature = "packed")]
mod shared;
mod support;
