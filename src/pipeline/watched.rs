//! Somebody who looks at the events of a recording on their way to the tables.

use std::ops::ControlFlow;

use crate::error::Problem;
use crate::event::{Event, EventInfo};
use crate::reader::{EventType, Process, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId, Visitor};

/// Looks at events while they are recorded: to show them, or to end the recording when something has happened.
pub trait Watch {
    /// Whether events of this kind are wanted.
    fn wants(&mut self, info: &EventInfo) -> bool;

    /// One event of a kind that is wanted, in the order of time.
    fn event(&mut self, event: &Event<'_>);
}

/// Nobody.
impl Watch for () {
    fn wants(&mut self, _: &EventInfo) -> bool {
        false
    }

    fn event(&mut self, _: &Event<'_>) {}
}

/// Hands everything to a visitor, and what is wanted to a watch before.
pub(super) struct Watched<'a, V> {
    pub(super) inner: V,
    watch: &'a mut dyn Watch,
    info: Option<TraceInfo>,
    threads: Vec<Thread>,
    /// By type id; `None` when it is not wanted.
    kinds: Vec<Option<EventInfo>>,
}

impl<'a, V: Visitor> Watched<'a, V> {
    pub(super) fn new(inner: V, watch: &'a mut dyn Watch) -> Watched<'a, V> {
        Watched { inner, watch, info: None, threads: Vec::new(), kinds: Vec::new() }
    }
}

impl<V: Visitor> Visitor for Watched<'_, V> {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
        self.inner.trace(info);
    }

    fn process(&mut self, process: &Process) {
        self.inner.process(process);
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        let info = EventInfo::resolve(event_type, self.info.as_ref().map_or(8, |info| info.pointer_size));
        let watched = self.watch.wants(&info);
        self.kinds.push(watched.then_some(info));
        self.inner.event_type(id, event_type) || watched
    }

    fn thread(&mut self, index: ThreadIndex, thread: &Thread) {
        self.threads.push(thread.clone());
        self.inner.thread(index, thread);
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        if let Some(Some(info)) = self.kinds.get(raw.event_type.0 as usize)
            && let (Some(trace), Some(thread)) = (&self.info, self.threads.get(raw.thread as usize))
        {
            let ts_ns = trace.clock.since_start(raw.ticks).unwrap_or_default();
            self.watch.event(&Event { raw, info, thread, ts_ns });
        }
        self.inner.event(raw)
    }

    fn stack_event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        self.inner.stack_event(event)
    }

    fn stacks_forgotten(&mut self) {
        self.inner.stacks_forgotten();
    }

    fn problem(&mut self, problem: Problem) {
        self.inner.problem(problem);
    }

    fn progress(&mut self, position: u64) {
        self.inner.progress(position);
    }
}
