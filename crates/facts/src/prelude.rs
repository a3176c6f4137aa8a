//! What the file of a tracker is written with.

pub use tracequet_trace::error::{Problem, Severity};
pub use tracequet_trace::map::Map;
pub use tracequet_trace::reader::ProcessKey;

pub use crate::fact::FactSink;
pub use crate::input::{Input, Needs, PRIVATE, ProviderEvents, RUNDOWN, RUNTIME};
pub use crate::shared::Shared;
pub use crate::tracker::{Cut, Dropped, Tracker};
