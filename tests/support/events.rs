//! The facts of recordings of events.

use std::ops::ControlFlow;

use tracequet::facts::Normalizer;
use tracequet::trace::error::{Problem, Result};
use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, Process, Thread, TraceInfo, TypeId};
use tracequet::trace::source::Input;
use tracequet::trace::time::Clock;

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
        if info.finds_gaps_late() {
            self.normalizer.gaps_are_late();
        }
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

    fn gap(&mut self, thread: Option<(u32, &Thread)>, since_ns: i64, until_ns: i64) {
        self.normalizer.gap(thread.map(|(_, thread)| thread.process()), since_ns, until_ns);
    }

    fn losses_known(&mut self) {
        self.normalizer.losses_known(&mut self.facts);
    }

    fn problem(&mut self, problem: Problem) {
        self.facts.problems.push(problem);
    }
}
