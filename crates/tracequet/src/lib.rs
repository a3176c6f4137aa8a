//! Turns recordings of .NET processes into Arrow and Parquet tables.
//!
//! In goes what records a .NET process: EventPipe (`.nettrace` in versions 4 to 6 and its predecessor `.netperf`),
//! Windows event logs (`.etl`, read on any system), recordings of profiler callbacks (`.corprof`), from a file, a pipe
//! or packed, and live ETW sessions. Out comes a directory with one table for each kind of fact (collections, pauses,
//! surviving and moved ranges, roots, the heap graph, allocations, call stacks) and one for each kind of event. What is
//! lost, damaged or not understood is a row of the table `diagnostic`.
//!
//! | what you want | where it is |
//! |---|---|
//! | tables of recordings | [`convert`] |
//! | the same as batches in memory | [`batches`] |
//! | what is in a recording, quickly | [`inspect::inspect`] |
//! | the events of a recording, one by one | [`trace::event::read`] with a [`trace::event::EventVisitor`] |
//! | profiler callbacks, one by one | [`trace::reader::callback::read`] |
//! | to write a `.corprof` from a profiler | [`trace::corprof::Writer`] |
//! | columns of a dataset | [`Dataset`] |
//! | the fate of an object | [`analyze::survived`] |
//! | what fills the heap, and what keeps it alive | [`analyze::heap`] |
//! | survival over time, by when bytes came into being | [`analyze::cohort`] |
//! | the lives of sampled objects, by who allocates them | [`analyze::lifetime`] |
//! | what is wrong, and where in the user's code | [`analyze::findings`] |
//! | what changed between recordings | [`analyze::diff`] |
//! | metrics, and rules that a change has to keep | [`analyze::metrics`], [`analyze::check`] with [`analyze::rules`] |
//! | call stacks for other tools | [`analyze::profile`] |
//! | an answer as text, JSON, Markdown or CSV | [`analyze::present`] |
//! | a recording as one HTML page | [`report::page`] |
//!
//! `examples/` has a program for most of them.
//!
//! Each stretch of the way from bytes to answers is a crate of its own; this one names what most programs need of them:
//!
//! ```text
//!  trace                               facts          dataset
//!  source      reader         event        trackers       table          write
//!  bytes  -->  RawEvent  -->  Event   -->  Fact      -->  RecordBatch -> Parquet, Arrow IPC
//!  file,       framed,        decoded      what the       one builder    a directory that
//!  pipe,       in order,      by layout    collector      per table,     appears whole or
//!  packed      borrowed                    did            by schema      not at all
//!                               |                           ^
//!                               +--- the payload itself ----+
//! ```
//!
//! [`mod@dataset`] opens what was written, too, and [`analyze`] finds answers in it. A program that reads recordings
//! and needs no tables depends on `tracequet-trace` alone, which knows no Arrow.
//!
//! # Converting a recording
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tracequet::{Convert, convert};
//!
//! # std::env::set_current_dir("../..")?;
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
//! ```
//!
//! # Reading a recording event by event
//!
//! A reader drives and a visitor receives. Events borrow from the recording and cost no allocation; a payload is
//! decoded when it is asked for.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use tracequet::trace::error::Problem;
//! use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
//! use tracequet::trace::reader::{Order, TypeId};
//! use tracequet::trace::source::Input;
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
//! # std::env::set_current_dir("../..")?;
//! let mut starts = GcStarts(0);
//! let end = event::read(Input::open(Path::new("samples/gc-churn.nettrace"))?, Order::Time, &mut starts)?;
//! assert!(end.complete);
//! assert_eq!(starts.0, 19);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading a dataset
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use tracequet::{Convert, convert};
//! use tracequet::{Column, Dataset};
//!
//! # std::env::set_current_dir("../..")?;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("out");
//! # convert(&Convert::new(["samples/gc-churn.nettrace"], &path), &mut |_| {})?;
//! let dataset = Dataset::open(&path)?;
//! let recording = dataset.recording(None)?;
//! let mut bytes = 0;
//! for batch in recording.table("gc_surviving_range")?.scan().columns(["gc_id", "range_length"]).batches()? {
//!     let batch = batch?;
//!     let length = Column::of(&batch, "range_length")?;
//!     bytes += (0..batch.num_rows()).filter_map(|row| length.number(row)).sum::<u64>();
//! }
//! assert!(bytes > 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | builds | default |
//! |---|---|---|
//! | `live` | recordings of running processes through the diagnostics port | yes |
//! | `maps` | maps recordings into memory; without it they are read as streams | yes |
//! | `packed` | input in `.gz`, `.zst` and `.zip` | yes |
//! | `native-symbols` | names and lines of native code by ELF files | yes |
//! | `cloud` | recordings and datasets in object stores: S3, Google, Azure, HTTP | no |
//! | `etw` | live ETW sessions; nothing but on Windows | no |
//!
//! # What may change
//!
//! The items on this page are the public surface. Their types can grow (`#[non_exhaustive]`): build them with
//! their constructors and builder methods, and let a `match` have a last arm. The crates behind it serve the program,
//! the tests and the benches, too, and their items that this page does not name may change with any version. Arrow's
//! types are those of [`dataset::read::arrow_array`] and [`dataset::read::arrow_schema`]; a new major version of Arrow
//! is one of this crate.
//!
//! # Errors, panics, limits
//!
//! A recording is foreign bytes: whatever they are, nothing here panics because of them, and no length in them is
//! believed before the bytes are there. Damage behind the header is no [`enum@Error`] but a [`Problem`], and
//! what is undamaged is read. A panic is a defect.
//!
//! - Names of events, columns and diagnostics codes stay; new ones may come with any version.
//! - A mapped file that another process truncates meanwhile ends this process with SIGBUS, as with every tool that maps
//!   files. The program `tracequet` handles the signal, reads zeros for what is gone, and reports it; a host of the
//!   library may do the same (see [`trace::source::lost_map`]).
//! - Memory is bounded whatever the size of the recording; `docs/ARCHITECTURE.md` says by what. Rows of one collection
//!   that do not fit are sorted through a temporary file.
//! - Times are clamped to 64 bits of nanoseconds, some 292 years about the start of the recording, and a problem says
//!   how many of an EventPipe recording were.

pub use tracequet_analyze as analyze;
pub use tracequet_convert::inspect::{self, Inspection};
pub use tracequet_convert::{
    AddressType, Compression, Convert, DatasetLayout, Done, Expanded, FailedInput, Format, FoundTable, Identities,
    InputSummary, Keep, LIFETIMES, Progress, Rows, SkippedInput, Step, Summary, TableSummary, TemporaryDataset, Watch,
    batches, collect_etw, convert, convert_each, expand, is_recording_name, tables,
};
#[cfg(feature = "live")]
pub use tracequet_convert::{Collected, collect_port};
pub use tracequet_dataset as dataset;
pub use tracequet_dataset::error::{Error, Result};
pub use tracequet_dataset::read::{Column, Dataset, Recording, Scan, Table};
#[doc(hidden)]
pub use tracequet_facts as facts;
pub use tracequet_facts::ProblemSummary;
#[doc(hidden)]
pub use tracequet_lake as lake;
pub use tracequet_lake::{
    Compacted, Expire, Expired, GRACE, LeftOut, Relabel, StoredDataset, compact, expire, fetch_dataset, relabel,
    remove, repair, unpacked,
};
pub use tracequet_report as report;
pub use tracequet_trace as trace;
pub use tracequet_trace::error::{Problem, Severity};
pub use tracequet_trace::source::Input;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct Library;
