//! Metrics of recordings: `stats`, `check`, `compare`, and what makes runs comparable.

#[cfg(target_os = "linux")]
mod comparable;
#[cfg(feature = "packed")]
mod figures;
#[cfg(feature = "packed")]
mod gates;
pub mod stats;
