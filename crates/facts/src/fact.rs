//! Facts: what trackers find in a recording, as rows of the tables. Free of Arrow, and of how a recording said it.
//!
//! The row structs and [`Fact`] are made from `schemas/tables/*.toml`: one struct per table, one field per
//! column. Columns with `from` in the TOML have no field; the table layer derives them.

use tracequet_trace::error::{Problem, Severity};
use tracequet_trace::guid::Guid;

include!(concat!(env!("OUT_DIR"), "/rows.rs"));

/// Number of a collection within one recording, from 1 in the order of starts. 0 means no collection.
pub type GcId = u32;

/// Number of a call site within one recording; 0 means no stack.
pub type CallsiteId = u32;

/// Number of a frame of call stacks within one recording, from 1.
pub type FrameId = u32;

/// What an event says of itself: its time in nanoseconds since the recording began, its process, thread and call stack.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Nanoseconds since the recording began.
    pub ts_ns: i64,
    /// OS id of the process.
    pub process_id: u64,
    /// OS id of the thread.
    pub thread_id: u64,
    /// The call stack.
    pub callsite_id: CallsiteId,
}

/// A row that says when, where and by whom an event was: as far as its table has columns for it. The rest is the default.
pub trait OfEvent {
    /// The row of an event.
    fn of_event(place: Place) -> Self;
}

/// Receives facts.
pub trait FactSink {
    /// Takes rows of one table.
    fn fact(&mut self, fact: Fact<'_>);

    /// Adds a row (`&row`) or a slice of rows.
    #[inline]
    fn add<'a>(&mut self, rows: impl Into<Fact<'a>>)
    where
        Self: Sized,
    {
        self.fact(rows.into());
    }

    /// Adds a problem as a row of `diagnostic`.
    fn problem(&mut self, problem: &Problem) {
        self.fact(Fact::Diagnostic(&[problem.into()]));
    }

    /// Adds a problem with its count, unless the count is 0.
    fn problems(&mut self, problem: Problem, count: u64) {
        problem.counted(count).iter().for_each(|problem| self.problem(problem));
    }
}

impl<'a> From<&'a Problem> for Diagnostic<'a> {
    fn from(problem: &'a Problem) -> Diagnostic<'a> {
        Diagnostic {
            severity: problem.severity.as_str(),
            code: problem.code,
            message: &problem.message,
            byte_offset: problem.offset,
            count: problem.count,
            thread_id: problem.thread_id,
        }
    }
}

impl Diagnostic<'_> {
    /// The severity that `severity` is the word of.
    pub fn level(&self) -> Severity {
        Severity::named(self.severity).unwrap_or(Severity::Error)
    }
}

/// Number in the tables of the non-GC (frozen) heap of .NET 8 and later, which is never collected and never moves. The
/// runtime has no such generation: GetGenerationBounds and GCGenerationRange number 0 to 4.
pub const NON_GC_HEAP: u8 = 5;

/// `phase` of a [`GcGenerationRange`]: the state at the start or at the end of the collection.
pub fn range_phase(at_end: bool) -> &'static str {
    if at_end { "end" } else { "start" }
}

impl GcGenerationRange {
    /// Whether this is the state at the end of the collection.
    pub fn is_at_end(&self) -> bool {
        self.phase == range_phase(true)
    }
}

tracequet_trace::worded! {
    /// The way in which the length of a range is known: `length_kind` of [`GcSurvivingRange`] and [`GcMovedRange`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LengthKind {
        /// The recording carries the true length.
        #[default]
        Exact = "exact",
        /// The recording carries the true length (SurvivingReferences2) and, agreeing with it, the 32-bit one.
        Paired = "paired",
        /// The recording carries only a 32-bit length that stands for 4 GiB or more: this is the least it can be.
        Clamped = "clamped",
        /// A clamped length, where the bounds of the generation at the end of the collection prove how long the range is.
        Narrowed = "narrowed",
    }
    /// The word in the tables.
    pub fn as_str;
}
