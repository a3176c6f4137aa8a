//! Bytes that are lent or were read, and how they are read.

use std::io::Read;

/// The first bytes that identify the format of a recording.
pub const HEAD: usize = 128;

/// Bytes of one frame, borrowed from a map or owned.
#[derive(Debug)]
pub enum Chunk<'a> {
    /// Part of a mapped file.
    Borrowed(&'a [u8]),
    /// Read from a stream.
    Owned(Vec<u8>),
}

impl Chunk<'_> {
    /// Keeps the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Chunk::Borrowed(bytes) => *bytes = bytes.get(..len).unwrap_or(bytes),
            Chunk::Owned(bytes) => bytes.truncate(len),
        }
    }
}

impl std::ops::Deref for Chunk<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Chunk::Borrowed(bytes) => bytes,
            Chunk::Owned(bytes) => bytes,
        }
    }
}

pub(super) fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut have = 0;
    while let Some(rest) = buffer.get_mut(have..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}
