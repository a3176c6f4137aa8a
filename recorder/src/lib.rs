//! A .NET profiler that records what the garbage collector tells ICorProfilerCallback, to a `.corprof` file.
//!
//! ```text
//! runtime -> com (vtables) -> callbacks -> log (one chunk per thread in a mapped file)
//!                              |  ^
//!                              v  |
//!                             info, names (what the runtime answers)
//! ```
//! It records what the runtime says and converts nothing; what a clamped length means is for the reader to say.

#![allow(unsafe_code, reason = "the runtime calls through pointers, and is called through them")]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may stop where it stands"
    )
)]

#[cfg(all(windows, target_arch = "x86"))]
compile_error!("the callback table relies on callers that clean the stack: 64-bit Windows only");

mod callbacks;
mod com;
mod helper;
mod info;
mod log;
mod names;
mod platform;
mod settings;
mod spill;
