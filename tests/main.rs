//! All integration tests in one binary, one file per subject.

#[cfg(feature = "cli")]
mod cli;
#[cfg(all(feature = "cli", feature = "packed"))]
mod gc;
#[cfg(feature = "packed")]
mod hostile;
#[cfg(feature = "packed")]
mod shared;
mod support;
