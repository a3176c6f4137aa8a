//! Finds lost events by the sequence numbers of each capturing thread.
//! Source: `NetTraceFormat.md`, "Event Sequence Numbers".

use crate::map::Map;

/// No more threads than this are followed at a time.
const MAX_THREADS: usize = 1 << 20;

/// The last sequence number seen on each thread, which goes by the id that the file gives it.
#[derive(Default)]
pub struct Drops {
    slots: Map<u64, SequenceSlot>,
    last: Vec<Option<u32>>,
    /// Time of the last event of each thread.
    ticks: Vec<i64>,
    /// In V6 every thread starts at 0; in V4 the first number seen is taken as it comes.
    starts_at_zero: bool,
    /// Events proven lost so far.
    pub total: u64,
}

/// Where the last number of a thread is kept, so that it is looked up once for a run of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceSlot(u32);

impl Drops {
    /// For a format in which the counter of an unseen thread is known to be 0 (V6) or not (V4).
    pub fn new(starts_at_zero: bool) -> Drops {
        Drops { starts_at_zero, ..Drops::default() }
    }

    /// The slot of a thread. It holds until threads are forgotten.
    pub fn slot(&mut self, thread: u64) -> SequenceSlot {
        if let Some(slot) = self.slots.get(&thread) {
            return *slot;
        }
        if self.last.len() >= MAX_THREADS {
            return SequenceSlot(u32::MAX);
        }
        let slot = SequenceSlot(self.last.len() as u32);
        self.last.push(None);
        self.ticks.push(i64::MIN);
        self.slots.insert(thread, slot);
        slot
    }

    /// Takes note of the time of an event; returns that of the event before it on the thread (`i64::MIN`: none).
    #[inline]
    pub fn time(&mut self, slot: SequenceSlot, ticks: i64) -> i64 {
        self.ticks.get_mut(slot.0 as usize).map_or(i64::MIN, |last| std::mem::replace(last, ticks))
    }

    /// Time of the last event of a thread (`i64::MIN`: none).
    pub fn last_time(&mut self, thread: u64) -> i64 {
        let slot = self.slot(thread);
        self.ticks.get(slot.0 as usize).copied().unwrap_or(i64::MIN)
    }

    /// Takes note of an event; returns how many were lost before it.
    #[inline]
    pub fn event(&mut self, slot: SequenceSlot, sequence: u32) -> u32 {
        match self.last.get_mut(slot.0 as usize) {
            Some(Some(last)) if sequence == last.wrapping_add(1) => {
                *last = sequence;
                0
            }
            _ => self.jump(slot, sequence),
        }
    }

    #[cold]
    fn jump(&mut self, slot: SequenceSlot, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let Some(before) = self.last.get_mut(slot.0 as usize) else { return 0 };
        let gap = match before.or(known) {
            None => 0,
            // The OS gave the id of a finished thread to a new one.
            Some(_) if sequence == 1 => 0,
            Some(last) => sequence.wrapping_sub(last).wrapping_sub(1),
        };
        *before = Some(sequence);
        // A number that goes backwards proves nothing lost.
        let gap = if gap > u32::MAX / 2 { 0 } else { gap };
        self.total += u64::from(gap);
        gap
    }

    /// Takes note of a sequence point's lower bound for a thread; returns how many events it proves lost.
    pub fn point(&mut self, thread: u64, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let slot = self.slot(thread);
        let Some(before) = self.last.get_mut(slot.0 as usize) else { return 0 };
        let Some(last) = before.or(known) else {
            *before = Some(sequence);
            return 0;
        };
        let gap = sequence.wrapping_sub(last);
        if gap == 0 || gap > u32::MAX / 2 {
            return 0;
        }
        *before = Some(sequence);
        self.total += u64::from(gap);
        gap
    }

    /// The thread's id may be given to another thread.
    pub fn forget(&mut self, thread: u64) {
        let slot = self.slots.get(&thread).copied();
        if let Some(before) = slot.and_then(|slot| self.last.get_mut(slot.0 as usize)) {
            *before = None;
        }
    }

    /// All ids may be given to other threads.
    pub fn forget_all(&mut self) {
        self.slots.clear();
        self.last.clear();
        self.ticks.clear();
    }

    /// Bytes of the file cannot be read: the next number of each thread is taken as it comes, since what is missing
    /// from the file was not dropped by the process. From here on a thread may have been seen first in what is missing.
    pub fn lose_track(&mut self) {
        self.last.fill(None);
        self.starts_at_zero = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_and_wrapping_is_no_gap() {
        let mut drops = Drops::new(false);
        let thread = drops.slot(77);
        assert_eq!(drops.event(thread, u32::MAX - 1), 0);
        assert_eq!(drops.event(thread, u32::MAX), 0);
        assert_eq!(drops.event(thread, 0), 0);
        assert_eq!(drops.event(thread, 1), 0);
        assert_eq!(drops.event(thread, 5), 3);
        assert_eq!(drops.event(thread, 1), 0, "a recycled thread id starts again");
        assert_eq!(drops.point(77, 4), 3);
        assert_eq!(drops.point(77, 2), 0, "a point below what was seen proves nothing");
        assert_eq!(drops.total, 6);
    }

    #[test]
    fn threads_of_v6_start_at_zero() {
        let mut drops = Drops::new(true);
        let thread = drops.slot(3);
        assert_eq!(drops.event(thread, 4), 3);
        assert_eq!(drops.point(2, 2), 2);
        drops.forget(3);
        assert_eq!(drops.event(thread, 1), 0);
        drops.forget_all();
        let thread = drops.slot(2);
        assert_eq!(drops.event(thread, 3), 2);
        drops.lose_track();
        assert_eq!(drops.event(thread, 500), 0, "what is missing from the file was not dropped");
        assert_eq!((drops.event(thread, 502), drops.point(9, 70)), (1, 0));
        let mut v4 = Drops::new(false);
        let thread = v4.slot(0);
        assert_eq!(v4.event(thread, 4), 0);
    }
}
