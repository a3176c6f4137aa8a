//! Recordings in object stores, and a dataset that goes to one.

mod ahead;
mod fetches;
mod inputs;
#[cfg(test)]
#[allow(dead_code, reason = "the tests of datasets ask it for more")]
#[path = "../../../lake/src/stored/tests/memory.rs"]
mod memory;
mod target;

pub(super) use ahead::{Ahead, Came};
pub(super) use fetches::Fetches;
pub(super) use inputs::expand;
pub(super) use target::{Target, address_of};
