//! Survival over time: how many of the bytes that were allocated before a collection are alive after it and after each
//! later one. Found by arithmetic on the ranges that collections list; no object is looked at.

mod lineage;
mod pieces;
mod read;
#[cfg(test)]
mod simulated;
mod spans;
mod stored;

pub use lineage::{Bound, CohortRow, Collection, Lineage, Range};
pub use pieces::UNKNOWN_BIRTH;
pub use read::{TABLES, cohorts};
pub use stored::StoredRanges;
