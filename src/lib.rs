#![deny(unsafe_code)]
#![warn(missing_docs)]
//! tracequet
pub mod bytes;
pub mod error;
pub mod event;
pub mod guid;
pub mod normalize;
#[cfg(feature = "tables")]
pub mod inspect;
#[cfg(feature = "tables")]
pub mod pipeline;
pub mod reader;
#[cfg(feature = "tables")]
pub mod sink;
pub mod source;
#[cfg(feature = "tables")]
pub mod survived;
#[cfg(feature = "tables")]
pub mod table;
pub mod time;
