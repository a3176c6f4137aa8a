//! Recordings and datasets in object stores.

mod ahead;
mod bucket;
mod dataset;
mod fetches;
mod folder;
mod inputs;
mod lease;
#[cfg(test)]
mod memory;
mod target;

pub use dataset::{StoredDataset, fetch_dataset};

pub(super) use ahead::{Ahead, Came};
pub(super) use bucket::Bucket;
pub(super) use fetches::Fetches;
pub(super) use inputs::expand;
pub(super) use target::{Target, address_of};
