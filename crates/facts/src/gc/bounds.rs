//! Bounds of the generations at one moment, and the generation of an address.

use crate::fact::GcGenerationRange;

/// The problem of too many bounds.
pub const TOO_MANY_BOUNDS: &str = "too many generation bounds in one collection";

/// Places that are remembered. Ranges move into several parts of the heap by turns.
const REMEMBERED: usize = 64;

/// Generation bounds in the order of addresses.
pub struct Bounds {
    sorted: Vec<(u64, u64, Option<u8>)>,
    /// The entries found last, by the megabyte that was asked for: neighbours are asked for in turn.
    last: [usize; REMEMBERED],
    /// Entries that overlap another.
    pub overlapping: u64,
}

impl Bounds {
    /// The bounds at the start or at the end of a collection.
    pub fn new(bounds: &[GcGenerationRange], at_end: bool) -> Bounds {
        let wanted = bounds.iter().filter(|b| b.is_at_end() == at_end && b.range_length > 0);
        let mut sorted: Vec<_> =
            wanted.map(|b| (b.range_start, b.range_start.saturating_add(b.range_length), Some(b.generation))).collect();
        sorted.sort_unstable();
        sorted.dedup();
        // Where two entries disagree nothing is known.
        let (mut overlapping, mut furthest) = (0, 0);
        let mut end = 0;
        for index in 0..sorted.len() {
            let Some(entry) = sorted.get_mut(index) else { continue };
            let (overlaps, start) = (entry.0 < end, entry.0);
            if overlaps {
                overlapping += 1;
                entry.2 = None;
            }
            let own_end = entry.1;
            if overlaps && let Some(other) = sorted.get_mut(furthest) {
                // The rest of the entry before it, as far as no other begins in it, is not doubted.
                other.1 = other.1.min(start.max(other.0));
            }
            if own_end > end {
                (end, furthest) = (own_end, index);
            }
        }
        Bounds { sorted, last: [0; REMEMBERED], overlapping }
    }

    /// Start, end and generation of the entry that an address lies in.
    pub fn entry(&mut self, address: u64) -> Option<(u64, u64, Option<u8>)> {
        let last = self.last.get_mut((address >> 20) as usize % REMEMBERED)?;
        if let Some((start, end, generation)) = self.sorted.get(*last)
            && (*start..*end).contains(&address)
        {
            return Some((*start, *end, *generation));
        }
        let index = self.sorted.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let found = *self.sorted.get(index)?;
        if address >= found.1 {
            return None;
        }
        *last = index;
        Some(found)
    }

    /// The generation of an address, where the bounds agree on it.
    #[inline]
    pub fn generation(&mut self, address: u64) -> Option<u8> {
        self.entry(address)?.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::range_phase;

    #[test]
    fn a_generation_is_read_off_half_open_bounds() {
        let bound = |generation, range_start, range_length, at_end| {
            let phase = range_phase(at_end);
            GcGenerationRange { phase, generation, range_start, range_length, ..GcGenerationRange::default() }
        };
        let list =
            [bound(0, 100, 50, false), bound(2, 200, 10, false), bound(1, 300, 0, false), bound(1, 100, 50, true)];
        let mut before = Bounds::new(&list, false);
        assert_eq!(before.generation(99), None);
        assert_eq!(before.generation(100), Some(0));
        assert_eq!(before.generation(149), Some(0));
        assert_eq!(before.generation(150), None);
        assert_eq!(before.generation(209), Some(2));
        assert_eq!(before.generation(300), None, "an empty entry holds no address");
        assert_eq!(Bounds::new(&list, true).generation(120), Some(1));
    }
}
