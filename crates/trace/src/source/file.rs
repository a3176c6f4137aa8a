//! A regular file of which every byte can be addressed.

use std::fs::File;
use std::io::{BufWriter, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::chunk::{Chunk, HEAD};
#[cfg(feature = "maps")]
use super::map::Map;
#[cfg(not(feature = "maps"))]
use super::positioned::Map;
use super::shrunk::Noticed;
use crate::error::{Error, Result};

/// A file of which every byte can be addressed: mapped, or read by position in a build without maps. Its length is taken
/// once. A file that another process truncates while it is mapped ends this process with SIGBUS, unless that is handled
/// as the program `tracequet` does: see [`super::lost_map`].
pub struct MappedFile {
    path: PathBuf,
    /// Before `map`, since it must not outlive it.
    noticed: Option<Noticed>,
    map: Map,
    len: usize,
    head: Vec<u8>,
    released: AtomicUsize,
}

/// A file that was opened.
pub enum Opened {
    /// A regular file.
    #[cfg(feature = "maps")]
    Mapped(MappedFile),
    /// A regular file of this length, in a build without maps.
    #[cfg(not(feature = "maps"))]
    Regular(File, u64),
    /// A FIFO or a device.
    Stream(File),
}

/// The identity of an input beside its name: size and hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// Size in bytes, packed if it is packed.
    pub size_bytes: u64,
    /// Lower-case hexadecimal BLAKE3 of the file as it lies on disk; empty when it was not taken (standard input, a
    /// dataset whose recordings are known by their SHA-256).
    pub blake3: String,
    /// Its SHA-256; empty when it was not taken.
    pub sha256: String,
}

impl FileIdentity {
    /// The hash that identifies the file.
    pub fn hash(&self) -> &str {
        identifying(&self.blake3, &self.sha256)
    }
}

/// The hash that identifies a file: the BLAKE3, or the SHA-256 where that one is empty.
pub fn identifying<'h>(blake3: &'h str, sha256: &'h str) -> &'h str {
    if blake3.is_empty() { sha256 } else { blake3 }
}

/// Pages are given back in steps of this many bytes: often enough to stay small, seldom enough to cost nothing.
const RELEASE_STEP: usize = 4 << 20;
const PAGE: usize = 64 << 10;

/// The message for a dataset in place of a recording.
pub const A_DATASET: &str = "is a dataset, expected a recording; explain, heap, stats and DuckDB read datasets";

/// Whether a directory is a dataset that was made of recordings: its manifest says so in its first lines.
pub fn is_dataset(directory: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(directory.join("manifest.json"));
    let read = file.and_then(|file| file.take(4 << 10).read_to_end(&mut head));
    read.is_ok() && head.windows(11).any(|window| window == b"\"tracequet\"")
}

impl MappedFile {
    /// Opens `path` once, and maps it when it is a regular file. A FIFO opened twice might never end.
    pub fn open(path: &Path) -> Result<Opened> {
        // Asked first: Windows does not open one, and says that access is denied.
        if path.is_dir() {
            let what = if is_dataset(path) { A_DATASET } else { "is a directory, expected a recording" };
            return Err(Error::Usage(format!("{}: {what}", path.display())));
        }
        let file = File::open(path).map_err(Error::io(path))?;
        let found = file.metadata().map_err(Error::io(path))?;
        if !found.is_file() {
            return Ok(Opened::Stream(file));
        }
        #[cfg(not(feature = "maps"))]
        return Ok(Opened::Regular(file, found.len()));
        #[cfg(feature = "maps")]
        {
            let mut mapped = MappedFile::from_file(path, file)?;
            mapped.noticed = Noticed::map(mapped.bytes());
            Ok(Opened::Mapped(mapped))
        }
    }

    /// Takes an open file that goes by the name `path`.
    pub fn from_file(path: &Path, file: impl Into<Arc<File>>) -> Result<MappedFile> {
        let file = file.into();
        let len = file.metadata().map_err(Error::io(path))?.len();
        let len = usize::try_from(len).map_err(|_| Error::io(path)(std::io::ErrorKind::FileTooLarge.into()))?;
        let map = Map::new(file, len).map_err(Error::io(path))?;
        let head = map.part(0..len.min(HEAD)).to_vec();
        Ok(MappedFile { path: path.to_owned(), noticed: None, map, len, head, released: AtomicUsize::new(0) })
    }

    /// Maps what was written to a temporary file, to be read in any order.
    pub fn temporary(written: BufWriter<File>) -> std::io::Result<MappedFile> {
        let file = written.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let map = MappedFile::from_file(Path::new("temporary file"), file).map_err(std::io::Error::other)?;
        map.expect_scattered_reads();
        Ok(map)
    }

    /// Gives it another name in messages.
    #[cfg(feature = "maps")]
    pub(super) fn shown_as(mut self, shown: &Path) -> MappedFile {
        self.path = shown.to_owned();
        self
    }

    /// The name in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        self.len
    }

    /// The first bytes, [`HEAD`] of them or all there are.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The whole file. Without maps it is in memory from then on.
    pub fn bytes(&self) -> &[u8] {
        self.map.whole()
    }

    /// The bytes of a range as far as there are any: lent by the map, or read.
    pub fn part(&self, range: Range<usize>) -> Chunk<'_> {
        let end = range.end.min(self.len);
        self.map.part(range.start.min(end)..end)
    }

    /// The error of the file since it was opened, said once: it became shorter, or its disk failed. Of a map it is known
    /// where the program handles SIGBUS (see [`super::lost_map`]).
    pub fn take_error(&self) -> Option<std::io::Error> {
        let Some(offset) = self.noticed.as_ref().and_then(Noticed::take) else { return self.map.take_error() };
        let message = format!(
            "the file became shorter while it was read, or its disk failed: bytes from {offset} on are read as zeros"
        );
        Some(std::io::Error::other(message))
    }

    /// Begins again: pages that were dropped before may be dropped again.
    pub fn rewind(&self) {
        self.released.store(0, Ordering::Relaxed);
    }

    /// Drops the pages before `offset` from resident memory. They come back from the file if they are read again.
    pub fn release(&self, offset: u64) {
        let end = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len) / PAGE * PAGE;
        let start = self.released.load(Ordering::Relaxed);
        if end.saturating_sub(start) >= RELEASE_STEP {
            self.released.store(end, Ordering::Relaxed);
            self.map.drop_pages(start..end);
        }
    }

    /// Said before the file is read in many places at a time: then each place brings little into resident memory. (A
    /// system that keeps files in pages of 2 MB would map one of them for each place.)
    pub fn expect_scattered_reads(&self) {
        self.map.expect_scattered_reads();
    }

    /// Drops all pages, for readers that jump, so that no part before them is done.
    pub fn release_all(&self) {
        self.map.drop_pages(0..self.len);
    }
}
