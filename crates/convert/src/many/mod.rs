//! Many recordings into one dataset, side by side, independently of each other's failures.

mod failed;
mod hashes;
pub(crate) mod known;
mod late;
mod memory;
mod run;
mod together;

pub(crate) use run::run;
