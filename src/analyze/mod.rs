//! Answers that are found in the tables of a dataset, whatever it was converted from.

pub mod cohort;
pub mod heap;
pub mod profile;
pub mod survived;
