//! Survival over time: of the bytes that came into being before a collection, how many are alive after it and after each later
//! one. Found by arithmetic on the ranges that collections list; no object is looked at.

mod lineage;
mod read;
#[cfg(test)]
mod simulated;
mod spans;
mod stored;

pub use lineage::{Bound, CohortRow, Collection, Lineage, Range, UNKNOWN_BIRTH};
pub use read::{TABLES, cohorts};
pub use stored::StoredRanges;
