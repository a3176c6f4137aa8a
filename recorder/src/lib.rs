//! A .NET profiler that records what the garbage collector tells ICorProfilerCallback, to a `.corprof` file.
//!
//! ```text
//! runtime -> com (vtables) -> callbacks -> log (one chunk per thread in a mapped file)
//!                              |  ^
//!                              v  |
//!                             info, names (what the runtime answers)
//! ```
//! It records what the runtime says and converts nothing; what a clamped length means is for the reader to say.

#[cfg(all(windows, target_arch = "x86"))]
compile_error!("the callback table relies on callers that clean the stack: 64-bit Windows only");

mod callbacks;
mod com;
#[path = "../../src/reader/callback/encode.rs"]
#[allow(dead_code, missing_docs)]
mod encode;
#[path = "../../src/reader/callback/format.rs"]
#[allow(dead_code, missing_docs)]
mod format;
mod helper;
mod info;
mod log;
mod names;
mod platform;
mod settings;
mod spill;
