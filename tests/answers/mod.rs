//! Commands that answer a question over one recording or two: `cohorts`, `diff`, `export`, `heap`, `lifetimes`,
//! `report`.

mod cohorts;
mod diff;
pub mod export;
#[cfg(unix)]
mod figures;
mod heap;
mod lifetimes;
#[cfg(unix)]
mod one_figure;
pub mod report;
