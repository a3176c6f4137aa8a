//! The normaliser where events are missing.

use crate::Normalizer;
use crate::pairs::Marking;
use crate::prelude::*;
use tracequet_trace::reader::{Thread, ThreadIndex};

impl Normalizer {
    /// Gaps are found after later events were delivered (.nettrace from V4 on): rows of pairs whose events come from
    /// several threads wait for [`Normalizer::losses_known`]. To be called before the first event.
    pub fn gaps_are_late(&mut self) {
        self.pairs.are_late = true;
        self.trackers.activities.gaps_are_late();
    }

    /// Events that threads of this process (`None`: of any) recorded are missing between two times.
    pub fn gap(&mut self, process: Option<ProcessKey>, since_ns: i64, until_ns: i64) {
        if let Some(end_ns) = self.trackers.activities.unsettled() {
            self.pairs.unsettled(end_ns);
        }
        self.pairs.gap(process.map(|process| process.id), since_ns, until_ns);
    }

    /// All gaps before the events that come have been reported.
    pub fn losses_known(&mut self, sink: &mut impl FactSink) {
        self.release(i64::MAX, sink);
    }

    /// Hands on the pairs that ended before a time.
    fn release(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        self.pairs.release(ended_before_ns, sink);
        self.trackers.activities.release(ended_before_ns, &mut Marking { pairs: &mut self.pairs, sink });
    }

    /// Events that a thread recorded (`None`: any thread) were lost, all of them later than `since_ns`. Reported before
    /// the first event behind the gap.
    pub fn events_lost(
        &mut self,
        capture_thread: Option<(ThreadIndex, &Thread)>,
        since_ns: i64,
        sink: &mut impl FactSink,
    ) {
        let process = capture_thread.map(|(_, thread)| thread.process());
        let thread = capture_thread.map(|(index, _)| index);
        self.shared.runtimes.events_lost(process, thread, since_ns);
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        self.trackers.cut(&Cut { process, thread, lost_since_ns: Some(since_ns) }, sink);
    }

    /// For who reads the tables meanwhile: hands on what ended before a time and is held back only because a gap in it
    /// could still be seen. Such a gap is then in the diagnostics, and not in the row.
    pub fn settle(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        self.pairs.unsettled(ended_before_ns);
        self.release(ended_before_ns, sink);
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        self.shared.runtimes.settle(ended_before_ns, sink);
    }

    /// The recording ends: nothing more is to be learned of its gaps.
    pub(super) fn no_more_gaps(&mut self, position: u64, sink: &mut impl FactSink) {
        self.release(i64::MAX, sink);
        self.pairs.are_late = false;
        let message = "gaps showed after pairs of their time were handed on; touches_gap of these may be wrong";
        sink.problems(Problem::loss("late_gap", position, message), self.pairs.late_gaps);
    }
}
