//! Collections that are over, and wait for an older one: they are handed on in the order of their starts.

use std::collections::VecDeque;

use crate::normalize::fact::{FactSink, Gc, GcId};

/// Collections that wait for an older one to end, at most.
const MAX_WAITING: usize = 4096;

/// What waits, in the order of numbers.
#[derive(Debug, Default)]
pub struct ReportQueue(VecDeque<Gc>);

impl ReportQueue {
    /// A collection is over.
    pub fn push(&mut self, row: Gc) {
        let at = self.0.partition_point(|other| other.gc_id < row.gc_id);
        self.0.insert(at, row);
    }

    /// What waits.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Gc> {
        self.0.iter_mut()
    }

    /// Hands on what is older than `oldest_open` (`None`: none is open), and more when too many wait.
    pub fn report(&mut self, oldest_open: Option<GcId>, sink: &mut impl FactSink) {
        while let Some(row) = self.0.front() {
            if oldest_open.is_some_and(|open| row.gc_id > open) && self.0.len() < MAX_WAITING {
                break;
            }
            sink.add(row);
            self.0.pop_front();
        }
    }
}
