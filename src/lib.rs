//! Turns recordings of .NET processes into Arrow and Parquet tables.
//!
//! In goes what records a .NET process: EventPipe (`.nettrace` in versions 4 to 6 and its predecessor `.netperf`), Windows
//! event logs (`.etl`, read on any system), recordings of profiler callbacks (`.corprof`), from a file, a pipe or packed,
//! and live ETW sessions. Out comes a directory with one table for each kind of fact (collections, pauses, surviving and
//! moved ranges, roots, the heap graph, allocations, call stacks) and one for each kind of event. What is lost, damaged or
//! not understood is a row of the table `diagnostic`.
//!
//! | what you want | where it is |
//! |---|---|
//! | tables of recordings | [`pipeline::convert`] |
//! | the same as batches in memory | [`pipeline::batches`] |
//! | what is in a recording, quickly | [`inspect::inspect`] |
//! | the events of a recording, one by one | [`event::read`] with an [`event::EventVisitor`] |
//! | profiler callbacks, one by one | [`reader::callback::read`] |
//! | to write a `.corprof` from a profiler | [`corprof::Writer`] |
//! | columns of a dataset | [`dataset::Dataset`] |
//! | what became of an object | [`analyze::survived`] |
//! | what fills the heap, and what keeps it alive | [`analyze::heap`] |
//! | survival over time, by when bytes came into being | [`analyze::cohort`] |
//!
//! `examples/` has a program for most of them.
//!
//! Data flows one way, and the modules stand in the order in which it flows:
//!
//! ```text
//!  source      reader         event        normalize      table          sink
//!  bytes  -->  RawEvent  -->  Event   -->  Fact      -->  RecordBatch -> Parquet, Arrow IPC
//!  file,       framed,        decoded      what the       one builder    a directory that
//!  pipe,       in order,      by layout    collector      per table,     appears whole or
//!  packed      borrowed                    did            by schema      not at all
//!                               |                           ^
//!                               +--- the payload itself ----+
//! ```
//!
//! [`pipeline`] joins them to a conversion, [`inspect`] to a quick look. [`dataset`] opens what was written, [`analyze`]
//! finds answers in it.
//!
//! # Converting a recording
//!
//! ```
//! # #[cfg(feature = "tables")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tracequet::pipeline::{Convert, convert};
//!
//! let folder = tempfile::tempdir()?;
//! let request = Convert::new(["samples/gc-churn.nettrace"], folder.path().join("out"));
//! let summary = convert(&request, &mut |progress| eprintln!("{} bytes", progress.position))?;
//!
//! assert_eq!(summary.inputs[0].collections, 19);
//! assert!(!summary.inputs[0].has_losses());
//! let moved = summary.tables.iter().find(|table| table.name == "gc_moved_range").ok_or("no such table")?;
//! assert_eq!(moved.rows, 3400);
//! assert!(folder.path().join("out/gc_moved_range.parquet").is_file());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tables"))]
//! # fn main() {}
//! ```
//!
//! # Reading a recording event by event
//!
//! A reader drives and a visitor receives. Events borrow from the recording and cost no allocation; a payload is decoded
//! when it is asked for.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use tracequet::error::Problem;
//! use tracequet::event::{self, Event, EventInfo, EventVisitor};
//! use tracequet::reader::{Order, TypeId};
//! use tracequet::source::Input;
//!
//! /// Prints when each collection began, and why.
//! struct GcStarts(u32);
//!
//! impl EventVisitor for GcStarts {
//!     fn event_type(&mut self, _id: TypeId, info: &EventInfo) -> bool {
//!         info.name == "GCStart"
//!     }
//!
//!     fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
//!         self.0 += 1;
//!         match event.fields() {
//!             Ok((fields, _)) => println!("{:.6} s: {fields:?}", event.ts_ns as f64 / 1e9),
//!             Err(why) => println!("not decoded: {why}"),
//!         }
//!         ControlFlow::Continue(())
//!     }
//!
//!     fn problem(&mut self, problem: Problem) {
//!         eprintln!("at byte {}: {}", problem.offset, problem.message);
//!     }
//! }
//!
//! let mut starts = GcStarts(0);
//! let end = event::read(Input::open(Path::new("samples/gc-churn.nettrace"))?, Order::Time, &mut starts)?;
//! assert!(end.complete);
//! assert_eq!(starts.0, 19);
//! # Ok::<(), tracequet::error::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | builds | default |
//! |---|---|---|
//! | `tables` | [`pipeline`], [`inspect`], [`dataset`], [`analyze`], with Arrow and Parquet | through `cli` |
//! | `cli` | the program `tracequet`, and `tables` | yes |
//! | `packed` | input in `.gz`, `.zst` and `.zip` | yes |
//! | `cloud` | recordings and datasets in object stores: S3, Google, Azure, HTTP | no |
//!
//! Without any, the crate reads, decodes and normalises, and depends on neither Arrow nor Parquet.
//!
//! # What may change
//!
//! The modules that this page names are the public surface. Their types can grow (`#[non_exhaustive]`): build them with
//! their constructors and setters, and let a `match` have a last arm. What is hidden from this documentation is there for
//! the program, the tests and the benches, and may change with any version. Arrow's types are those of
//! [`dataset::arrow_array`] and [`dataset::arrow_schema`]; a new major version of Arrow is one of this crate.
//!
//! # Errors, panics, limits
//!
//! A recording is foreign bytes: whatever they are, nothing here panics because of them, and no length in them is
//! believed before the bytes are there. Damage behind the header is no [`error::Error`] but an [`error::Problem`], and
//! what is undamaged is read. A panic is a defect.
//!
//! - Names of events, columns and diagnostics codes stay; new ones may come with any version.
//! - A mapped file that another process truncates meanwhile ends this process with SIGBUS, as with every tool that maps
//!   files. The program `tracequet` handles the signal, reads zeros for what is gone, and reports it; a host of the library
//!   may do the same (see [`source::lost_map`]).
//! - Memory is bounded whatever the size of the recording; `docs/ARCHITECTURE.md` says by what. Rows of one collection
//!   that do not fit are sorted through a temporary file.
//! - Times are clamped to 64 bits of nanoseconds, some 292 years about the start of the recording, and a problem says
//!   how many of an EventPipe recording were.

#[cfg(feature = "tables")]
pub mod analyze;
mod bytes;
#[doc(hidden)]
pub mod catalog;
#[cfg(feature = "tables")]
pub mod dataset;
pub mod error;
pub mod event;
pub mod guid;
#[cfg(feature = "tables")]
pub mod inspect;
#[doc(hidden)]
pub mod normalize;
#[cfg(feature = "tables")]
pub mod pipeline;
pub mod reader;
#[cfg(feature = "tables")]
#[doc(hidden)]
pub mod sink;
pub mod source;
#[cfg(feature = "tables")]
#[doc(hidden)]
pub mod table;
#[cfg(feature = "tables")]
#[doc(hidden)]
pub mod table_spec;
pub mod time;
mod utf16;

pub use corprof;

#[cfg(all(doctest, feature = "tables"))]
#[doc = include_str!("../README.md")]
struct Readme;
