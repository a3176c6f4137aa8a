//! The facts of recordings of events.

use std::ops::ControlFlow;

use tracequet::error::{Problem, Result};
use tracequet::event::{Event, EventInfo};
use tracequet::normalize::Normalizer;
use tracequet::reader::{EventType, Order, Process, RawEvent, Thread, TraceInfo, TypeId, Visitor};
use tracequet::source::Input;

use super::callbacks::Facts;

/// Reads a recording in the order of time.
pub fn facts(input: Input) -> Result<Facts> {
    let mut reading = Reading::default();
    let end = tracequet::reader::read(input, Order::Time, &mut reading)?;
    reading.facts.end = end;
    reading.normalizer.finish(end.bytes, &mut reading.facts);
    Ok(reading.facts)
}

#[derive(Default)]
struct Reading {
    info: Option<TraceInfo>,
    types: Vec<EventInfo>,
    threads: Vec<Thread>,
    normalizer: Normalizer,
    facts: Facts,
}

impl Visitor for Reading {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        let info = EventInfo::resolve(event_type, self.info.as_ref().map_or(8, |i| i.pointer_size));
        let wanted = self.normalizer.event_type(id, &info);
        self.types.push(info);
        wanted
    }

    fn process(&mut self, process: &Process) {
        self.normalizer.process(process, &self.info.as_ref().expect("a header").clock);
    }

    fn thread(&mut self, _: u32, thread: &Thread) {
        self.threads.push(thread.clone());
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        let ts_ns = self.info.as_ref().and_then(|i| i.clock.since_start(raw.ticks)).unwrap_or_default();
        let (info, thread) = (&self.types[raw.event_type.0 as usize], &self.threads[raw.thread as usize]);
        self.normalizer.event(&Event { raw, info, thread, ts_ns }, 0, &mut self.facts);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        self.facts.problems.push(problem);
    }
}
