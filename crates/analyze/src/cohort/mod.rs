//! Survival over time: how many of the bytes that were allocated before a collection are alive after it and after each
//! later one. Found by arithmetic on the ranges that collections list; no object is looked at.

mod found;
mod lineage;
mod pieces;

pub use crate::collection::{Bound, Collection, Range, TABLES};
pub use found::{cohorts, cohorts_of, stored_cohorts};
pub use lineage::{CohortRow, Lineage};
pub use pieces::UNKNOWN_BIRTH;

#[cfg(test)]
mod tests {
    mod simulated;
}
