//! Compaction: the tables of many recordings of a dataset become a pack, whose files have the rows of all of them.
//!
//! A `Job` says which recordings and packs become one pack, and what is left out of them. So the same code compacts, takes
//! recordings out of packs, reduces them to some of their tables, and gives them other labels: in each case a new pack takes the place of others in one step
//! ([`Lake::put_pack`](crate::write::Lake::put_pack)).

mod job;
mod merge;
mod pack;
mod plan;
mod take_out;

pub use pack::{Compacted, LeftOut, compact};
pub use plan::Limits;
pub use take_out::{reduce, relabel, take_out};
