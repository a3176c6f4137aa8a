//! Rows of the tables against what the recorded programs wrote down of themselves, and against made-up recordings.

pub mod async_tasks;
mod benchmarks;
pub mod collections;
mod collector;
pub mod frames;
mod gc;
mod known;
pub mod lines;
mod linux_switches;
mod measures;
mod mono;
#[cfg(target_os = "linux")]
mod native_symbols;
pub mod queries;
mod samples;
mod spans;
mod subjects;
mod tasks;
mod thread_activity;
mod traced_objects;
