//! Recordings of .NET processes, from bytes to decoded events. Knows no tables and no Arrow.
//!
//! | module | what it does |
//! |---|---|
//! | [`source`] | where bytes come from: a mapped file, a pipe, a packed file, an object of a store, a live session |
//! | [`reader`] | bytes to raw events, in a module for each format |
//! | [`catalog`] | layouts of the events that no recording describes itself |
//! | [`event`] | raw events to events with a name and decoded fields |
//!
//! A reader drives and a visitor receives: [`event::read`] takes an [`event::EventVisitor`], [`reader::read`] a
//! [`reader::Visitor`] of raw events, and [`reader::callback::read`] one of profiler callbacks. Damage behind the
//! header of a recording is not an [`error::Error`] but an [`error::Problem`]; what is undamaged is read.
//!
//! # Features
//!
//! | feature | adds | default |
//! |---|---|---|
//! | `files` | mapped files, and temporary files for what does not fit into memory | yes |
//! | `live` | sessions over the diagnostics port | yes |
//! | `packed` | input in `.gz`, `.zst` and `.zip` | yes |
//! | `native-symbols` | names of native code by ELF files | yes |
//! | `etw` | live ETW sessions, on Windows | no |
//! | `cloud` | recordings in object stores: S3, Google, Azure, HTTP | no |
//!
//! Without any, the crate compiles for WebAssembly and reads streams.

mod bytes;
pub mod catalog;
pub mod error;
pub mod event;
pub mod guid;
#[doc(hidden)]
pub mod map;
pub mod parallel;
#[doc(hidden)]
pub mod pattern;
mod prelude;
pub mod reader;
pub mod source;
pub mod time;
pub mod utf16;
mod worded;

#[doc(hidden)]
pub use bytes::{varuint64, zigzag};
pub use corprof;
