//! Datasets in object stores.

mod bucket;
mod dataset;
mod folder;
mod lease;

pub use dataset::{StoredDataset, fetch_dataset, files_below};
pub use folder::Folder;

pub(crate) use bucket::Bucket;

#[cfg(test)]
mod tests {
    pub(super) mod memory;
}
