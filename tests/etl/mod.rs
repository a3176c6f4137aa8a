//! Windows event logs: real files against what an independent reader found in them, and made files with every kind of
//! damage.

mod baseline;
#[cfg(feature = "tables")]
mod convert;
mod damage;
mod decoded;
mod expected;
#[cfg(feature = "tables")]
mod file_operations;
mod holes;
mod hostile;
mod hostile_kernel;
mod hostile_schemas;
#[cfg(feature = "tables")]
mod kernel_tables;
mod live;
#[cfg(feature = "tables")]
mod machine;
#[cfg(feature = "tables")]
mod manifest;
#[cfg(feature = "tables")]
mod memory;
#[cfg(feature = "tables")]
mod native_symbols;
mod packed;
#[cfg(feature = "tables")]
pub mod processes;
#[cfg(feature = "tables")]
mod profiler;
#[cfg(feature = "tables")]
mod profiler_joined;
#[cfg(all(feature = "tables", target_os = "linux"))]
mod profiler_retold;
mod resync;
mod sample;
#[cfg(feature = "tables")]
mod samples;
#[cfg(feature = "tables")]
pub mod scheduling;
mod stacks;
mod text;
pub mod writer;

pub use sample::{MANIFEST, seeds};
