//! What a dataset of several recordings says of them, wherever it lies: entries, summary, files without rows.

pub(crate) mod described;
pub(crate) mod empty;
pub(crate) mod entries;
pub(crate) mod head;
pub(crate) mod repair;
