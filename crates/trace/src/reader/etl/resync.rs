//! Finds the next buffer behind damage to the chain.
//!
//! A buffer has no mark. It is known by what its header says: a size of this log, valid bytes that fit into it, a type
//! and flags that exist, an event at its beginning, and another buffer, or the end, behind it.

use std::ops::Range;

use super::buffer::{Buffer, HEADER, MAX_BUFFER};
use crate::source::MappedFile;

/// Types of buffers are smaller numbers.
const KINDS: u16 = 8;
/// Flags of buffers that are known.
const FLAGS: u16 = 0x7F;

/// Bytes that are looked at together: few at first, since the next buffer is often near.
const FIRST_STEP: usize = 4 << 10;
const STEP: usize = 2 << 20;
/// Bytes by which a buffer is known: its header, and the marker of its first event.
const BEGINNING: usize = HEADER + 4;

/// Looks for buffers in a log.
pub struct Finder<'m> {
    /// The file.
    pub file: &'m MappedFile,
    /// The end of the log in it.
    pub end: usize,
    /// Bytes of an expanded buffer.
    pub buffer_size: usize,
}

impl Finder<'_> {
    /// Whether a buffer may begin at a place: what its header says is possible, or there is no room for a header.
    pub fn may_be_header(&self, at: usize) -> bool {
        match Buffer::parse(&self.file.part(at..self.end.min(at.saturating_add(HEADER)))) {
            Ok((_, buffer)) => (HEADER..=MAX_BUFFER).contains(&(buffer.size as usize)) && buffer.kind < KINDS,
            Err(_) => true,
        }
    }

    /// The first place in a range at which a buffer begins for certain. Pages that were looked at are given back.
    pub fn find(&self, range: Range<usize>) -> Option<usize> {
        let (mut from, end, mut step) = (range.start, range.end.min(self.end), FIRST_STEP);
        while from < end {
            self.file.release(from as u64);
            let places = step.min(end - from);
            let bytes = self.file.part(from..self.end.min(from + places + BEGINNING));
            let is_buffer = |at: &usize| self.is_buffer(from + at, bytes.get(*at..).unwrap_or_default());
            if let Some(at) = (0..places).find(is_buffer) {
                return Some(from + at);
            }
            from += places;
            step = STEP.min(2 * step);
        }
        None
    }

    /// Whether a buffer begins at a place, by the bytes from there on.
    fn is_buffer(&self, at: usize, rest: &[u8]) -> bool {
        // Cheap, for the walk over many bytes.
        let Some(size) = rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize) else { return false };
        if size < HEADER || size > self.buffer_size.saturating_add(HEADER) {
            return false;
        }
        let Ok((body, buffer)) = Buffer::parse(rest) else { return false };
        let valid = buffer.valid as usize;
        let sizes = match buffer.is_compressed() {
            true => valid <= self.buffer_size,
            false => size == self.buffer_size && valid <= size,
        };
        let begins = match body {
            _ if buffer.is_compressed() || valid == HEADER => true,
            [_, _, _, marker, ..] => matches!(marker, 0xC0 | 0x90),
            _ => false,
        };
        let next = at + size;
        let ends = next == self.end || next < self.end && self.may_be_header(next);
        let known = buffer.kind < KINDS && buffer.flags & !FLAGS == 0 && buffer.sequence >= 0;
        sizes && valid >= HEADER && known && begins && ends
    }
}
