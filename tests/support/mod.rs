//! What the tests share: a visitor that keeps everything, the shared traces, comparison with expected events, and a
//! small writer of recordings.

#![allow(dead_code, reason = "each test file takes what it needs")]

pub mod agree;
pub mod callbacks;
pub mod collect;
pub mod compare;
pub mod dataset;
pub mod dual;
pub mod events;
pub mod expected;
#[cfg(unix)]
pub mod fake_runtime;
pub mod files;
pub mod imports;
#[cfg(target_os = "linux")]
pub mod killed;
#[cfg(target_os = "linux")]
pub mod live;
pub mod lossy;
pub mod mutate;
pub mod patience;
pub mod program;
pub mod python;
pub mod skip;
pub mod story;
pub mod writer;
