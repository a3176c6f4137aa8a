//! Finds lost events by the sequence numbers of each capturing thread.
//! Source: `NetTraceFormat.md`, "Event Sequence Numbers".

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// No more threads than this are followed at a time.
const MAX_THREADS: usize = 1 << 20;

/// The last sequence number seen on each thread, which goes by the id that the file gives it.
#[derive(Default)]
pub struct Drops {
    places: HashMap<u64, Place, RandomState>,
    last: Vec<Option<u32>>,
    /// In V6 every thread starts at 0; in V4 the first number seen is taken as it comes.
    starts_at_zero: bool,
    /// Events proven lost so far.
    pub total: u64,
}

/// Where the number of a thread is kept, so that it is looked up once for a run of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(u32);

impl Drops {
    /// For a format in which the counter of an unseen thread is known to be 0 (V6) or not (V4).
    pub fn new(starts_at_zero: bool) -> Drops {
        Drops { starts_at_zero, ..Drops::default() }
    }

    /// The place of a thread. It holds until threads are forgotten.
    pub fn place(&mut self, thread: u64) -> Place {
        if let Some(place) = self.places.get(&thread) {
            return *place;
        }
        if self.last.len() >= MAX_THREADS {
            return Place(u32::MAX);
        }
        let place = Place(self.last.len() as u32);
        self.last.push(None);
        self.places.insert(thread, place);
        place
    }

    /// Takes note of an event; returns how many were lost before it.
    #[inline]
    pub fn event(&mut self, place: Place, sequence: u32) -> u32 {
        match self.last.get_mut(place.0 as usize) {
            Some(Some(last)) if sequence == last.wrapping_add(1) => {
                *last = sequence;
                0
            }
            _ => self.jump(place, sequence),
        }
    }

    #[cold]
    fn jump(&mut self, place: Place, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let Some(slot) = self.last.get_mut(place.0 as usize) else { return 0 };
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
    pub fn point(&mut self, thread: u64, sequence: u32) -> u32 {
        let known = if self.starts_at_zero { Some(0) } else { None };
        let place = self.place(thread);
        let Some(slot) = self.last.get_mut(place.0 as usize) else { return 0 };
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

    /// The thread's id may be given to another thread.
    pub fn forget(&mut self, thread: u64) {
        let place = self.places.get(&thread).copied();
        if let Some(slot) = place.and_then(|place| self.last.get_mut(place.0 as usize)) {
            *slot = None;
        }
    }

    /// All ids may be given to other threads.
    pub fn forget_all(&mut self) {
        self.places.clear();
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_and_wrapping_is_no_gap() {
        let mut drops = Drops::new(false);
        let thread = drops.place(77);
        assert_eq!(drops.event(thread, u32::MAX - 1), 0);
        assert_eq!(drops.event(thread, u32::MAX), 0);
        assert_eq!(drops.event(thread, 0), 0);
        assert_eq!(drops.event(thread, 1), 0);
        assert_eq!(drops.event(thread, 5), 3);
        assert_eq!(drops.event(thread, 1), 0, "a recycled thread id starts anew");
        assert_eq!(drops.point(77, 4), 3);
        assert_eq!(drops.point(77, 2), 0, "a point below what was seen proves nothing");
        assert_eq!(drops.total, 6);
    }

    #[test]
    fn threads_of_v6_start_at_zero() {
        let mut drops = Drops::new(true);
        let thread = drops.place(3);
        assert_eq!(drops.event(thread, 4), 3);
        assert_eq!(drops.point(2, 2), 2);
        drops.forget(3);
        assert_eq!(drops.event(thread, 1), 0);
        drops.forget_all();
        let thread = drops.place(2);
        assert_eq!(drops.event(thread, 3), 2);
        let mut v4 = Drops::new(false);
        let thread = v4.place(0);
        assert_eq!(v4.event(thread, 4), 0);
    }
}
