//! What the tests share: a visitor that keeps everything, the shared traces, comparison with expected events, and a
//! small writer of recordings.

#![allow(dead_code, reason = "each test file takes what it needs")]

pub mod callbacks;
pub mod collect;
pub mod compare;
#[cfg(feature = "tables")]
pub mod dataset;
pub mod dual;
#[cfg(feature = "packed")]
pub mod expected;
#[cfg(feature = "tables")]
pub mod story;
pub mod writer;
