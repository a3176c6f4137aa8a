//! All integration tests in one binary, one file per subject.

#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod docs;
#[cfg(feature = "packed")]
mod hostile;
mod layers;
#[cfg(feature = "cli")]
mod readers;
#[cfg(feature = "cli")]
mod record;
#[cfg(feature = "packed")]
mod shared;
mod support;
