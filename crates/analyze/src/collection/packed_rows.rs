//! Ranges and bounds of a collection as a stream of bytes: most ranges take three to five.
//!
//! A range mostly begins soon behind the one before it, and moves right behind where that one went. Addresses and
//! lengths are multiples of eight. So a range is a head and three short numbers, each an eighth: the gap to the range
//! before, the length, and the gap to the new place of the range before. What does not fit into that stands whole.

use std::io::{self, Read};

use super::rules::{Bound, Collection, NO_GENERATION, Range, RangeKind};

/// Bytes of a row at most: its head and three whole numbers.
pub(super) const MAX_ROW: usize = 1 + 3 * 8;

/// Bytes that are read at a time.
const WINDOW: usize = 64 << 10;

/// The low two bits of a head: three whole numbers follow, a range that stays, one that moves, or the kind of the ranges that follow. That is
/// the head, with a bit for those that are listed as moved, and two generations.
const WHOLE: u8 = 0;
const STAYS: u8 = 1;
const MOVES: u8 = 2;
const KIND: u8 = 3;
const KIND_ROW: usize = 3;

/// The next two bits of a head before whole numbers: what the row is.
const BEFORE: u8 = 0;
const AFTER: u8 = 1;
const EXACT: u8 = 2;
const CLAMPED: u8 = 3;

/// Where the last range ended, before and after the collection.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    end: u64,
    new_end: u64,
}

impl Last {
    fn of(range: &Range) -> Last {
        let Range { start, new_start, length, .. } = *range;
        Last { end: start.wrapping_add(length), new_end: new_start.wrapping_add(length) }
    }
}

/// An eighth of a multiple of eight. Of any other number it is large.
fn eighth(number: u64) -> u64 {
    number.rotate_right(3)
}

/// The number of bytes, less one, of a number that has four at most.
fn class(number: u64) -> u32 {
    (63 - (number | 1).leading_zeros()) / 8
}

/// A generation as a byte, and back.
fn byte(generation: Option<u8>) -> u8 {
    generation.unwrap_or(NO_GENERATION)
}

fn generation(byte: u8) -> Option<u8> {
    (byte != NO_GENERATION).then_some(byte)
}

/// Rows one behind the other, as they come.
#[derive(Debug, Default)]
pub(super) struct PackedRows {
    bytes: Vec<u8>,
    last: Last,
    /// The kind of the last range.
    kind: Option<RangeKind>,
    /// The number of rows, with those whose bytes were taken.
    count: u64,
    /// The number of rows that are kinds of ranges.
    kinds: u64,
}

impl PackedRows {
    /// The rows that were added since the bytes were taken.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of rows, with those whose bytes were taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of rows that are kinds of ranges.
    pub fn kinds(&self) -> u64 {
        self.kinds
    }

    /// Takes out the bytes. What is added later continues them.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Adds memory of a generation, at the end of the collection or at its start.
    pub fn bound(&mut self, bound: &Bound, is_end: bool) {
        let kind = if is_end { AFTER } else { BEFORE };
        self.whole(kind, [bound.start, bound.length, bound.generation.into()]);
    }

    /// Adds a range.
    pub fn range(&mut self, kind: RangeKind, range: &Range) {
        if self.kind != Some(kind) {
            self.kind = Some(kind);
            self.count += 1;
            self.kinds += 1;
            self.bytes.extend([KIND | u8::from(kind.is_moved) << 2, byte(kind.before), byte(kind.after)]);
        }
        let Range { start, new_start, length, clamped } = *range;
        let is_moved = new_start != start;
        let gap = eighth(start.wrapping_sub(self.last.end));
        let new_gap = if is_moved { eighth(new_start.wrapping_sub(self.last.new_end)) } else { 0 };
        let eighths = eighth(length);
        self.last = Last::of(range);
        if clamped || (gap | eighths | new_gap) > u64::from(u32::MAX) {
            self.whole(if clamped { CLAMPED } else { EXACT }, [start, length, new_start]);
            return;
        }
        let (of_gap, of_length) = (class(gap), class(eighths));
        // None for no gap, else two to four bytes.
        let of_new = if new_gap == 0 { 0 } else { class(new_gap).max(1) };
        let kind = u32::from(if is_moved { MOVES } else { STAYS });
        let head = kind | of_gap << 2 | of_length << 4 | of_new << 6;
        let mut at = 8;
        let mut row = u128::from(head) | u128::from(gap) << at;
        at += 8 * (of_gap + 1);
        row |= u128::from(eighths) << at;
        at += 8 * (of_length + 1);
        row |= u128::from(new_gap) << at;
        let length = at / 8 + if of_new == 0 { 0 } else { of_new + 1 };
        self.count += 1;
        // A copy of a fixed length is a store.
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&row.to_le_bytes());
        self.bytes.truncate(from + length as usize);
    }

    fn whole(&mut self, kind: u8, numbers: [u64; 3]) {
        self.count += 1;
        self.bytes.push(WHOLE | kind << 2);
        numbers.iter().for_each(|number| self.bytes.extend_from_slice(&number.to_le_bytes()));
    }
}

