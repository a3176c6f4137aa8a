//! Datasets of several recordings: they grow, are packed, verified and repaired.

pub mod compaction;
mod damaged;
mod egress;
mod empty_tables;
mod entries;
mod labels;
pub mod many;
mod small_recordings;
mod verify;
