//! An observer of the events of a recording on their way to the tables.

use crate::prelude::*;

use tracequet_trace::event::{Event, EventInfo, EventVisitor};
use tracequet_trace::reader::{Process, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId};

/// Looks at events while they are recorded: to show them, or to end the recording when something has happened.
pub trait Watch {
    /// Whether events of this kind are wanted.
    fn wants(&mut self, info: &EventInfo) -> bool;

    /// One event of a kind that is wanted, in the order of time.
    fn event(&mut self, event: &Event<'_>);
}

/// Without an observer.
impl Watch for () {
    fn wants(&mut self, _: &EventInfo) -> bool {
        false
    }

    fn event(&mut self, _: &Event<'_>) {}
}

/// Hands everything to a visitor, and what is wanted to a watch before.
pub(crate) struct Watched<'a, V> {
    inner: &'a mut V,
    watch: &'a mut dyn Watch,
    /// Called now and then.
    look: &'a dyn Fn(&V),
    /// By type id.
    wanted: Vec<bool>,
}

impl<'a, V: EventVisitor> Watched<'a, V> {
    /// `look` is called at each progress.
    pub(crate) fn new(inner: &'a mut V, watch: &'a mut dyn Watch, look: &'a dyn Fn(&V)) -> Watched<'a, V> {
        Watched { inner, watch, look, wanted: Vec::new() }
    }
}

impl<V: EventVisitor> EventVisitor for Watched<'_, V> {
    fn trace(&mut self, info: &TraceInfo) {
        self.inner.trace(info);
    }

    fn process(&mut self, process: &Process) {
        self.inner.process(process);
    }

    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        let watched = self.watch.wants(info);
        self.wanted.push(watched);
        self.inner.event_type(id, info) || watched
    }

    fn thread(&mut self, index: ThreadIndex, thread: &Thread) {
        self.inner.thread(index, thread);
    }

    fn wants(&mut self, event: &RawEvent<'_>) -> bool {
        self.inner.wants(event)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if self.wanted.get(event.raw.event_type.0 as usize) == Some(&true) {
            self.watch.event(event);
        }
        self.inner.event(event)
    }

    fn stack_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.inner.stack_event(event)
    }

    fn events_lost(&mut self, thread: Option<(ThreadIndex, &Thread)>, since_ns: i64) {
        self.inner.events_lost(thread, since_ns);
    }

    fn gap(&mut self, thread: Option<(ThreadIndex, &Thread)>, since_ns: i64, until_ns: i64) {
        self.inner.gap(thread, since_ns, until_ns);
    }

    fn losses_known(&mut self) {
        self.inner.losses_known();
    }

    fn stacks_forgotten(&mut self) {
        self.inner.stacks_forgotten();
    }

    fn problem(&mut self, problem: Problem) {
        self.inner.problem(problem);
    }

    fn progress(&mut self, position: u64) {
        self.inner.progress(position);
        (self.look)(self.inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Calls(Vec<&'static str>);

    impl EventVisitor for Calls {
        fn trace(&mut self, _: &TraceInfo) {}

        fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn events_lost(&mut self, _: Option<(ThreadIndex, &Thread)>, _: i64) {
            self.0.push("events_lost");
        }

        fn gap(&mut self, _: Option<(ThreadIndex, &Thread)>, _: i64, _: i64) {
            self.0.push("gap");
        }

        fn losses_known(&mut self) {
            self.0.push("losses_known");
        }

        fn stacks_forgotten(&mut self) {
            self.0.push("stacks_forgotten");
        }

        fn problem(&mut self, _: Problem) {
            self.0.push("problem");
        }

        fn progress(&mut self, _: u64) {
            self.0.push("progress");
        }
    }

    #[test]
    fn what_is_told_of_no_event_goes_through() {
        let mut calls = Calls::default();
        let looked = std::cell::Cell::new(0);
        let look = |_: &Calls| looked.set(looked.get() + 1);
        let mut watch = ();
        let mut watched = Watched::new(&mut calls, &mut watch, &look);
        watched.events_lost(None, 5);
        watched.gap(None, 5, 6);
        watched.losses_known();
        watched.stacks_forgotten();
        watched.problem(Problem::info("a", 0, "b"));
        watched.progress(7);
        let expected = ["events_lost", "gap", "losses_known", "stacks_forgotten", "problem", "progress"];
        assert_eq!((calls.0.as_slice(), looked.get()), (&expected[..], 1));
    }
}
