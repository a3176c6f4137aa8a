//! The runtimes of a recording, each with its collections, and the way of an event to the tracker of one of them.

use tracequet_trace::error::{Problem, Severity};
use tracequet_trace::reader::{Layout, ProcessKey};

use super::event_collections::EventGcTracker;
use super::event_collections::OpenCollection;
use super::moment::Moment;
use super::profiled::Profiled;
use crate::fact::{FactSink, GcId};
use crate::input::Input;

/// No machine runs more; in a forged recording the further ones share the last.
const MAX_RUNTIMES: usize = 1024;

/// The runtimes of a recording.
#[derive(Default)]
pub struct Runtimes {
    list: Vec<EventGcTracker>,
}

/// One runtime of one process, for the time of an event.
pub struct Runtime<'r> {
    /// The place among the runtimes of the recording.
    pub index: usize,
    /// The collections of the runtime.
    pub collections: &'r mut EventGcTracker,
    /// Number of the collection that began last.
    pub last_gc_id: GcId,
    ts_ns: i64,
}

impl Runtime<'_> {
    /// The innermost open collection; one without a start is opened when there is none.
    pub fn open_collection(&mut self) -> &mut OpenCollection {
        self.collections.innermost(self.ts_ns, &mut self.last_gc_id)
    }
}

impl Runtimes {
    fn index(&mut self, process: ProcessKey, clr_instance_id: u16, tells_gaps: bool) -> usize {
        match self.list.iter().position(|runtime| runtime.is_of(process, clr_instance_id)) {
            Some(index) => index,
            None if self.list.len() >= MAX_RUNTIMES => self.list.len() - 1,
            None => {
                self.list.push(EventGcTracker::new(process, clr_instance_id, tells_gaps));
                self.list.len() - 1
            }
        }
    }

    /// Takes an event of a runtime to a tracker. `moment` is its place in a collection.
    pub fn event<S: FactSink>(
        &mut self,
        input: &Input<'_>,
        moment: Moment,
        profiled: &mut Profiled,
        sink: &mut S,
        tracker: impl FnOnce(&mut Runtime<'_>, &mut S),
    ) {
        // An .etl reports lost events while a collection is still open, or soon after it.
        let tells_gaps = !matches!(input.event.info.event_type.layout, Layout::Etw(_));
        let index = self.index(input.process(), input.clr_instance_id, tells_gaps);
        profiled.runtime_moves_on(moment, input, &mut self.list, index, sink);
        let number = profiled.number(input.process());
        let Some(collections) = self.list.get_mut(index) else { return };
        if !matches!(moment, Moment::Start(_) | Moment::Bounds) {
            collections.end_start_phase(input.capture_thread());
        }
        let mut runtime = Runtime { index, collections, last_gc_id: number.last_gc_id, ts_ns: input.ts_ns() };
        tracker(&mut runtime, sink);
        let last_gc_id = runtime.last_gc_id;
        if let Some(error) = runtime.collections.failed.take() {
            let message = format!("ranges are missing, the temporary file failed: {error}");
            sink.problem(&Problem::loss("spill_failed", input.offset(), message));
        }
        profiled.numbered(input.process(), number, last_gc_id);
    }

    /// The collections of the runtime that wrote an event, with its place among all, for trackers that only look at
    /// them.
    pub fn runtime_of(&mut self, input: &Input<'_>) -> Option<(usize, &mut EventGcTracker)> {
        let mut all = self.list.iter_mut().enumerate();
        all.find(|(_, runtime)| runtime.is_of(input.process(), input.clr_instance_id))
    }

    /// Events of a thread (`None`: of any) of a process (`None`: of any) were lost, all of them later than `since_ns`.
    pub fn events_lost(&mut self, process: Option<ProcessKey>, thread: Option<u32>, since_ns: i64) {
        let of_process = self.list.iter_mut().filter(|runtime| process.is_none_or(|process| runtime.is_in(process)));
        of_process.for_each(|runtime| runtime.events_lost(thread, since_ns));
    }

    /// Hands on the collections that ended before a time, though a gap in them could still be seen.
    pub fn settle(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        self.list.iter_mut().for_each(|runtime| runtime.settle(ended_before_ns, sink));
    }

    /// The collections of each runtime.
    pub fn all(&mut self) -> &mut [EventGcTracker] {
        &mut self.list
    }

    /// A thread continues: its events of the start of a collection are complete.
    pub fn end_start_phase(&mut self, thread: u32) {
        self.list.iter_mut().for_each(|runtime| runtime.end_start_phase(thread));
    }

    /// The end of the recording: what is open is incomplete.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
        let (mut abandoned, mut running, mut left_out, mut pauses) = (0, 0, 0, 0);
        for runtime in &mut self.list {
            runtime.finish(sink);
            abandoned += runtime.abandoned;
            running += runtime.running;
            left_out += runtime.bounds_left_out;
            pauses += runtime.all.pauses.dropped;
        }
        let mut report = |severity, code, count: u64, message: &str| {
            sink.problems(Problem::new(severity, code, position, message), count);
        };
        report(Severity::DataLoss, "too_many_bounds", left_out, super::bounds::TOO_MANY_BOUNDS);
        report(Severity::DataLoss, "too_many_pauses", pauses, super::pauses::TOO_MANY_PAUSES);
        let message = "collections whose end is lost: another one starts before it";
        report(Severity::DataLoss, "open_collection", abandoned, message);
        let message = "collections that were running when the recording ended";
        report(Severity::Info, "running_collection", running, message);
    }
}
