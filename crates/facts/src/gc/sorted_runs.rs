//! Sorts the rows of one collection by their first number with bounded memory: what does not fit is spilled to an
//! unnamed temporary file as sorted runs and merged at the end.
//!
//! When that file cannot be made or written, what it holds already is kept, and nothing more is written to it. Rows
//! then stay in memory up to a second bound, and only those beyond it are lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use tracequet_trace::source::temporary;

/// Rows held in memory per collection and kind before a run is spilled (16 to 24 bytes each).
const MAX_ROWS: usize = 1 << 18;

/// Rows held in memory when they cannot be spilled (32 to 48 MB).
const MAX_UNSPILLED: usize = 8 * MAX_ROWS;

/// Rows of `N` numbers, pushed in any order.
#[derive(Debug)]
pub struct Runs<const N: usize> {
    rows: Vec<[u64; N]>,
    spilled: Option<Spilled>,
    /// Why nothing is spilled any more.
    failed: Option<std::io::Error>,
    max_rows: usize,
    max_unspilled: usize,
    new_file: fn() -> std::io::Result<File>,
}

#[derive(Debug)]
struct Spilled {
    file: File,
    /// Rows of each run.
    runs: Vec<u64>,
}

impl<const N: usize> Default for Runs<N> {
    fn default() -> Self {
        let (max_rows, max_unspilled) = (MAX_ROWS, MAX_UNSPILLED);
        Runs { rows: Vec::new(), spilled: None, failed: None, max_rows, max_unspilled, new_file: temporary::file }
    }
}

impl<const N: usize> Runs<N> {
    /// Adds rows. An error means that some of them are lost, because they can neither be spilled nor held in memory.
    pub fn extend(&mut self, mut rows: impl Iterator<Item = [u64; N]>) -> std::io::Result<()> {
        if let Some(error) = &self.failed {
            let space = self.max_unspilled.saturating_sub(self.rows.len());
            self.rows.extend(rows.by_ref().take(space));
            return match rows.next() {
                Some(_) => Err(std::io::Error::new(error.kind(), error.to_string())),
                None => Ok(()),
            };
        }
        self.rows.extend(rows);
        if self.rows.len() >= self.max_rows {
            // Tried once: a full disk stays full, and each attempt sorts all rows.
            self.failed = self.spill().err();
        }
        Ok(())
    }

    /// The number of rows.
    pub fn count(&self) -> u64 {
        let spilled = self.spilled.iter().flat_map(|s| &s.runs);
        spilled.sum::<u64>() + self.rows.len() as u64
    }

    fn spill(&mut self) -> std::io::Result<()> {
        // The stable sort merges runs that are in order already, and there are some: each event brings one.
        self.rows.sort();
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            None => self.spilled.insert(Spilled { file: (self.new_file)()?, runs: Vec::new() }),
        };
        let mut out = std::io::BufWriter::with_capacity(1 << 20, &mut spilled.file);
        for number in self.rows.iter().flatten() {
            out.write_all(&number.to_le_bytes())?;
        }
        out.flush()?;
        drop(out);
        spilled.runs.push(self.rows.len() as u64);
        self.rows.clear();
        Ok(())
    }

    /// Hands all rows to `each` in order and empties this; the memory is kept for the next collection.
    pub fn drain(&mut self, mut each: impl FnMut(&[u64; N])) -> std::io::Result<()> {
        if !self.rows.is_sorted() {
            self.rows.sort();
        }
        match self.spilled.take() {
            None => self.rows.iter().for_each(&mut each),
            Some(spilled) => merge(spilled, &self.rows, &mut each)?,
        }
        self.rows.clear();
        self.failed = None;
        Ok(())
    }
}

/// Runs of one file, each read through a window of its own.
struct Windows {
    file: File,
    windows: Vec<Window>,
}

struct Window {
    /// Offset of the first byte that is not in the buffer yet, and how many bytes of the run are behind it.
    at: u64,
    left: u64,
    buffer: Vec<u8>,
    next: usize,
}

const WINDOW: u64 = 6 << 10;

