//! Turns recordings of a .NET process into Arrow and Parquet tables.
//!
//! In goes what EventPipe writes: `.nettrace` in versions 4 to 6 and its predecessor `.netperf`, from a file, a pipe, or
//! packed. Out comes a directory with one table for each kind of fact (collections, pauses, surviving and moved ranges,
//! roots, the heap graph, allocations, call stacks) and one for each kind of event. What is lost, damaged or not
//! understood is a row of the table `diagnostic`.
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
//! [`pipeline`] joins them to a conversion, [`inspect`] to a quick look.
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
//! A reader drives and a [`reader::Visitor`] receives. Events borrow from the recording and cost no allocation; a payload
//! is decoded when it is asked for.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use tracequet::error::Problem;
//! use tracequet::event::{Event, EventInfo};
//! use tracequet::reader::{EventType, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor, nettrace};
//! use tracequet::source::Input;
//!
//! /// Prints when each collection began, and why.
//! #[derive(Default)]
//! struct Collections {
//!     info: Option<TraceInfo>,
//!     kinds: Vec<EventInfo>,
//!     threads: Vec<Thread>,
//!     seen: u32,
//! }
//!
//! impl Visitor for Collections {
//!     fn trace(&mut self, info: &TraceInfo) {
//!         self.info = Some(info.clone());
//!     }
//!
//!     fn event_type(&mut self, _id: TypeId, event_type: &EventType) -> bool {
//!         let pointer_size = self.info.as_ref().map_or(8, |info| info.pointer_size);
//!         let info = EventInfo::resolve(event_type, pointer_size);
//!         let wanted = info.name == "GCStart";
//!         self.kinds.push(info);
//!         wanted
//!     }
//!
//!     fn thread(&mut self, _index: u32, thread: &Thread) {
//!         self.threads.push(thread.clone());
//!     }
//!
//!     fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
//!         self.seen += 1;
//!         let ts_ns = self.info.as_ref().and_then(|info| info.clock.since_start(raw.ticks)).unwrap_or_default();
//!         let info = &self.kinds[raw.event_type.0 as usize];
//!         let event = Event { raw, info, thread: &self.threads[raw.thread as usize], ts_ns };
//!         match event.fields() {
//!             Ok((fields, _)) => println!("{:.6} s: {fields:?}", ts_ns as f64 / 1e9),
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
//! let mut collections = Collections::default();
//! let input = Input::open(Path::new("samples/gc-churn.nettrace"))?;
//! let end = nettrace::read(input, Order::Time, &mut collections)?;
//! assert!(end.complete);
//! assert_eq!(collections.seen, 19);
//! # Ok::<(), tracequet::error::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | builds | default |
//! |---|---|---|
//! | `tables` | [`table`], [`sink`], [`pipeline`], [`inspect`], with Arrow and Parquet | through `cli` |
//! | `cli` | the program `tracequet`, and `tables` | yes |
//! | `packed` | input in `.gz`, `.zst` and `.zip` | yes |
//!
//! Without any, the crate reads, decodes and normalises, and depends on neither Arrow nor Parquet.
//!
//! # Errors, panics, limits
//!
//! A recording is foreign bytes: whatever they are, nothing here panics because of them, and no length in them is
//! believed before the bytes are there. Damage behind the header is no [`error::Error`] but an [`error::Problem`], and
//! what is undamaged is read. A panic is a defect.
//!
//! - Names of events, columns and diagnostics codes stay; new ones may come with any version.
//! - A mapped file that another process truncates meanwhile ends this process with SIGBUS, as with every tool that maps
//!   files. The program `tracequet` handles the signal and says what happened; a host of the library may do the same.
//! - Memory is bounded whatever the size of the recording; `docs/ARCHITECTURE.md` says by what. Rows of one collection
//!   that do not fit are sorted through a temporary file.
//! - Times are clamped to 64 bits of nanoseconds, some 292 years about the start of the recording, and a problem tells
//!   how many of an EventPipe recording were.

#[cfg(feature = "tables")]
pub mod analyze;
pub mod bytes;
pub mod catalog;
#[cfg(feature = "tables")]
pub mod dataset;
pub mod error;
pub mod event;
pub mod guid;
#[cfg(feature = "tables")]
pub mod inspect;
pub mod normalize;
#[cfg(feature = "tables")]
pub mod pipeline;
pub mod reader;
#[cfg(feature = "tables")]
pub mod sink;
pub mod source;
#[cfg(feature = "tables")]
pub mod table;
#[cfg(feature = "tables")]
pub mod table_spec;
pub mod time;

#[cfg(all(doctest, feature = "tables"))]
#[doc = include_str!("../README.md")]
struct Readme;
