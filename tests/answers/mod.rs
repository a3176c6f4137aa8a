//! Commands that answer a question over one recording or two: `cohorts`, `diff`, `export`, `heap`, `lifetimes`, `report`.

mod cohorts;
#[cfg(feature = "packed")]
mod diff;
pub mod export;
mod heap;
#[cfg(feature = "packed")]
mod lifetimes;
mod report;
