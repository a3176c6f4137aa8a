//! Finds lost events by the sequence numbers of each capturing thread.
//! Source: `NetTraceFormat.md`, "Event Sequence Numbers".

use crate::reader::ThreadIndex;

/// The last sequence number seen on each thread.
#[derive(Default)]
pub struct Drops {
    last: Vec<Option<u32>>,
    /// In V6 every thread starts at 0; in V4 the first number seen is taken as it comes.
    starts_at_zero: bool,
    /// Events proven lost so far.
    pub total: u64,
}

impl Drops {
    /// For a format in which the counter of an unseen thread is known to be 0 (V6) or not (V4).
    pub fn new(starts_at_zero: bool) -> Drops {
        Drops { starts_at_zero, ..Drops::default() }
    }

    #[allow(clippy::indexing_slicing, reason = "resized to hold the index")]
    fn slot(&mut self, thread: ThreadIndex) -> &mut Option<u32> {
        let index = thread as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, None);
        }
        &mut self.last[index]
    }

    /// Takes note of an event; returns how many were lost before it.
    #[inline]
    pub fn event(&mut self, thread: ThreadIndex, sequence: u32) -> u32 {
        if let Some(Some(last)) = self.last.get_mut(thread as usize)
            && sequence == last.wrapping_add(1)
        {
            *last = sequence;
            return 0;
        }
        self.jump(thread, sequence)
    }

    #[cold]
    fn jump(&mut self, thread: ThreadIndex, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let slot = self.slot(thread);
        let gap = match slot.or(known) {
            None => 0,
            // The OS gave the id of a finished thread to a new one.
            Some(_) if sequence == 1 => 0,
            Some(last) => sequence.wrapping_sub(last).wrapping_sub(1),
        };
        *slot = Some(sequence);
        // A number that goes backwards proves nothing lost.
        let gap = if gap > u32::MAX / 2 { 0 } else { gap };
        self.total += u64::from(gap);
        gap
    }

    /// Takes note of a sequence point's lower bound for a thread; returns how many events it proves lost.
    pub fn point(&mut self, thread: ThreadIndex, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let slot = self.slot(thread);
        let Some(last) = slot.or(known) else {
            *slot = Some(sequence);
            return 0;
        };
        let gap = sequence.wrapping_sub(last);
        if gap == 0 || gap > u32::MAX / 2 {
            return 0;
        }
        *slot = Some(sequence);
        self.total += u64::from(gap);
        gap
    }

    /// The thread's index may be given to another thread.
    pub fn forget(&mut self, thread: ThreadIndex) {
        *self.slot(thread) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_and_wrapping_is_no_gap() {
        let mut drops = Drops::new(false);
        assert_eq!(drops.event(0, u32::MAX - 1), 0);
        assert_eq!(drops.event(0, u32::MAX), 0);
        assert_eq!(drops.event(0, 0), 0);
        assert_eq!(drops.event(0, 1), 0);
        assert_eq!(drops.event(0, 5), 3);
        assert_eq!(drops.event(0, 1), 0, "a recycled thread id starts anew");
        assert_eq!(drops.point(0, 4), 3);
        assert_eq!(drops.point(0, 2), 0, "a point below what was seen proves nothing");
        assert_eq!(drops.total, 6);
    }

    #[test]
    fn threads_of_v6_start_at_zero() {
        let mut drops = Drops::new(true);
        assert_eq!(drops.event(3, 4), 3);
        assert_eq!(drops.point(2, 2), 2);
        assert_eq!(Drops::new(false).event(0, 4), 0);
    }
}
