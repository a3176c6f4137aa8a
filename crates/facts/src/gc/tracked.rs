//! Collections of one runtime on their way to be reported, by whatever source: those that are open, those that are over
//! and wait, and the pauses of both.

use super::pauses::{Pauses, is_for_gc};
use super::report_queue::ReportQueue;
use crate::fact::{FactSink, Gc, GcId};

/// A collection that is not over.
pub trait OpenGc {
    /// The row as far as it is known.
    fn row(&mut self) -> &mut Gc;
}

/// The collections of one runtime.
#[derive(Debug, Default)]
pub struct Tracked<O> {
    process_id: u64,
    clr_instance_id: u16,
    /// Those that are not over, the innermost last.
    pub open: Vec<O>,
    /// Those that are over and wait.
    pub closed: ReportQueue,
    /// The pauses around them.
    pub pauses: Pauses,
    /// Events were lost, and no suspension began since: that of the next collection may be among them.
    pub lost_before_start: bool,
}

impl<O: OpenGc> Tracked<O> {
    /// Of one runtime of one process, with this many held back so that a gap in them can be reported.
    pub fn new(process_id: u64, clr_instance_id: u16, hold: usize) -> Tracked<O> {
        let (open, closed, pauses) = (Vec::new(), ReportQueue::holding(hold), Pauses::default());
        Tracked { process_id, clr_instance_id, open, closed, pauses, lost_before_start: false }
    }

    /// The row of a collection that starts.
    pub fn new_row(&self, gc_id: GcId, start_ts_ns: i64) -> Gc {
        Gc {
            gc_id,
            process_id: self.process_id,
            clr_instance_id: self.clr_instance_id,
            start_ts_ns,
            touches_gap: self.lost_before_start,
            ..Gc::default()
        }
    }

    /// The rows of all that are not reported yet.
    pub fn rows(&mut self) -> impl Iterator<Item = &mut Gc> {
        self.open.iter_mut().map(O::row).chain(self.closed.iter_mut())
    }

    /// Events of a thread (`None`: of any) were lost: collections and pauses that go on may lack something.
    pub fn events_lost(&mut self, thread: Option<u32>) {
        self.rows_lost();
        self.pauses.events_lost(thread);
        self.mark_lost_pauses();
        self.lost_before_start = true;
    }

    /// Something of the collections that go on was lost.
    pub fn rows_lost(&mut self) {
        self.open.iter_mut().for_each(|open| open.row().touches_gap = true);
    }

    /// Marks the collections whose pauses touch a gap.
    pub fn mark_lost_pauses(&mut self) {
        self.pauses.mark_lost(self.open.iter_mut().map(O::row).chain(self.closed.iter_mut()));
    }

    /// A collection was opened.
    pub fn begun(&mut self, gc_id: GcId, is_background: bool, ts_ns: i64, sink: &mut impl FactSink) {
        let rows = self.open.iter_mut().map(O::row);
        self.pauses.collection(gc_id, is_background, ts_ns, self.process_id, rows, sink);
        self.mark_lost_pauses();
    }

    /// A thread asks the others to stop, for a collection if `gc_id` is not 0.
    pub fn suspended(&mut self, thread: u32, reason: Option<&'static str>, gc_id: GcId, ts_ns: i64) {
        self.pauses.begin(thread, reason, gc_id, ts_ns);
        self.mark_lost_pauses();
        self.lost_before_start &= !is_for_gc(reason);
    }

    /// All threads run again.
    pub fn resumed(&mut self, thread: u32, ts_ns: i64, sink: &mut impl FactSink) {
        let rows = self.open.iter_mut().map(O::row).chain(self.closed.iter_mut());
        self.pauses.end(thread, ts_ns, self.process_id, rows, sink);
    }

    /// The oldest collection that is open, or has an open pause: the last pause of a collection ends behind it.
    pub fn oldest_unfinished(&mut self) -> Option<GcId> {
        let open = self.open.first_mut().map(|open| open.row().gc_id);
        open.into_iter().chain(self.pauses.oldest_collection()).min()
    }

    /// Hands on collections that are over, as far as no older one is open, nor the pause of an older one.
    pub fn report(&mut self, sink: &mut impl FactSink) {
        let oldest = self.oldest_unfinished();
        self.closed.report(oldest, sink);
    }
}