/// Gives packed rows back.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    window: Vec<u8>,
    last: Last,
    /// Rows that are still to come.
    rows: u64,
}

impl Unpacked {
    /// Starts at the bytes of a collection that has this many rows.
    pub fn begin(&mut self, rows: u64) {
        self.window.clear();
        (self.last, self.rows) = (Last::default(), rows);
    }

    /// Adds the rows of the next bytes, but for the last few. Calls `some` whenever it has added some.
    pub fn feed(
        &mut self,
        mut bytes: impl Read,
        into: &mut Collection,
        some: &mut dyn FnMut(&mut Collection),
    ) -> io::Result<()> {
        loop {
            let held = self.window.len();
            bytes.by_ref().take(WINDOW as u64).read_to_end(&mut self.window)?;
            if self.window.len() == held {
                return Ok(());
            }
            self.rows_of_window(into);
            some(into);
        }
    }

    /// Adds the last few rows. Fails when bytes are missing.
    pub fn end(&mut self, into: &mut Collection) -> io::Result<()> {
        let held = self.window.len();
        self.window.resize(held + MAX_ROW, 0);
        self.rows_of_window(into);
        // Only the padding may be left.
        if self.rows > 0 || self.window.len() < MAX_ROW { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Adds the rows that are in the window as far as any row would be.
    fn rows_of_window(&mut self, into: &mut Collection) {
        let mut rest = self.window.as_slice();
        while self.rows > 0
            && let Some(row) = rest.first_chunk::<MAX_ROW>()
        {
            let length = self.last.row(row, into);
            rest = rest.get(length..).unwrap_or_default();
            self.rows -= 1;
        }
        let done = self.window.len() - rest.len();
        self.window.drain(..done);
    }
}

impl Last {
    /// Adds a row, and says how many bytes it has.
    fn row(&mut self, row: &[u8; MAX_ROW], into: &mut Collection) -> usize {
        let [head, whole @ ..] = row;
        let kind = head & 3;
        if kind == KIND {
            let [before, after, ..] = *whole;
            let kind = RangeKind { is_moved: head & 4 > 0, before: generation(before), after: generation(after) };
            into.kinds.push((kind, into.ranges.len()));
            return KIND_ROW;
        }
        if kind == WHOLE {
            let mut numbers = [0; 3];
            for (number, bytes) in numbers.iter_mut().zip(whole.as_chunks::<8>().0) {
                *number = u64::from_le_bytes(*bytes);
            }
            let [start, length, third] = numbers;
            let bound = Bound { generation: third as u8, start, length };
            match head >> 2 & 3 {
                BEFORE => into.before.push(bound),
                AFTER => into.after.push(bound),
                kind => self.range(Range { start, new_start: third, length, clamped: kind == CLAMPED }, into),
            }
            return MAX_ROW;
        }
        let number = |at: u32| {
            whole.get(at as usize..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let lowest = |number: u64, bytes: u32| (number & ((1 << (8 * bytes)) - 1)).rotate_left(3);
        let head = u32::from(*head);
        let (of_gap, of_length) = ((head >> 2 & 3) + 1, (head >> 4 & 3) + 1);
        let of_new = if head >> 6 == 0 { 0 } else { (head >> 6) + 1 };
        let both = number(0);
        let (gap, length) = (lowest(both, of_gap), lowest(both >> (8 * of_gap), of_length));
        let new_gap = lowest(number(of_gap + of_length), of_new);
        let start = self.end.wrapping_add(gap);
        let new_start = if kind == MOVES { self.new_end.wrapping_add(new_gap) } else { start };
        self.range(Range { start, new_start, length, clamped: false }, into);
        (1 + of_gap + of_length + of_new) as usize
    }

    fn range(&mut self, range: Range, into: &mut Collection) {
        *self = Last::of(&range);
        into.ranges.push(range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    fn back(parts: &[Vec<u8>], rows: u64) -> io::Result<Collection> {
        let mut unpacked = Unpacked::default();
        let mut into = Collection::default();
        unpacked.begin(rows);
        for part in parts {
            unpacked.feed(part.as_slice(), &mut into, &mut |_| {})?;
        }
        unpacked.end(&mut into)?;
        Ok(into)
    }

    #[test]
    fn any_rows_come_back_from_any_parts() {
        let mut dice = Dice(5);
        for _ in 0..40 {
            let mut number = || {
                let bits = dice.below(65);
                let number = if bits == 0 { 0 } else { dice.below(u64::MAX) >> (64 - bits) };
                if dice.below(3) == 0 { number } else { number & !7 }
            };
            let mut rows = PackedRows::default();
            let (mut expected, mut parts) = (Collection::default(), Vec::new());
            let mut start = number();
            for step in 0..5000u64 {
                start = if step % 100 == 0 { number() } else { start.wrapping_add(number() >> 40) };
                let length = number();
                let new_start = match step % 3 {
                    0 => start,
                    1 => expected.ranges.last().map_or(7, |last: &Range| last.new_start.wrapping_add(last.length)),
                    _ => number(),
                };
                let range = Range { start, new_start, length, clamped: step % 50 == 0 };
                let generation = |step: u64| Some((step % 4) as u8).filter(|generation| *generation < 3);
                let kind =
                    RangeKind { is_moved: step > 2000, before: generation(step / 700), after: generation(step / 900) };
                if expected.kinds.last().is_none_or(|(last, _)| *last != kind) {
                    expected.kinds.push((kind, expected.ranges.len()));
                }
                expected.ranges.push(range);
                rows.range(kind, &range);
                if step % 70 < 2 {
                    let bound = Bound { generation: step as u8, start, length };
                    let is_end = step % 70 == 1;
                    rows.bound(&bound, is_end);
                    if is_end { expected.after.push(bound) } else { expected.before.push(bound) }
                }
                if step % 1900 == 1 {
                    parts.push(rows.take());
                }
            }
            parts.push(rows.take());
            let found = back(&parts, rows.count()).unwrap();
            assert_eq!((&found.ranges, &found.kinds), (&expected.ranges, &expected.kinds));
            let by_kind = found.ranges_by_kind().map(|(_, ranges)| ranges).collect::<Vec<_>>();
            assert_eq!((by_kind.len(), by_kind.concat()), (expected.kinds.len(), expected.ranges));
            assert_eq!((found.before, found.after), (expected.before, expected.after));
        }
    }

    #[test]
    fn ranges_that_follow_each_other_take_few_bytes() {
        let mut rows = PackedRows::default();
        let range = |n: u64| Range { start: n * 800, new_start: (1 << 40) + n * 240, length: 240, clamped: false };
        (0..1000).for_each(|n| rows.range(RangeKind::default(), &range(n)));
        assert!(rows.bytes().len() < 3 * rows.count() as usize + MAX_ROW, "{}", rows.bytes().len());
        assert_eq!(back(&[rows.take()], 1001).unwrap().ranges, (0..1000).map(range).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_that_are_missing_are_an_error() {
        let mut rows = PackedRows::default();
        let range = |n: u64| Range { start: n * 64, new_start: n * 64, length: 8, clamped: false };
        (0..100).for_each(|n| rows.range(RangeKind::default(), &range(n)));
        let mut bytes = rows.take();
        bytes.pop();
        assert!(back(&[bytes], rows.count()).is_err());
        assert!(back(&[], 1).is_err());
        assert!(back(&[], 0).is_ok());
    }
}
