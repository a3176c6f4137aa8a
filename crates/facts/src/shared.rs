//! State that trackers have in common: the runtimes and their collections, types, call stacks, the clock.

use tracequet_trace::time::Clock;

use crate::code::callsites::Callsites;
use crate::code::types::Types;
use crate::gc::profiled::Profiled;
use crate::gc::runtimes::Runtimes;

/// State that trackers have in common.
#[derive(Default)]
pub struct Shared {
    /// The runtimes of the recording with their collections.
    pub runtimes: Runtimes,
    /// Reports of profilers about the same collections.
    pub profiled: Profiled,
    /// The types that are known.
    pub types: Types,
    /// The call stacks.
    pub callsites: Callsites,
    /// The clock of the recording.
    pub clock: Option<Clock>,
}
