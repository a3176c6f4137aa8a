//! What the file of a tracker is written with.

pub use tracequet_trace::error::{Problem, Severity};
pub use tracequet_trace::map::Map;
pub use tracequet_trace::reader::ProcessKey;

pub use crate::fact::FactSink;
pub use crate::input::{Events, Input, Needs, PRIVATE, RUNDOWN, RUNTIME};
pub use crate::shared::Shared;
pub use crate::tracker::{Cut, Dropped, Tracker};
