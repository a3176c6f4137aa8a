//! A file whose bytes can all be addressed because it is read by position, in a build without maps.

use std::fs::File;
use std::io::{Error, ErrorKind, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::chunk::{Chunk, read_up_to};

/// Smaller parts are read together with this many bytes behind them: many are near the one before.
const WINDOW: usize = 16 << 10;

/// Stands for the `Map` of a build with maps, and has the same functions.
pub struct Map {
    file: Mutex<Positioned>,
    len: usize,
    /// All bytes, once [`Map::whole`] was called.
    whole: OnceLock<Vec<u8>>,
}

struct Positioned {
    file: Arc<File>,
    /// Bytes that were read together, and where they begin.
    window: Vec<u8>,
    start: usize,
    failed: Option<Error>,
}

impl Positioned {
    fn read(&mut self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        let mut file = &*self.file;
        let sought = file.seek(SeekFrom::Start(range.start as u64));
        let read = sought.and_then(|_| read_up_to(&mut file, &mut bytes));
        let have = read.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            0
        });
        if have < bytes.len() {
            let offset = range.start + have;
            let message = format!("the file became shorter while it was read: bytes from {offset} on are missing");
            self.failed.get_or_insert_with(|| Error::new(ErrorKind::UnexpectedEof, message));
        }
        bytes.truncate(have);
        bytes
    }

    fn in_window(&self, range: &Range<usize>) -> Option<&[u8]> {
        self.window.get(range.start.checked_sub(self.start)?..range.end.checked_sub(self.start)?)
    }
}

impl Map {
    pub fn new(file: Arc<File>, len: usize) -> std::io::Result<Map> {
        let file = Positioned { file, window: Vec::new(), start: 0, failed: None };
        Ok(Map { file: Mutex::new(file), len, whole: OnceLock::new() })
    }

    fn file(&self) -> std::sync::MutexGuard<'_, Positioned> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All bytes, which are in memory from then on.
    pub fn whole(&self) -> &[u8] {
        self.whole.get_or_init(|| self.file().read(0..self.len))
    }

    /// The bytes of a range that lies in the file.
    pub fn part(&self, range: Range<usize>) -> Chunk<'_> {
        let mut file = self.file();
        if range.len() >= WINDOW {
            return Chunk::Owned(file.read(range));
        }
        if file.in_window(&range).is_none() {
            file.window = file.read(range.start..self.len.min(range.start + WINDOW));
            file.start = range.start;
        }
        let there = file.in_window(&range).unwrap_or(&file.window);
        Chunk::Owned(there.to_vec())
    }

    /// The first error, said once.
    pub fn take_error(&self) -> Option<Error> {
        self.file().failed.take()
    }

    pub fn drop_pages(&self, _: Range<usize>) {}

    pub fn expect_scattered_reads(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(bytes: &[u8]) -> (tempfile::NamedTempFile, Map) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let map = Map::new(Arc::new(File::open(file.path()).unwrap()), bytes.len()).unwrap();
        (file, map)
    }

    #[test]
    fn parts_are_those_of_the_file_wherever_they_lie() {
        let bytes: Vec<u8> = (0..3 * WINDOW as u32).flat_map(u32::to_le_bytes).collect();
        let (_file, map) = file_of(&bytes);
        let starts = [0, 5, WINDOW - 4, WINDOW, 7, 2 * WINDOW + 1, bytes.len() - 8, 0];
        for range in starts.into_iter().flat_map(|at| [0, 1, 8, WINDOW, 2 * WINDOW].map(|len| at..at + len)) {
            let range = range.start..range.end.min(bytes.len());
            assert!(map.part(range.clone())[..] == bytes[range.clone()], "{range:?}");
        }
        assert!(map.whole() == bytes && map.take_error().is_none());
    }

    #[test]
    fn a_file_that_shrinks_gives_what_is_left_and_an_error() {
        let (file, map) = file_of(&[7; 4 * WINDOW]);
        file.as_file().set_len(3 * WINDOW as u64).unwrap();
        assert_eq!(map.part(0..3 * WINDOW).len(), 3 * WINDOW);
        assert!(map.take_error().is_none());
        assert_eq!((map.part(WINDOW..4 * WINDOW).len(), map.part(4 * WINDOW - 8..4 * WINDOW).len()), (2 * WINDOW, 0));
        let error = map.take_error().map(|error| error.to_string()).unwrap();
        assert!(error.contains(&format!("bytes from {} on are missing", 3 * WINDOW)), "{error}");
        assert!(map.take_error().is_none());
    }
}
