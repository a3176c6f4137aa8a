//! Many recordings into one dataset, side by side, independently of each other's failures.

mod batch;
mod failed;
mod hashes;
pub(crate) mod known;
mod late;
mod memory;
mod together;

pub(crate) use batch::{remove, run};
