//! Datasets of many recordings: whoever reads one recording, or writes one, meets nothing of this.
//!
//! | folder | what is in it |
//! |---|---|
//! | `files/` | recordings and packs come into a dataset and go, each in one step; how a directory does it |
//! | `stored/` | how an object store does it, with leases; a dataset of a store copied to this machine |
//! | `compact/` | the tables of many recordings become few files |
//! | `upkeep/` | compaction, expiry, labels, removal, repair, as they are asked for; the summary of a dataset |

mod compact;
mod files;
mod prelude;
mod stored;
mod upkeep;

pub use compact::{Compacted, HeldRecording, LeftOut};
pub use files::{Announce, Directory, GRACE, HeldTables, Holds, Lake, NewRecording, Parts, Put, Storage};
pub use stored::{Folder, StoredDataset, fetch_dataset, files_below};
pub use upkeep::{
    Empty, Expire, Expired, Relabel, Written, at, check_head, compact, describe, expire, manifest, of, put, put_held,
    relabel, remove, repair, unpacked,
};
