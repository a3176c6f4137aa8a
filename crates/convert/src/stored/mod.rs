//! Recordings and datasets in object stores.

mod ahead;
mod dataset;
mod fetches;
mod folder;
mod inputs;
mod lake;
mod target;

pub use dataset::{StoredDataset, fetch_dataset};

pub(super) use ahead::{Ahead, Came};
pub(super) use fetches::Fetches;
pub(super) use inputs::expand;
pub(super) use lake::{StoreLake, remove, repair};
pub(super) use target::Target;
