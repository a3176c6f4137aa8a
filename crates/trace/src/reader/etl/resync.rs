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

/// Bytes that are looked at before pages are given back.
const STEP: usize = 2 << 20;

/// Looks for buffers in a log.
pub struct Finder<'m> {
    /// The file up to the end of the log.
    pub file: &'m [u8],
    /// Bytes of an expanded buffer.
    pub buffer_size: usize,
}

impl Finder<'_> {
    /// Whether a buffer may begin at a place: what its header says is possible, or there is no room for a header.
    pub fn may_be_header(&self, at: usize) -> bool {
        match Buffer::parse(self.file.get(at..).unwrap_or_default()) {
            Ok((_, buffer)) => (HEADER..=MAX_BUFFER).contains(&(buffer.size as usize)) && buffer.kind < KINDS,
            Err(_) => true,
        }
    }

    /// The first place in a range at which a buffer begins for certain.
    pub fn find(&self, range: Range<usize>) -> Option<usize> {
        range.into_iter().find(|at| self.is_buffer(*at))
    }

    /// The first place behind `at` at which a buffer begins for certain. Pages that were looked at are given back.
    pub fn find_behind(&self, at: usize, map: &MappedFile) -> Option<usize> {
        (at + 1..self.file.len()).step_by(STEP).find_map(|from| {
            map.release(from as u64);
            self.find(from..self.file.len().min(from + STEP))
        })
    }

    fn is_buffer(&self, at: usize) -> bool {
        let rest = self.file.get(at..).unwrap_or_default();
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
        let ends = next == self.file.len() || next < self.file.len() && self.may_be_header(next);
        let known = buffer.kind < KINDS && buffer.flags & !FLAGS == 0 && buffer.sequence >= 0;
        sizes && valid >= HEADER && known && begins && ends
    }
}
