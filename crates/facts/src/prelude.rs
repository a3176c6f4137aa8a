//! Names that the files of trackers use.

pub use std::collections::BTreeMap;

pub use tracequet_trace::error::{Problem, Severity};
pub use tracequet_trace::event::value::Value;
pub use tracequet_trace::guid::Guid;
pub use tracequet_trace::map::Map;
pub use tracequet_trace::reader::ProcessKey;
pub use tracequet_trace::time::Clock;

pub(crate) use crate::enum_names;
pub use crate::fact::FactSink;
pub use crate::input::{Events, Input, Needs, PRIVATE, RUNDOWN, RUNTIME};
pub use crate::nested::{Item, Nested};
pub use crate::shared::Shared;
pub use crate::tracker::{Cut, Dropped, Tracker};
