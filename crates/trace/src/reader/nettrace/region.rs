//! Puts the events of one region (between two sequence points) into time order with bounded memory.
//!
//! ```text
//!  file:   [block: thread A 10 15 20][block: thread B 12 13 14] | sequence point | ...
//!  region:  A10 A15 A20 B12 B13 B14   --sort-->  10 12 13 14 15 20   --> visitor
//! ```
//! Events hold positions in their blocks, not copies. An event marked as sorted lets everything older go at once, so
//! that a long region does not have to be held as a whole; past a hard limit the region is flushed as it is.

use std::collections::VecDeque;

use crate::source::{Chunk, Source};

/// Where an event lies and what its header said; 48 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub ticks: i64,
    pub event_type: u32,
    pub thread: u32,
    pub capture_thread: u32,
    pub processor: u32,
    pub stack_id: u32,
    pub stack_epoch: u32,
    pub labels: u32,
    pub chunk: u32,
    pub start: u32,
    pub len: u32,
}

/// From this many waiting events on, a sorted event flushes what is older.
const PARTIAL: usize = 16 << 10;
/// No more than this many events wait (48 MB).
const MAX_EVENTS: usize = 1 << 20;
/// No more than this many bytes of owned blocks wait.
const MAX_OWNED: usize = 48 << 20;

/// The blocks of the current region and the events in them that were not delivered yet.
#[derive(Default)]
pub struct Region<'a> {
    pub events: Vec<Pending>,
    chunks: VecDeque<(u64, Chunk<'a>)>,
    first_chunk: u32,
    owned: usize,
    keys: Vec<(i64, u32)>,
    next_partial: usize,
    in_order: bool,
}

impl<'a> Region<'a> {
    pub fn new() -> Region<'a> {
        Region { next_partial: PARTIAL, in_order: true, ..Region::default() }
    }

    /// Announces a block that begins at `offset`; the number goes into [`Pending::chunk`].
    pub fn add_chunk(&mut self, offset: u64) -> u32 {
        let number = self.end_of_chunks();
        self.chunks.push_back((offset, Chunk::Borrowed(&[])));
        number
    }

    fn end_of_chunks(&self) -> u32 {
        self.first_chunk.wrapping_add(self.chunks.len() as u32)
    }

    /// Keeps the bytes of the block added last, once its events are read; gives them back when no event of them waits.
    pub fn fill_last_chunk(&mut self, chunk: Chunk<'a>) -> Option<Chunk<'a>> {
        let number = self.end_of_chunks().wrapping_sub(1);
        if self.events.last().is_none_or(|e| e.chunk != number) {
            self.chunks.pop_back();
            return Some(chunk);
        }
        if let Chunk::Owned(bytes) = &chunk {
            self.owned += bytes.len();
        }
        if let Some(last) = self.chunks.back_mut() {
            last.1 = chunk;
        }
        None
    }

    /// The bytes of a block and its offset in the file.
    #[inline]
    pub fn chunk(&self, chunk: u32) -> (u64, &[u8]) {
        match self.chunks.get(chunk.wrapping_sub(self.first_chunk) as usize) {
            Some((offset, bytes)) => (*offset, bytes),
            None => (0, &[]),
        }
    }

    #[inline]
    pub fn push(&mut self, event: Pending) {
        if let Some(last) = self.events.last()
            && last.ticks > event.ticks
        {
            self.in_order = false;
        }
        self.events.push(event);
    }

    /// The time of the newest event that waits.
    pub fn newest(&self) -> Option<i64> {
        self.events.iter().map(|event| event.ticks).max()
    }

    /// Whether a sorted event should flush what is older now.
    #[inline]
    pub fn wants_partial_flush(&self) -> bool {
        self.events.len() >= self.next_partial || self.owned > MAX_OWNED / 4
    }

    /// Whether the region has to be flushed although it is not known to be complete.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.events.len() >= MAX_EVENTS || self.owned > MAX_OWNED
    }

    /// Events in time order, equal times in file order, up to and including `until`.
    pub fn sorted_until(&mut self, until: i64) -> Vec<Pending> {
        let mut ready = Vec::new();
        if self.in_order {
            let end = self.events.partition_point(|e| e.ticks <= until);
            if end == self.events.len() {
                std::mem::swap(&mut ready, &mut self.events);
            } else {
                ready.extend(self.events.drain(..end));
            }
            return ready;
        }
        self.keys.clear();
        self.keys.extend(self.events.iter().enumerate().map(|(i, e)| (e.ticks, i as u32)));
        self.keys.sort_by_key(|(ticks, _)| *ticks);
        let end = self.keys.partition_point(|(ticks, _)| *ticks <= until);
        ready.extend(self.keys.iter().take(end).filter_map(|(_, i)| self.events.get(*i as usize)));
        self.events.retain(|e| e.ticks > until);
        self.in_order = self.events.is_sorted_by_key(|e| e.ticks);
        ready
    }

    /// Gives the vector of [`Region::sorted_until`] back and lets go of blocks that no event needs.
    pub fn delivered(&mut self, mut ready: Vec<Pending>, source: &mut Source<'a>) {
        if self.events.is_empty() {
            ready.clear();
            self.events = ready;
            self.in_order = true;
        }
        // The number of blocks at the front in which no event waits; numbers may have wrapped around.
        let first = self.first_chunk;
        let unused = self.events.iter().map(|e| e.chunk.wrapping_sub(first) as usize).min();
        for (_, chunk) in self.chunks.drain(..unused.unwrap_or(self.chunks.len()).min(self.chunks.len())) {
            self.first_chunk = self.first_chunk.wrapping_add(1);
            if let Chunk::Owned(bytes) = &chunk {
                self.owned -= bytes.len();
            }
            source.recycle(chunk);
        }
        let still_needed = self.chunks.front().map_or(source.position(), |(offset, _)| *offset);
        // A very long region gives its pages back all the same; they return when they are needed.
        source.release(still_needed.max(source.position().saturating_sub(8 << 20)));
        self.next_partial = self.events.len() + PARTIAL;
    }
}
