//! All integration tests in one binary, one file per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop where it stands, and so may what it calls"
)]

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
