//! The format of a dataset: names of files, `manifest.json`, and the entries of recordings. What is written and what is
//! read are the same types.
//!
//! | file | what it is | type |
//! |---|---|---|
//! | `manifest.json` | who wrote the dataset and how; its recordings and tables | [`Head`] and [`Lists`], [`Summed`] |
//! | `manifest/<key>.json` | one of several recordings, and its tables | [`Entry`] |
//! | `manifest/packed/<pack>.json` | recordings whose tables lie together, after a compaction | [`Pack`] |
//! | `<table>.parquet`, `<table>/trace=<key>/part-0.parquet` | a table | [`paths`] |

mod entry;
mod manifest;
mod options;
mod pack;
mod pack_head;
pub mod paths;
mod summed;
mod tag;
mod words;

pub use entry::{
    DamagedEntry, Entry, Labels, MOST_ENTRY_BYTES, ProblemCount, Recorded, Status, TableInfo, has_plain_names, hash_of,
};
pub use manifest::{Head, Lists, MOST_MANIFEST_BYTES, PackInfo, TOOL, VERSION, check_size, flat, is_ours};
pub use options::Options;
pub use pack::{Member, OfPack, Pack, recorded_with};
pub use pack_head::{Index, PackHead, PackedFile, PackedTable, living};
pub use summed::{Line, OtherVersion, Summed};
pub use tag::tag_of;
pub use words::{AddressType, Format, Layout};
