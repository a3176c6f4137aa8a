//! Stacks of the current region by id. They die at every sequence point.
//! Source: `NetTraceFormat_v5.md`, "StackBlock Object"; `NetTraceFormat.md`, the same section.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::bytes::{ParseError, fail, inner, take, u32le};
use crate::reader::Stack;
use crate::source::{Chunk, Source};

/// No more stacks than this are kept in one region, and no more owned bytes: what comes behind has no stack.
const MAX_STACKS: usize = 1 << 20;
const MAX_OWNED: usize = 32 << 20;

/// Stack id to addresses.
#[derive(Default)]
pub struct Stacks<'a> {
    by_id: HashMap<u32, Entry, RandomState>,
    chunks: Vec<Chunk<'a>>,
    owned: usize,
    next_key: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    chunk: u32,
    start: u32,
    len: u32,
    key: u32,
}

/// How the reading of a stack block went.
pub struct Read {
    /// The parse error that ended it early.
    pub error: Option<ParseError>,
    /// Stacks that did not fit into the bound.
    pub refused: u64,
    /// Stacks announced but not there, or bytes left over behind the announced ones.
    pub miscounted: bool,
}

impl<'a> Stacks<'a> {
    /// Reads a stack block.
    pub fn block(&mut self, chunk: Chunk<'a>) -> Read {
        let mut read = Read { error: None, refused: 0, miscounted: false };
        let number = self.chunks.len() as u32;
        let first_key = self.next_key;
        if let Err(e) = self.parse(&chunk, number, &mut read) {
            read.error = Some(inner(e));
        }
        if self.next_key != first_key {
            if let Chunk::Owned(bytes) = &chunk {
                self.owned += bytes.len();
            }
            self.chunks.push(chunk);
        }
        read
    }

    fn parse(&mut self, block: &[u8], chunk: u32, read: &mut Read) -> Result<(), nom::Err<ParseError>> {
        let (rest, mut id) = u32le("First Id")(block)?;
        let (mut rest, count) = u32le("Count")(rest)?;
        if count as usize > rest.len() / 4 {
            read.miscounted = true;
        }
        let full = self.owned > MAX_OWNED;
        for _ in 0..count {
            if rest.is_empty() {
                read.miscounted = true;
                break;
            }
            let (body, size) = u32le("StackSize")(rest)?;
            let start = block.len() - body.len();
            let (next, addresses) = take(size as usize, "Stack")(body)?;
            rest = next;
            if full || self.by_id.len() >= MAX_STACKS {
                read.refused += 1;
            } else {
                let key = self.next_key;
                self.next_key = self.next_key.wrapping_add(1);
                let (start, len) = (start as u32, addresses.len() as u32);
                self.by_id.insert(id, Entry { chunk, start, len, key });
            }
            id = id.wrapping_add(1);
        }
        if !rest.is_empty() {
            read.miscounted = true;
            return Err(fail(rest.len(), "StackBlock", "the end of the block behind its last stack"));
        }
        Ok(())
    }

    /// The stack with this id; `None` when the region has none.
    #[inline]
    pub fn get(&self, id: u32) -> Option<Stack<'_>> {
        let entry = self.by_id.get(&id)?;
        let bytes = self.chunks.get(entry.chunk as usize)?;
        let start = entry.start as usize;
        let addresses = bytes.get(start..start + entry.len as usize)?;
        Some(Stack { addresses, key: Some(entry.key) })
    }

    /// A sequence point: every id is void.
    pub fn forget(&mut self, source: &mut Source<'a>) {
        self.by_id.clear();
        self.owned = 0;
        self.next_key = 0;
        for chunk in self.chunks.drain(..) {
            source.recycle(chunk);
        }
    }
}
