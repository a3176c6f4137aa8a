//! Conventions of event sources: counters, and work with a start and a stop.

pub mod activities;
pub mod counters;
mod diagnostic_source;
mod open_work;
mod outcome;
mod tasks;
mod work_event;
