//! The facts of recordings of events.

use std::ops::ControlFlow;

use tracequet::error::{Problem, Result};
use tracequet::event::{self, Event, EventInfo, EventVisitor};
use tracequet::normalize::Normalizer;
use tracequet::reader::{Order, Process, Thread, TraceInfo, TypeId};
use tracequet::source::Input;
use tracequet::time::Clock;

use super::callbacks::Facts;

/// Reads a recording in the order of time.
pub fn facts(input: Input) -> Result<Facts> {
    let mut reading = Reading::default();
    let end = event::read(input, Order::Time, &mut reading)?;
    reading.facts.end = end;
    reading.normalizer.finish(end.bytes, &mut reading.facts);
    Ok(reading.facts)
}

#[derive(Default)]
struct Reading {
    clock: Option<Clock>,
    normalizer: Normalizer,
    facts: Facts,
}

impl EventVisitor for Reading {
    fn trace(&mut self, info: &TraceInfo) {
        self.clock = Some(info.clock);
    }

    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        self.normalizer.event_type(id, info)
    }

    fn process(&mut self, process: &Process) {
        self.normalizer.process(process, self.clock.as_ref().expect("a header"));
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.normalizer.event(event, 0, &mut self.facts);
        ControlFlow::Continue(())
    }

    fn events_lost(&mut self, thread: Option<(u32, &Thread)>, since_ns: i64) {
        self.normalizer.events_lost(thread, since_ns, &mut self.facts);
    }

    fn problem(&mut self, problem: Problem) {
        self.facts.problems.push(problem);
    }
}