impl Windows {
    fn next<const N: usize>(&mut self, run: usize) -> std::io::Result<Option<[u64; N]>> {
        let Some(window) = self.windows.get_mut(run) else { return Ok(None) };
        if window.next >= window.buffer.len() {
            let len = window.left.min(WINDOW * N as u64);
            if len == 0 {
                return Ok(None);
            }
            window.buffer.clear();
            self.file.seek(SeekFrom::Start(window.at))?;
            (&mut self.file).take(len).read_to_end(&mut window.buffer)?;
            window.at += len;
            window.left -= len;
            window.next = 0;
        }
        let mut row = [0u64; N];
        for number in &mut row {
            let bytes = window.buffer.get(window.next..).and_then(|rest| rest.first_chunk());
            *number = u64::from_le_bytes(*bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
            window.next += 8;
        }
        Ok(Some(row))
    }
}

fn merge<const N: usize>(spilled: Spilled, last: &[[u64; N]], each: &mut impl FnMut(&[u64; N])) -> std::io::Result<()> {
    let mut windows = Windows { file: spilled.file, windows: Vec::new() };
    let mut at = 0u64;
    for rows in spilled.runs {
        let left = rows * 8 * N as u64;
        windows.windows.push(Window { at, left, buffer: Vec::new(), next: 0 });
        at += left;
    }
    let mut last = last.iter().copied();
    let in_memory = windows.windows.len();
    let mut heap = BinaryHeap::new();
    for run in 0..=in_memory {
        let row = if run == in_memory { last.next() } else { windows.next::<N>(run)? };
        heap.extend(row.map(|row| Reverse((row, run))));
    }
    while let Some(Reverse((row, run))) = heap.pop() {
        each(&row);
        let next = if run == in_memory { last.next() } else { windows.next::<N>(run)? };
        heap.extend(next.map(|row| Reverse((row, run))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of which the first numbers come in no order.
    fn shuffled(count: u64) -> Vec<[u64; 2]> {
        (0..count).map(|n| [n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40, n]).collect()
    }

    fn drained(runs: &mut Runs<2>) -> Vec<[u64; 2]> {
        let mut got = Vec::new();
        runs.drain(|row| got.push(*row)).unwrap();
        got
    }

    #[test]
    fn without_a_temporary_file_rows_stay_in_memory_up_to_a_bound() {
        fn none() -> std::io::Result<File> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        let (max_rows, max_unspilled) = (1000, 5000);
        let mut runs = Runs::<2> { max_rows, max_unspilled, new_file: none, ..Runs::default() };
        let rows = shuffled(7000);
        let mut failures = 0;
        for (part, number) in rows.chunks(100).zip(1..) {
            let added = runs.extend(part.iter().copied());
            assert_eq!(added.is_err(), number * 100 > max_unspilled, "what is held is not said to be lost");
            failures += usize::from(added.is_err_and(|e| e.kind() == std::io::ErrorKind::StorageFull));
        }
        assert_eq!((failures, runs.count()), (20, 5000));
        let mut expected = rows[..5000].to_vec();
        expected.sort_unstable();
        assert_eq!(drained(&mut runs), expected);
        // The next collection tries again.
        runs.new_file = temporary::file;
        rows.chunks(100).for_each(|part| runs.extend(part.iter().copied()).unwrap());
        assert_eq!(drained(&mut runs).len(), 7000);
    }

    #[test]
    fn a_write_that_fails_neither_doubles_nor_drops_rows() {
        fn named() -> std::io::Result<File> {
            let file = tempfile::NamedTempFile::new()?;
            file.reopen()
        }
        let mut runs = Runs::<2> { max_rows: 1000, new_file: named, ..Runs::default() };
        let rows = shuffled(4500);
        for (part, number) in rows.chunks(500).zip(0..) {
            if number == 4 {
                // Half of a run gets to the file before the disk is full; what is written now fails.
                let spilled = runs.spilled.as_mut().unwrap();
                assert_eq!(spilled.runs, [1000, 1000]);
                spilled.file.write_all(&[0xAA; 4000]).unwrap();
                let read_only = tempfile::NamedTempFile::new().unwrap();
                spilled.file.seek(SeekFrom::Start(0)).unwrap();
                std::io::copy(&mut spilled.file, &mut read_only.as_file()).unwrap();
                spilled.file = File::open(read_only.path()).unwrap();
            }
            runs.extend(part.iter().copied()).unwrap();
        }
        assert!(runs.failed.is_some());
        let mut expected = rows;
        expected.sort_unstable();
        assert_eq!(drained(&mut runs), expected);
    }

    #[test]
    fn spilled_rows_come_back_in_one_order() {
        let mut runs = Runs::<2> { max_rows: 1000, ..Runs::default() };
        let mut state = 1u64;
        let mut expected = Vec::new();
        for _ in 0..100 {
            let mut rows = Vec::new();
            for _ in 0..77 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                rows.push([state >> 40, state & 0xFF]);
            }
            expected.extend(rows.clone());
            runs.extend(rows.into_iter()).unwrap();
        }
        expected.sort();
        let mut got = Vec::new();
        runs.drain(|row| got.push(*row)).unwrap();
        assert_eq!(got, expected);
        let mut again = 0;
        runs.drain(|_| again += 1).unwrap();
        assert_eq!(again, 0, "drained means empty");
    }
}
