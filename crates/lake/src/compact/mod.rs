//! Compaction: the tables of many recordings of a dataset become a pack, whose files have the rows of all of them.
//!
//! A `Job` says which recordings and packs become one pack, and what is left out of them. So the same code compacts,
//! takes recordings out of packs, reduces them to some of their tables, and gives them other labels: in each case a new
//! pack takes the place of others in one step ([`Lake::put_pack`](crate::files::Lake::put_pack)). Small recordings
//! whose rows are in memory become a pack before they have any files.

mod fresh;
mod job;
mod made;
mod merge;
mod pack;
mod plan;
mod take_out;

pub use fresh::{HeldRecording, PackOptions, put_held};
pub use pack::{Compacted, LeftOut, compact};
pub use plan::Limits;
pub use take_out::{reduce, relabel, remove_recordings, take_out};
