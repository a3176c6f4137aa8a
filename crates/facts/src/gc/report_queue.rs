//! Collections that are over, and wait: they are handed on in the order of their starts, once nothing more can be
//! learned of them.

use std::collections::VecDeque;

use crate::fact::{FactSink, Gc, GcId};

/// Collections that wait for an older one to end, at most.
const MAX_WAITING: usize = 4096;

/// Collections that wait, in the order of numbers.
#[derive(Debug, Default)]
pub struct ReportQueue {
    rows: VecDeque<Gc>,
    /// The number of youngest ones that are held back in any case: a gap in the events of a thread is seen only behind
    /// it.
    hold: usize,
}

impl ReportQueue {
    /// Number of the youngest collections that are held back.
    pub fn holding(hold: usize) -> ReportQueue {
        ReportQueue { rows: VecDeque::new(), hold }
    }

    /// A collection is over.
    pub fn push(&mut self, row: Gc) {
        let at = self.rows.partition_point(|other| other.gc_id < row.gc_id);
        self.rows.insert(at, row);
    }

    /// The collections that wait.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Gc> {
        self.rows.iter_mut()
    }

    /// Hands on what is older than `oldest_open` (`None`: none is open), and more when too many wait.
    pub fn report(&mut self, oldest_open: Option<GcId>, sink: &mut impl FactSink) {
        while let Some(row) = self.rows.front() {
            let waits = oldest_open.is_some_and(|open| row.gc_id >= open) || self.rows.len() <= self.hold;
            if waits && self.rows.len() < MAX_WAITING {
                break;
            }
            self.report_first(sink);
        }
    }

    /// Hands on what is older than `oldest_open` and ended before `ended_before_ns`, though more could be learned of
    /// it.
    pub fn settle(&mut self, oldest_open: Option<GcId>, ended_before_ns: i64, sink: &mut impl FactSink) {
        while let Some(row) = self.rows.front() {
            let is_open = oldest_open.is_some_and(|open| row.gc_id >= open);
            if is_open || row.end_ts_ns.is_none_or(|end| end >= ended_before_ns) {
                break;
            }
            self.report_first(sink);
        }
    }

    /// Hands on everything.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        while !self.rows.is_empty() {
            self.report_first(sink);
        }
    }

    fn report_first(&mut self, sink: &mut impl FactSink) {
        if let Some(row) = self.rows.pop_front() {
            report(row, sink);
        }
    }
}

/// Hands on a collection. One that lost something is not complete.
pub fn report(mut row: Gc, sink: &mut impl FactSink) {
    row.complete &= !row.touches_gap;
    sink.add(&row);
}
