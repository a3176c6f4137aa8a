//! The heap graph of one heap dump: which objects keep others alive, and how many bytes each retains.
//!
//! An object *dominates* another when every path from the roots to the other leads through it. What an object retains
//! is what would be garbage without it: the objects that it dominates, and itself.

mod addresses;
mod build;
mod csr;
mod depth_first;
mod distance;
mod dominators;
mod explain;
mod graph;
mod halves;
mod held;
mod kept;
mod limit;
mod ranks;
mod read;
mod roots;
mod snapshots;
mod texts;
mod types;
mod walk;
mod ways;

pub use addresses::Addresses;
pub use csr::Csr;
pub use distance::Paths;
pub use dominators::Dominators;
pub use explain::{Explanation, Step, explain, explain_by};
#[cfg(test)]
pub(crate) use graph::Objects;
pub use graph::{HeapGraph, Unresolved};
pub use held::HeldWalks;
pub use kept::KeptWalk;
pub use limit::{BYTES_PER_OBJECT, BYTES_PER_REFERENCE};
pub use read::{LARGE_TABLES, TABLES, read};
pub use roots::Root;
pub use snapshots::{Snapshot, snapshot, snapshots};
pub(crate) use texts::Texts;
pub use types::{Branch, Retention, TypeRow};
pub use ways::{Held, held};
pub(crate) use ways::{key, ways};
