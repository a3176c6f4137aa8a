//! The stacks that are events of their own, sorted by the events that they belong to. A long list is kept in a
//! temporary file, because it is read once, from its beginning to its end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufWriter, Write};

use crate::source::{MappedFile, temporary};

/// Longer lists are put into a temporary file (8 MB).
const IN_MEMORY: usize = 256 << 10;
/// Stacks of a piece of a list that is made (2 MB).
const PIECE: usize = 64 << 10;
/// Bytes of a stack in the file.
const SIZE: usize = 30;
/// Stacks after which the pages of the file are given back.
const RELEASE_STEP: u32 = 64 << 10;

/// Which part of a stack. Frames go from the innermost outwards, so that the kernel's come before the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// In the kernel.
    Kernel,
    /// In the user's program.
    User,
    /// A stack of the CLR.
    Runtime,
}

/// A stack, by the event that it belongs to; 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Time of the event.
    pub ticks: i64,
    /// Where its addresses are; while the key is not defined, the reference before it with the same key.
    pub place: u64,
    /// Thread of the event. Of a stack of the CLR the number of the event among those of its time, from 0.
    pub thread_or_ordinal: u32,
    /// Which event it is, among those that are stacks.
    pub carrier: u32,
    /// Bytes of addresses.
    pub len: u16,
    /// Which part.
    pub part: Part,
    /// Whether addresses have 4 bytes.
    pub narrow: bool,
    /// Processor, of a stack of the idle thread: each processor has one, all with the id 0. Else 0.
    pub lane: u16,
}

/// The order of stacks: time, thread, part, lane.
pub type Key = (i64, u32, Part, u16);

impl Ref {
    /// The place in the list.
    pub fn key(&self) -> Key {
        (self.ticks, self.thread_or_ordinal, self.part, self.lane)
    }

    /// Its place among all: stacks of one key are in the order of the recording.
    fn place_in_order(&self) -> (Key, u32) {
        (self.key(), self.carrier)
    }

    fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let (ticks, rest) = bytes.split_at_mut(8);
        let (place, rest) = rest.split_at_mut(8);
        let (thread_or_ordinal, rest) = rest.split_at_mut(4);
        let (carrier, rest) = rest.split_at_mut(4);
        let (lane, rest) = rest.split_at_mut(2);
        ticks.copy_from_slice(&self.ticks.to_le_bytes());
        place.copy_from_slice(&self.place.to_le_bytes());
        thread_or_ordinal.copy_from_slice(&self.thread_or_ordinal.to_le_bytes());
        carrier.copy_from_slice(&self.carrier.to_le_bytes());
        lane.copy_from_slice(&self.lane.to_le_bytes());
        let [low, high] = self.len.to_le_bytes();
        rest.copy_from_slice(&[low, high, self.part as u8, self.narrow.into()]);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Ref> {
        let (ticks, rest) = bytes.split_first_chunk()?;
        let (place, rest) = rest.split_first_chunk()?;
        let (thread_or_ordinal, rest) = rest.split_first_chunk()?;
        let (carrier, rest) = rest.split_first_chunk()?;
        let (lane, rest) = rest.split_first_chunk()?;
        let [low, high, part, narrow] = *rest.first_chunk()?;
        Some(Ref {
            ticks: i64::from_le_bytes(*ticks),
            place: u64::from_le_bytes(*place),
            thread_or_ordinal: u32::from_le_bytes(*thread_or_ordinal),
            carrier: u32::from_le_bytes(*carrier),
            len: u16::from_le_bytes([low, high]),
            part: [Part::Kernel, Part::User].get(usize::from(part)).copied().unwrap_or(Part::Runtime),
            narrow: narrow != 0,
            lane: u16::from_le_bytes(*lane),
        })
    }
}

/// Stacks in the order in which they were found, in pieces: a list that grows as one has twice its size beside it.
#[derive(Default)]
pub struct Noted(Vec<Vec<Ref>>);

