//! Answers that are found in the tables of a dataset, whatever it was converted from.

pub mod check;
pub mod cohort;
pub mod heap;
pub mod metrics;
pub mod profile;
pub mod rules;
pub mod samples;
pub mod survived;
