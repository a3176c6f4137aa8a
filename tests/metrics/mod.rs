//! Metrics of recordings: `stats`, `check`, `compare`, and what makes runs comparable.

#[cfg(target_os = "linux")]
mod comparable;
mod figures;
mod gates;
pub mod stats;
