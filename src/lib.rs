#![deny(unsafe_code)]
#![warn(missing_docs)]
//! tracequet
pub mod bytes;
pub mod error;
pub mod event;
pub mod guid;
#[cfg(feature = "tables")]
pub mod inspect;
#[cfg(feature = "tables")]
pub mod pipeline;
pub mod reader;
pub mod source;
pub mod time;
