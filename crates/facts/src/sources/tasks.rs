//! Tasks of the Task Parallel Library: while they run, while something waits for them, and asynchronous operations.
//!
//! Source: `TplEventSource` of .NET. Its events have neither opcodes nor names that end in Start and Stop.

use tracequet_trace::event::EventInfo;

use super::work_event::{self, Step};
use crate::prelude::*;
use crate::scalars::Scalars;

/// The library's EventSource.
pub const PROVIDER: &str = "System.Threading.Tasks.TplEventSource";

/// Waiting for a task.
pub const WAIT: &str = "TaskWait";

/// Events, each with the work that it begins or ends.
const EVENTS: &[(&str, &str, Step)] = &[
    ("TaskStarted", "Task", Step::Start),
    ("TaskCompleted", "Task", Step::Stop),
    ("TaskWaitBegin", WAIT, Step::Start),
    ("TaskWaitEnd", WAIT, Step::Stop),
    ("TraceOperationBegin", "Operation", Step::Start),
    ("TraceOperationEnd", "Operation", Step::Stop),
];

/// A step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// Whether it begins or ends something.
    pub step: Step,
    /// The number of the kind of work.
    pub kind: u64,
    /// The name of the work.
    pub name: &'static str,
}

impl TaskEvent {
    /// The meaning of events of a type.
    pub fn of(info: &EventInfo) -> Option<TaskEvent> {
        let (_, name, step) = EVENTS.iter().find(|(event, ..)| info.provider == PROVIDER && info.name == *event)?;
        Some(TaskEvent { step: *step, kind: work_event::kind(PROVIDER, name), name })
    }

    /// The outcome that an end states: of a task whether it threw, of an operation its AsyncCausalityStatus.
    pub fn outcome(self, fields: &Scalars) -> Option<&'static str> {
        match fields.get("IsExceptional") {
            Value::Bool(true) | Value::Uint(1) => return Some("failed"),
            Value::Bool(false) | Value::Uint(0) => return Some("completed"),
            _ => {}
        }
        match fields.number("Status")? {
            1 => Some("completed"),
            2 => Some("canceled"),
            3 => Some("failed"),
            _ => None,
        }
    }
}

/// The number of a task in place of an activity id.
pub fn id(task: u64) -> Guid {
    let mut bytes = *b"........task    ";
    for (to, from) in bytes.iter_mut().zip(task.to_le_bytes()) {
        *to = from;
    }
    Guid(bytes)
}
