//! Rows of the tables against what the recorded programs wrote down of themselves, and against made-up recordings.

#[cfg(feature = "packed")]
pub mod async_tasks;
pub mod collections;
mod collector;
#[cfg(feature = "packed")]
mod frames;
#[cfg(all(feature = "cli", feature = "packed"))]
mod gc;
#[cfg(all(feature = "packed", feature = "cli"))]
mod known;
#[cfg(feature = "packed")]
pub mod lines;
mod linux_switches;
mod measures;
#[cfg(all(feature = "native-symbols", target_os = "linux"))]
mod native_symbols;
pub mod queries;
mod samples;
mod subjects;
mod tasks;
mod thread_activity;
