//! A queue of rows with bounded memory: what does not fit waits in an unnamed temporary file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};

use tracequet_trace::source::temporary;

/// Rows that a queue holds in memory at most (16 bytes each), in front of the file and behind it together.
pub const MAX_IN_MEMORY: usize = 1 << 18;

/// Rows of two numbers, first in, first out.
///
/// ```text
///   pop <- front (memory) <- file <- back (memory) <- push
/// ```
#[derive(Debug)]
pub struct SpillQueue {
    front: VecDeque<[u64; 2]>,
    back: Vec<[u64; 2]>,
    file: Option<File>,
    /// Bytes of the file that were read, and that were written.
    read: u64,
    written: u64,
    /// Rows in one part of memory.
    part: usize,
}

impl Default for SpillQueue {
    fn default() -> Self {
        SpillQueue {
            front: VecDeque::new(),
            back: Vec::new(),
            file: None,
            read: 0,
            written: 0,
            part: MAX_IN_MEMORY / 2,
        }
    }
}

const ROW: usize = 16;

impl SpillQueue {
    /// From now on at most this many rows are in memory.
    pub fn limit(&mut self, rows: usize) {
        self.part = (rows / 2).max(1);
    }

    /// Whether no row waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.back.is_empty() && self.read == self.written
    }

    /// Adds a row. An error of the file means that rows are lost.
    #[inline]
    pub fn push(&mut self, row: [u64; 2]) -> Result<()> {
        if self.back.is_empty() && self.read == self.written && self.front.len() < self.part {
            self.front.push_back(row);
            return Ok(());
        }
        self.back.push(row);
        if self.back.len() >= self.part { self.spill() } else { Ok(()) }
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        let file = if let Some(file) = &mut self.file { file } else { self.file.insert(temporary::file()?) };
        if self.read == self.written {
            (self.read, self.written) = (0, 0);
        }
        let bytes: Vec<u8> = self.back.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
        file.seek(SeekFrom::Start(self.written))?;
        file.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        self.back.clear();
        Ok(())
    }

    /// The row that waits longest, to be changed in place.
    #[inline]
    pub fn front(&mut self) -> Result<Option<&mut [u64; 2]>> {
        if self.front.is_empty() && !self.is_empty() {
            self.refill()?;
        }
        Ok(self.front.front_mut())
    }

    /// Takes the row that waits longest.
    #[inline]
    pub fn pop(&mut self) -> Result<Option<[u64; 2]>> {
        if self.front.is_empty() && !self.is_empty() {
            self.refill()?;
        }
        Ok(self.front.pop_front())
    }

    #[cold]
    fn refill(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file
            && self.read < self.written
        {
            let len = (self.written - self.read).min((self.part * ROW) as u64);
            let mut bytes = vec![0; len as usize];
            file.seek(SeekFrom::Start(self.read))?;
            file.read_exact(&mut bytes)?;
            self.read += len;
            let numbers = bytes.chunks_exact(8).filter_map(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b));
            let mut numbers = numbers.fuse();
            while let (Some(first), Some(second)) = (numbers.next(), numbers.next()) {
                self.front.push_back([first, second]);
            }
        } else {
            self.front.extend(self.back.drain(..));
        }
        Ok(())
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.file = None;
        (self.read, self.written) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_the_order_in_which_they_went_in() {
        let mut queue = SpillQueue::default();
        queue.limit(100);
        let (mut next_in, mut next_out) = (0u64, 0u64);
        // Runs of different lengths, so that rows pass through memory alone and through the file.
        for run in [30, 1000, 7, 260, 51, 3000, 1] {
            for _ in 0..run {
                queue.push([next_in, next_in * 3]).unwrap();
                next_in += 1;
                assert!(
                    queue.front.len() <= 50 && queue.back.len() <= 50,
                    "{} {}",
                    queue.front.len(),
                    queue.back.len()
                );
            }
            for _ in 0..run * 2 / 3 {
                assert_eq!(queue.pop().unwrap(), Some([next_out, next_out * 3]));
                next_out += 1;
            }
        }
        while let Some(row) = queue.pop().unwrap() {
            assert_eq!(row, [next_out, next_out * 3]);
            next_out += 1;
        }
        assert_eq!(next_out, next_in);
        assert!(queue.is_empty());
    }
}
