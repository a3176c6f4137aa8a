//! Conventions of event sources: counters, and work with a start and a stop.

pub mod activities;
mod async_buffer;
pub mod async_tasks;
pub mod counters;
mod diagnostic_source;
pub mod event_sources;
pub mod logs;
mod open_work;
mod outcome;
mod spans;
mod tasks;
mod work_event;
