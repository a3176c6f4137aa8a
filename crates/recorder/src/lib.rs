//! A .NET profiler that records the garbage collector's calls of ICorProfilerCallback, to a `.corprof` file.
//!
//! ```text
//! runtime -> profiler (COM object) -> callbacks -> session (begin, end)
//!                                         |           |
//!                                         v           v
//!                   info, names (what the runtime     helper (a thread of our own)
//!                   answers when it is asked)         |
//!                                         |           v
//!                                         +-------> log (chunks of each thread) -> file (mapped), spill (memory)
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

#[cfg(test)]
mod alone;
mod callbacks;
mod com;
mod fault;
mod file;
mod guard;
mod helper;
mod info;
mod log;
mod names;
mod platform;
mod profiler;
mod session;
mod settings;
mod slots;
mod spill;
