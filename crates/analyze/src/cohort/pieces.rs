//! The pieces of memory that are alive, by address.

use std::collections::BTreeMap;

use crate::collection::spans::{Span, join};

/// The cohort of bytes of which it is not known when they came into being: before the recording began, or where a
/// collection was not recorded whole.
pub const UNKNOWN_BIRTH: u32 = 0;

/// Pieces that do not overlap, each with its cohort. Cohorts that became one are renamed when a piece is looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// End and cohort by start.
    map: BTreeMap<u64, (u64, u32)>,
    /// Cohorts before this one go by its name.
    oldest: u32,
    /// Pieces when those of one cohort were joined last.
    joined: usize,
}

impl Pieces {
    /// The cohorts without pieces.
    pub fn emptied(&self) -> Pieces {
        Pieces { oldest: self.oldest, ..Pieces::default() }
    }

    /// The number of cohorts.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The name of a cohort now.
    pub fn named(&self, born: u32) -> u32 {
        if born == UNKNOWN_BIRTH { born } else { born.max(self.oldest) }
    }

    /// Takes out the pieces that reach into `start..end`.
    pub fn take(&mut self, start: u64, end: u64, into: &mut Vec<Span<u32>>) {
        if start >= end {
            return;
        }
        if start == 0 && end == u64::MAX {
            let all = std::mem::take(&mut self.map);
            into.extend(all.into_iter().map(|(start, (end, born))| Span { start, end, value: self.named(born) }));
            return;
        }
        let first = self.map.range(..=start).next_back().filter(|(_, (end, _))| *end > start);
        let first = first.map_or(start, |(start, _)| *start);
        let from = into.len();
        let found = self.map.range(first..end);
        into.extend(found.map(|(start, (end, born))| Span { start: *start, end: *end, value: self.named(*born) }));
        let taken = into.get(from..).unwrap_or_default();
        if taken.len() > self.map.len() / 4 {
            self.map.retain(|start, _| !(first..end).contains(start));
        } else {
            for span in taken {
                self.map.remove(&span.start);
            }
        }
    }

    /// Calls `each` with the parts of pieces in `start..end`.
    pub fn each_in(&self, start: u64, end: u64, mut each: impl FnMut(u64, u64, u32)) {
        let before = self.map.range(..start).next_back().filter(|(_, (end, _))| *end > start);
        for (from, (to, born)) in before.into_iter().chain(self.map.range(start..end)) {
            each((*from).max(start), (*to).min(end), self.named(*born));
        }
    }

    /// Puts pieces in, which overlap neither each other nor those that are there. Neighbours of one cohort become one.
    pub fn put(&mut self, pieces: Vec<Span<u32>>) {
        if self.map.is_empty() {
            self.map = pieces.into_iter().map(|piece| (piece.start, (piece.end, piece.value))).collect();
            return;
        }
        for Span { mut start, mut end, value } in pieces {
            if let Some((first, (_, born))) = self.map.range(..start).next_back().filter(|(_, (end, _))| *end == start)
                && self.named(*born) == value
            {
                start = *first;
            }
            if let Some((last, born)) = self.map.get(&end).copied()
                && self.named(born) == value
            {
                self.map.remove(&end);
                end = last;
            }
            self.map.insert(start, (end, value));
        }
    }

    /// Cohorts before this one go by its name from now on.
    pub fn merge_before(&mut self, oldest: u32) {
        self.oldest = self.oldest.max(oldest);
        // Neighbours may have become one cohort. To join all of them costs a pass, which pays once they are many more.
        if self.map.len() > 2 * self.joined.max(1 << 10) {
            let mut all = Vec::with_capacity(self.map.len());
            self.take(0, u64::MAX, &mut all);
            join(&mut all);
            self.joined = all.len();
            self.put(all);
        }
    }

    /// All of them in order.
    #[cfg(test)]
    pub fn all(&self) -> Vec<Span<u32>> {
        let span =
            |(start, (end, born)): (&u64, &(u64, u32))| Span { start: *start, end: *end, value: self.named(*born) };
        self.map.iter().map(span).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64, value: u32) -> Span<u32> {
        Span { start, end, value }
    }

    #[test]
    fn pieces_are_taken_out_whole_and_put_back_joined() {
        let mut pieces = Pieces::default();
        pieces.put(vec![span(10, 20, 1), span(20, 30, 2), span(40, 50, 1), span(60, 70, 3)]);
        let mut taken = Vec::new();
        for (start, end) in [(0, 10), (30, 40), (50, 60), (15, 15), (70, u64::MAX)] {
            pieces.take(start, end, &mut taken);
        }
        assert_eq!(taken, []);
        pieces.take(29, 41, &mut taken);
        assert_eq!(taken, [span(20, 30, 2), span(40, 50, 1)]);
        pieces.put(vec![span(20, 40, 1), span(40, 55, 1), span(55, 60, 3)]);
        assert_eq!(pieces.all(), [span(10, 55, 1), span(55, 70, 3)]);
        let mut parts = Vec::new();
        pieces.each_in(50, 56, |start, end, born| parts.push((start, end, born)));
        assert_eq!(parts, [(50, 55, 1), (55, 56, 3)]);
        pieces.merge_before(3);
        pieces.put(vec![span(70, 80, 3)]);
        assert_eq!(pieces.all(), [span(10, 55, 3), span(55, 80, 3)]);
    }

    #[test]
    fn the_last_byte_of_all_memory_is_a_piece_as_others_are() {
        let mut pieces = Pieces::default();
        pieces.put(vec![span(0, u64::MAX, 1)]);
        let mut taken = Vec::new();
        pieces.take(u64::MAX - 1, u64::MAX, &mut taken);
        assert_eq!((taken, pieces.len()), (vec![span(0, u64::MAX, 1)], 0));
    }
}