impl Noted {
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PIECE + last.len())
    }

    pub fn push(&mut self, stack: Ref) {
        match self.0.last_mut() {
            Some(last) if last.len() < PIECE => last.push(stack),
            _ => self.0.push(vec![stack]),
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Ref> {
        self.0.get_mut(index / PIECE)?.get_mut(index % PIECE)
    }
}

/// Stacks sorted by time, thread, part and lane, then by their order in the recording.
#[derive(Default)]
pub struct Refs {
    list: List,
    /// Looked at since the pages of the file were given back.
    seen: u32,
}

enum List {
    Memory(Vec<Ref>),
    File(MappedFile),
}

impl Default for List {
    fn default() -> Self {
        List::Memory(Vec::new())
    }
}

impl Refs {
    /// Sorts a list. Without room for a temporary file it stays in memory.
    pub fn sorted(noted: Noted) -> Refs {
        let is_long = noted.len() > IN_MEMORY;
        let mut pieces = noted.0;
        pieces.iter_mut().for_each(|piece| piece.sort_unstable_by_key(Ref::place_in_order));
        let file = if is_long { file_of(&pieces).ok() } else { None };
        let list = file.map_or_else(
            || {
                let mut refs = pieces.concat();
                refs.sort_unstable_by_key(Ref::place_in_order);
                List::Memory(refs)
            },
            List::File,
        );
        Refs { list, seen: 0 }
    }

    /// The stack at a place in the list.
    pub fn get(&mut self, index: usize) -> Option<Ref> {
        match &self.list {
            List::Memory(refs) => refs.get(index).copied(),
            List::File(file) => {
                self.seen += 1;
                if self.seen >= RELEASE_STEP {
                    self.seen = 0;
                    file.release_all();
                }
                let at = index.checked_mul(SIZE)?;
                Ref::read(&file.part(at..at.checked_add(SIZE)?))
            }
        }
    }

    /// The first place at or behind `from` whose stack is not below `key`; all those before `from` have to be.
    pub fn find(&mut self, from: usize, key: Key) -> usize {
        let mut is_below = |index: usize| self.get(index).is_some_and(|r| r.key() < key);
        // The place looked for is near: steps that double, then halves.
        let (mut low, mut step) = (from, 1);
        while is_below(low + step - 1) {
            low += step;
            step *= 2;
        }
        let mut high = low + step - 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_below(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Sorted pieces as one sorted list.
fn file_of(pieces: &[Vec<Ref>]) -> std::io::Result<MappedFile> {
    let mut out = BufWriter::with_capacity(256 << 10, temporary::file()?);
    let mut rest: Vec<_> = pieces.iter().map(|piece| piece.iter()).collect();
    let next = |(index, rest): (usize, &std::slice::Iter<'_, Ref>)| {
        rest.as_slice().first().map(|first| Reverse((first.place_in_order(), index)))
    };
    let mut heap: BinaryHeap<_> = rest.iter().enumerate().filter_map(next).collect();
    while let Some(Reverse((_, index))) = heap.pop() {
        let Some(piece) = rest.get_mut(index) else { continue };
        if let Some(stack) = piece.next() {
            out.write_all(&stack.bytes())?;
        }
        heap.extend(next((index, &*piece)));
    }
    MappedFile::temporary(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third tick has no stack, every other two of them.
    fn many(count: u32) -> Vec<Ref> {
        let one = |n: u32| Ref {
            ticks: i64::from(n / 2 * 3) - 1000,
            place: u64::from(n) << 33,
            thread_or_ordinal: n % 2 * 7,
            carrier: n,
            len: n as u16,
            part: [Part::Kernel, Part::User, Part::Runtime][n as usize % 3],
            narrow: n.is_multiple_of(5),
            lane: (n % 7) as u16,
        };
        (0..count).rev().map(one).collect()
    }

    #[test]
    fn a_list_in_a_file_is_that_in_memory() {
        let mut sorted = many(IN_MEMORY as u32 + 1);
        sorted.sort_by_key(Ref::key);
        let noted = |count: u32| {
            let mut noted = Noted::default();
            many(count).into_iter().for_each(|stack| noted.push(stack));
            assert_eq!(noted.len(), count as usize);
            noted
        };
        let mut refs = Refs::sorted(noted(IN_MEMORY as u32 + 1));
        assert!(matches!(refs.list, List::File(_)) && matches!(Refs::sorted(noted(9)).list, List::Memory(_)));
        assert!((0..sorted.len()).all(|n| refs.get(n) == Some(sorted[n])));
        assert_eq!(refs.get(sorted.len()), None);
        for (from, wanted) in [(0, 0), (0, 1), (5, 5), (5, 1000), (1000, sorted.len() - 1)] {
            let key = sorted[wanted].key();
            assert_eq!(refs.find(from, key), wanted.max(from));
            let between = (key.0 + 1, 0, Part::Kernel, 0);
            assert_eq!(refs.find(from, between), sorted.partition_point(|r| r.key() < between));
        }
        assert_eq!(refs.find(7, (i64::MAX, 0, Part::User, 0)), sorted.len());
        assert_eq!(Refs::default().find(0, (0, 0, Part::User, 0)), 0);
    }
}
