//! Windows event logs: real files against what an independent reader found in them, and made files with every kind of
//! damage.

mod baseline;
mod convert;
mod damage;
mod decoded;
mod expected;
mod file_operations;
mod hardware_counters;
mod holes;
mod hostile;
mod hostile_kernel;
mod hostile_schemas;
mod image_ids;
pub mod interrupts;
pub mod kernel_pairs;
mod kernel_tables;
mod lifetimes;
mod live;
mod machine;
mod manifest;
mod memory;
mod native_symbols;
mod packed;
pub mod processes;
pub mod profiler;
mod profiler_joined;
#[cfg(target_os = "linux")]
mod profiler_retold;
mod resync;
mod sample;
mod samples;
pub mod scheduling;
mod shipped;
mod stacks;
mod text;
mod tracelogging;
#[cfg(windows)]
mod windows;
pub mod writer;

pub use sample::{MANIFEST, seeds};
