//! Stacks of the current region by id. They die at every sequence point.
//! Source: `NetTraceFormat_v5.md`, "StackBlock Object"; `NetTraceFormat.md`, the same section.

use nom::Parser;

use crate::bytes::{ParseError, inner, items, refuse, take, u32le};
use crate::map::Map;
use crate::reader::Stack;
use crate::source::{Chunk, Source};

/// No more stacks than this are kept in one region, and no more owned bytes: what comes behind has no stack.
const MAX_STACKS: usize = 1 << 20;
const MAX_OWNED: usize = 32 << 20;
/// Writers write the empty stack once in a region. This many in a row are a hole of zeros.
const MAX_EMPTY: u32 = 8;
/// From this many stacks on, it is no coincidence that the ids behind a gap continue those before it.
const MIN_TO_GO_ON: u32 = 16;

/// Stack id to addresses.
///
/// A gap in the file may hide a sequence point, behind which the ids begin again. So each gap begins an epoch: events
/// refer to the ids of the epoch that they were read in, and an id of an earlier one means nothing behind the gap. When
/// the first stack block behind a gap goes on with the next id, there was no sequence point, and the earlier epoch goes
/// on.
#[derive(Default)]
pub struct Stacks<'a> {
    by_id: Map<(u32, u32), Entry>,
    chunks: Vec<Chunk<'a>>,
    owned: usize,
    next_key: u32,
    /// The epoch that events read now belong to.
    pub epoch: u32,
    /// The id behind the last one of this epoch.
    next_id: u32,
    /// Epoch and next id before a gap behind which no stack block was read yet.
    before_gap: Option<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Entry {
    chunk: u32,
    start: u32,
    len: u32,
    key: u32,
}

/// The result of reading a stack block.
#[derive(Default)]
pub struct StackBlockRead {
    /// The parse error that ended it early, and its offset in the file.
    pub error: Option<(u64, ParseError)>,
    /// Stacks that did not fit into the bound.
    pub refused: u64,
    /// Whether fewer stacks were there than announced.
    pub miscounted: bool,
}

impl<'a> Stacks<'a> {
    /// Reads a stack block that begins at `start` in the file.
    pub fn block(&mut self, chunk: Chunk<'a>, start: u64) -> StackBlockRead {
        let mut read = StackBlockRead::default();
        let number = self.chunks.len() as u32;
        let first_key = self.next_key;
        let error = self.parse(&chunk, number, &mut read).err().map(inner);
        read.error = error.map(|error| (error.offset_in(start, &chunk), error));
        if self.next_key != first_key {
            if let Chunk::Owned(bytes) = &chunk {
                self.owned += bytes.len();
            }
            self.chunks.push(chunk);
        }
        read
    }

    fn parse(&mut self, block: &[u8], chunk: u32, read: &mut StackBlockRead) -> Result<(), nom::Err<ParseError>> {
        let (rest, (first_id, count)) = (u32le("FirstId"), u32le("Count")).parse(block)?;
        self.end_gap(first_id);
        let mut stacks = items(rest, u32le("StackSize").flat_map(|size| take(size as usize, "Stack")));
        let full = self.owned > MAX_OWNED;
        let (mut found, mut empty) = (0u32, 0u32);
        for (nth, addresses) in (0..count).zip(&mut stacks) {
            found += 1;
            let id = first_id.wrapping_add(nth);
            empty = if addresses.is_empty() { empty + 1 } else { 0 };
            if empty == MAX_EMPTY {
                // The hole may have begun in the stack before.
                for back in 1..=MAX_EMPTY {
                    self.by_id.remove(&(self.epoch, id.wrapping_sub(back)));
                }
                return Err(refuse(addresses, "StackSize", "stacks and not a run of zeros"));
            }
            self.next_id = id.wrapping_add(1);
            if full || self.by_id.len() >= MAX_STACKS {
                read.refused += 1;
                continue;
            }
            let key = self.next_key;
            self.next_key = self.next_key.wrapping_add(1);
            let start = addresses.as_ptr().addr().saturating_sub(block.as_ptr().addr()) as u32;
            self.by_id.insert((self.epoch, id), Entry { chunk, start, len: addresses.len() as u32, key });
        }
        let (left, ()) = stacks.finish()?;
        read.miscounted = found < count || !left.is_empty();
        if left.is_empty() { Ok(()) } else { Err(refuse(left, "StackBlock", "its end behind the last stack")) }
    }

    /// Decides, with the first stack block behind a gap, whether the ids from before the gap are still valid.
    fn end_gap(&mut self, first_id: u32) {
        if let Some((epoch, next_id)) = self.before_gap.take()
            && first_id == next_id
            && next_id >= MIN_TO_GO_ON
        {
            self.epoch = epoch;
        }
    }

    /// The stack with this id; `None` when the region has none.
    #[inline]
    pub fn get(&self, epoch: u32, id: u32) -> Option<Stack<'_>> {
        let entry = self.by_id.get(&(epoch, id))?;
        let bytes = self.chunks.get(entry.chunk as usize)?;
        let start = entry.start as usize;
        let addresses = bytes.get(start..start + entry.len as usize)?;
        Some(Stack { addresses, key: Some(entry.key) })
    }

    /// Bytes of the file are missing here, and a sequence point may be among them.
    pub fn gap(&mut self) {
        self.before_gap.get_or_insert((self.epoch, self.next_id));
        self.epoch = self.epoch.wrapping_add(1);
        self.next_id = 0;
    }

    /// A sequence point: every id is void.
    pub fn forget(&mut self, source: &mut Source<'a>) {
        self.by_id.clear();
        self.owned = 0;
        self.next_key = 0;
        self.next_id = 0;
        self.before_gap = None;
        for chunk in self.chunks.drain(..) {
            source.recycle(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of two stacks of one address.
    fn block(first_id: u32) -> Chunk<'static> {
        let stack = [8u32.to_le_bytes().as_slice(), &[7; 8]].concat();
        Chunk::Owned([&first_id.to_le_bytes(), &2u32.to_le_bytes(), stack.as_slice(), &stack].concat())
    }

    #[test]
    fn stacks_and_their_bytes_have_a_bound() {
        // 32 MB may be passed by one block.
        let mut stacks = Stacks { owned: 32 << 20, ..Stacks::default() };
        assert_eq!((stacks.block(block(1), 0).refused, stacks.block(block(3), 0).refused), (0, 2));
        assert!(stacks.get(0, 2).is_some() && stacks.get(0, 3).is_none());

        let mut stacks = Stacks::default();
        let entry = Entry { chunk: 0, start: 0, len: 0, key: 0 };
        stacks.by_id.extend((1..1 << 20).map(|id| ((9, id), entry)));
        assert_eq!(stacks.block(block(1), 0).refused, 1);
        assert!(stacks.get(0, 1).is_some() && stacks.get(0, 2).is_none());
    }
}
