//! Many recordings into one dataset, side by side, independently of each other's failures.

mod failed;
mod hashes;
pub(crate) mod known;
mod memory;
mod packs;
mod run;
mod small;
mod together;

pub(crate) use run::run;
