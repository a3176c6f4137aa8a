//! The `.corprof` format: recorded ICorProfilerCallback calls of a .NET runtime.
//!
//! ```text
//! header   chunk of thread 0   chunk of thread 1   chunk of thread 0   (unused)   ...
//!          | header | record | record | ... committed | unused |
//! ```
//! `schemas/corprof.md` in this project's repository says what each byte means. [`Writer`] writes a recording; a
//! profiler that fills chunks by itself takes [`Header`], [`chunk_header`], [`record_header`], [`commit_word`] and
//! [`encode`]. The reader is `tracequet::reader::callback`.

pub mod encode;
mod frame;
mod header;
pub mod kind;
mod writer;

pub use frame::*;
pub use header::*;
pub use kind::name as kind_name;
pub use writer::Writer;
