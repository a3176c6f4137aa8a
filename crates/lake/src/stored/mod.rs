//! Datasets in object stores.

mod bucket;
mod dataset;
mod folder;
mod lease;
#[cfg(test)]
mod memory;

pub use dataset::{StoredDataset, fetch_dataset, files_below};
pub use folder::Folder;

pub(crate) use bucket::Bucket;
