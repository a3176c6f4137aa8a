//! Where events are missing, reported to the visitor in the order of time, as the events are.
//!
//! A gap shows when the block with the event behind it is read. The events of the region are delivered later, sorted.

use crate::reader::{ThreadIndex, Visitor};

/// More gaps than this in one region are reported as one, of any thread.
const MAX_LOSSES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Loss {
    /// `None`: of any thread.
    thread: Option<ThreadIndex>,
    /// Time of the last event before the gap, and of the first behind it.
    since: i64,
    until: i64,
    /// The latest end of all gaps that this one stands for.
    last: i64,
}

/// Gaps that are not reported yet.
#[derive(Default)]
pub struct Losses {
    /// The one that ends last comes first.
    waiting: Vec<Loss>,
    /// The last time before a hole in the file behind which no event is read yet.
    hole: Option<i64>,
    /// The first of those times in the region at hand: what is delivered before the hole and behind it is mixed.
    holed_since: Option<i64>,
}

impl Losses {
    /// Events of a thread are missing between two times. `until` is `i64::MAX` when no event behind them is known.
    #[cold]
    pub fn add(&mut self, thread: Option<ThreadIndex>, since: i64, until: i64) {
        if self.waiting.len() >= MAX_LOSSES {
            let since = self.waiting.iter().fold(since, |oldest, loss| oldest.min(loss.since));
            let last = self.waiting.iter().fold(until, |last, loss| last.max(loss.last));
            let first = self.waiting.iter().fold(until, |first, loss| first.min(loss.until));
            self.waiting.clear();
            self.waiting.push(Loss { thread: None, since, until: first, last });
            return;
        }
        let at = self.waiting.partition_point(|loss| loss.until > until);
        self.waiting.insert(at, Loss { thread, since, until, last: until });
    }

    /// Bytes of the file cannot be read; `newest` is the time up to which events are delivered.
    pub fn hole(&mut self, newest: i64) {
        self.hole.get_or_insert(newest);
        self.holed_since.get_or_insert(newest);
        // An event that begins before the hole and ends behind it is still to be delivered.
        self.add(None, newest, i64::MAX);
    }

    /// An event is read.
    #[inline]
    pub fn event_behind_hole(&mut self, ticks: i64) {
        if let Some(since) = self.hole.take() {
            self.add(None, since, ticks);
        }
    }

    /// Reports that events up to `newest` are about to be delivered, between which others may be missing in a hole.
    pub fn tell_holes(&self, newest: impl FnOnce() -> Option<i64>, visitor: &mut dyn Visitor) {
        if let Some(since) = self.holed_since
            && let Some(newest) = newest()
        {
            visitor.gap(None, since, newest);
        }
    }

    /// Reports the gaps that end at `ticks` or before. Those whose end is not known end at `newest`.
    #[inline]
    pub fn report_until(&mut self, ticks: i64, newest: i64, visitor: &mut dyn Visitor) {
        while let Some(loss) = self.waiting.last().copied().filter(|loss| loss.until <= ticks) {
            self.waiting.pop();
            let until = if loss.last == i64::MAX { newest.max(loss.since) } else { loss.last };
            visitor.gap(loss.thread, loss.since, until);
            visitor.events_lost(loss.thread, loss.since);
        }
    }

    /// All that was read is delivered (`until` is `i64::MAX`), or a part of it.
    pub fn delivered(&mut self, until: i64, newest: i64, visitor: &mut dyn Visitor) {
        if until == i64::MAX {
            self.report_until(until, newest, visitor);
        }
    }

    /// The region ends: what is behind it comes later.
    pub fn end_region(&mut self, visitor: &mut dyn Visitor) {
        self.holed_since = self.hole;
        visitor.losses_known();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::error::Problem;
    use crate::reader::RawEvent;

    #[derive(Default)]
    struct Reported(Vec<(Option<u32>, i64)>);

    impl Visitor for Reported {
        fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
        fn problem(&mut self, _: Problem) {}
        fn events_lost(&mut self, thread: Option<ThreadIndex>, since_ticks: i64) {
            self.0.push((thread, since_ticks));
        }
    }

    #[test]
    fn gaps_are_told_before_the_first_event_behind_them() {
        let (mut losses, mut reported) = (Losses::default(), Reported::default());
        losses.add(Some(1), 50, 90);
        losses.add(Some(2), 10, 60);
        losses.add(Some(3), 70, i64::MAX);
        losses.report_until(59, 59, &mut reported);
        assert_eq!(reported.0, []);
        losses.report_until(60, 60, &mut reported);
        losses.report_until(200, 200, &mut reported);
        assert_eq!(reported.0, [(Some(2), 10), (Some(1), 50)]);
        losses.report_until(i64::MAX, 300, &mut reported);
        assert_eq!(reported.0.last(), Some(&(Some(3), 70)));
    }

    #[test]
    fn too_many_gaps_become_one_of_any_thread() {
        let (mut losses, mut reported) = (Losses::default(), Reported::default());
        for thread in 0..MAX_LOSSES as u32 + 1 {
            losses.add(Some(thread), i64::from(thread) + 5, 1_000_000 - i64::from(thread));
        }
        losses.report_until(i64::MAX, 300, &mut reported);
        assert_eq!(reported.0, [(None, 5)]);
    }
}
