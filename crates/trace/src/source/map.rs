//! A file whose bytes can all be addressed because it is mapped: the only `unsafe` code of this layer.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::Chunk;

/// An empty file has nothing to map.
pub struct Map(Option<memmap2::Mmap>);

impl Map {
    #[allow(unsafe_code, reason = "mapping a file")]
    pub fn new(file: Arc<File>, len: usize) -> std::io::Result<Map> {
        if len == 0 {
            return Ok(Map(None));
        }
        // SAFETY: the map is read-only and private to this process; that the file is not truncated meanwhile is the
        // documented condition of `MappedFile`.
        let map = unsafe { memmap2::Mmap::map(&*file)? };
        #[cfg(unix)]
        map.advise(memmap2::Advice::Sequential).ok();
        Ok(Map(Some(map)))
    }

    /// All bytes.
    pub fn whole(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The bytes of a range that lies in the file.
    pub fn part(&self, range: Range<usize>) -> Chunk<'_> {
        Chunk::Borrowed(self.whole().get(range).unwrap_or_default())
    }

    /// A map fails by a signal: see [`super::lost_map`].
    pub fn take_error(&self) -> Option<std::io::Error> {
        None
    }

    #[cfg(unix)]
    #[allow(unsafe_code, reason = "advice on a map")]
    pub fn drop_pages(&self, range: Range<usize>) {
        let Some(map) = &self.0 else { return };
        // SAFETY: the map is a shared, read-only map of a file, so that dropped pages are read from the file again
        // when they are touched: no byte changes under a borrow.
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) }.ok();
    }

    #[cfg(not(unix))]
    pub fn drop_pages(&self, _: Range<usize>) {}

    pub fn expect_scattered_reads(&self) {
        #[cfg(target_os = "linux")]
        self.0.as_ref().map(|map| map.advise(memmap2::Advice::NoHugePage));
    }
}
