//! Observers of events during a recording: for the end of a heap dump, for `--stop-on`, for counters.

use std::sync::{Arc, Mutex};

use tracequet::Watch;
use tracequet::trace::event::{Event, EventInfo};
use tracequet::trace::source::diagnostics::{Control, Reason};

use super::super::lock::lock;
use super::args::LiveArgs;
use super::counters::CounterTable;
use super::heap::{Dump, HeapWatch};
use super::stop_on::StopWatch;

/// All that looks.
pub struct LiveWatch {
    heap: Option<HeapWatch>,
    stop: Option<StopWatch>,
    counters: Option<CounterTable>,
    control: Arc<Mutex<Option<Control>>>,
}

impl LiveWatch {
    /// The watches that the options ask for. The recording that they may end is put in `control` when it begins.
    pub fn new(args: &LiveArgs, control: Arc<Mutex<Option<Control>>>, as_json: bool) -> LiveWatch {
        LiveWatch {
            heap: (args.heap || args.heap_at_end).then(HeapWatch::default),
            stop: args.stop_on.clone().map(StopWatch::new),
            counters: args.counters.then(|| CounterTable::new(as_json)),
            control,
        }
    }

    /// The heap dump as far as it has come, if one is recorded.
    pub fn dump(&self) -> Option<Arc<Mutex<Dump>>> {
        self.heap.as_ref().map(HeapWatch::dump)
    }

    /// Shows the last values.
    pub fn finish(&mut self) {
        if let Some(counters) = &mut self.counters {
            counters.finish();
        }
    }

    fn end(&self, reason: Reason) {
        if let Some(control) = &*lock(&self.control) {
            control.stop(reason);
        }
    }
}

impl Watch for LiveWatch {
    fn wants(&mut self, info: &EventInfo) -> bool {
        self.heap.as_ref().is_some_and(|heap| heap.wants(info))
            || self.stop.as_ref().is_some_and(|stop| stop.wants(info))
            || self.counters.as_ref().is_some_and(|counters| counters.wants(info))
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(heap) = self.heap.as_mut().filter(|heap| heap.wants(event.info))
            && heap.event(event)
        {
            self.end(Reason::Asked);
        }
        if let Some(stop) = self.stop.as_mut().filter(|stop| stop.wants(event.info))
            && let Some(what) = stop.event(event)
        {
            self.end(Reason::Trigger(what));
        }
        if let Some(counters) = self.counters.as_mut().filter(|counters| counters.wants(event.info)) {
            counters.event(event);
        }
    }
}
