//! What event sources of programs tell by convention: counters, and work with a start and a stop.

pub mod activities;
pub mod counters;
mod diagnostic_source;
mod open_work;
mod tasks;
mod work_event;
