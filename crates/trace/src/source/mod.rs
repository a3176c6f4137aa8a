//! Where bytes come from: a mapped file, a pipe, or a packed file seen through its packing.
//!
//! A [`Source`] hands out consecutive [`Chunk`]s. Chunks of a mapped file borrow the map and cost nothing; chunks of a
//! stream own their bytes. The caller says by [`Source::release`] how far it is done, and the map lets those pages go,
//! so that resident memory does not grow with the file.

mod chunk;
#[cfg(feature = "live")]
pub mod diagnostics;
#[cfg(all(windows, feature = "etw"))]
pub mod etw;
mod file;
pub mod live;
#[cfg(feature = "maps")]
mod map;
#[cfg(feature = "packed")]
mod packed;
#[cfg(any(test, not(feature = "maps")))]
#[cfg_attr(feature = "maps", allow(dead_code, reason = "only its tests use it there"))]
mod positioned;
mod recording_path;
#[cfg(feature = "packed")]
mod reopened;
mod shrunk;
mod spooled;
pub mod store;
pub mod temporary;

use crate::prelude::*;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use chunk::read_up_to;
pub use chunk::{Chunk, HEAD};
use file::Opened;
pub use file::{A_DATASET, FileIdentity, MappedFile, identifying, is_dataset};
pub use recording_path::RecordingPath;
pub use shrunk::lost_map;
pub use spooled::Spooled;
use spooled::{Unpacked, free_space, spool_limit, too_large};

/// The largest frame that is read from a stream in one piece. Writers use at most 16 MiB (the 24-bit size of V6).
pub const MAX_CHUNK: usize = 64 << 20;

/// An opened input. It outlives the [`Source`] that reads it, so that frames can borrow from it.
pub enum Input {
    /// A regular, unpacked file.
    Mapped(MappedFile),
    /// Standard input or the inside of a packed file.
    Stream(Stream),
    /// The inside of a packed file that holds several logs of one session.
    Logs(Spooled),
}

/// A stream of bytes with the name it goes by in messages.
pub struct Stream {
    /// The file, or `-` for standard input.
    pub path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    /// The first bytes; they are also the first that `reader` gives.
    head: Vec<u8>,
    /// Size of the packed file, when known: the measure of progress.
    pub packed_len: Option<u64>,
    /// Of a stream that is written while it is read.
    more: Option<More>,
    /// The regular file that it reads, in a build without maps.
    file: Option<Arc<File>>,
}

/// Waits up to a limit for the next bytes of a stream, and says whether a read would give something now: bytes, or the
/// end.
pub type More = Box<dyn Fn(Duration) -> bool + Send>;

/// A live stream is silent when nothing has come for this time. A runtime writes what it has every 100 ms.
const SILENCE: Duration = Duration::from_millis(300);

impl Input {
    /// Opens `path`, or standard input for `-`. Packed files are recognised by their first bytes, not by their name.
    pub fn open(path: &Path) -> Result<Input> {
        if path == Path::new("-") {
            return Input::from_reader(path, Box::new(std::io::stdin()), None);
        }
        Input::open_as(path, path)
    }

    /// Opens a file that goes by the name `shown` in messages: the copy of an object of a store.
    pub(crate) fn open_as(file: &Path, shown: &Path) -> Result<Input> {
        match MappedFile::open(file)? {
            #[cfg(feature = "maps")]
            Opened::Mapped(map) if !is_packed(map.head()) => Ok(Input::Mapped(map.shown_as(shown))),
            #[cfg(feature = "maps")]
            Opened::Mapped(map) => Input::unpacked(file, shown, map.size() as u64, map.head()),
            #[cfg(not(feature = "maps"))]
            Opened::Regular(opened, len) => {
                let opened = Arc::new(opened);
                let mut head = [0; 4];
                let have = read_up_to(&mut &*opened, &mut head).map_err(Error::io(file))?;
                let head = head.get(..have).unwrap_or_default();
                if is_packed(head) {
                    return Input::unpacked(file, shown, len, head);
                }
                let whole = std::io::Cursor::new(head.to_vec()).chain(opened.clone());
                let mut input = Input::from_reader(shown, Box::new(whole), Some(len))?;
                if let Input::Stream(stream) = &mut input {
                    stream.file = Some(opened);
                }
                Ok(input)
            }
            Opened::Stream(file) => Input::from_reader(shown, Box::new(file), None),
        }
    }

    /// The inside of a packed file of `len` bytes.
    fn unpacked(file: &Path, shown: &Path, len: u64, head: &[u8]) -> Result<Input> {
        match unpack_file(file, shown, len, head)? {
            Unpacked::Stream(reader) => Input::from_reader(shown, reader, Some(len)),
            Unpacked::Logs(logs) => Ok(Input::Logs(logs)),
        }
    }

    /// Reads from any byte stream; `.gz` and `.zst` are seen through. `.zip` needs a file: its directory is at the end.
    pub fn from_reader(path: &Path, mut reader: Box<dyn Read + Send>, packed_len: Option<u64>) -> Result<Input> {
        let mut head = [0u8; 4];
        let have = read_up_to(&mut reader, &mut head).map_err(Error::io(path))?;
        let start = head.get(..have).unwrap_or_default().to_vec();
        let packed = is_packed(&start);
        let whole: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(start).chain(reader));
        let mut reader = if packed { unpack_stream(path, whole)? } else { whole };
        let mut head = Vec::with_capacity(HEAD);
        // A failure here is met again where the recording is read, and reported there.
        let failed = reader.by_ref().take(HEAD as u64).read_to_end(&mut head).err();
        if let (true, true, Some(error)) = (packed, head.is_empty(), &failed)
            && error.raw_os_error().is_none()
        {
            return Err(Error::Unreadable {
                path: path.to_owned(),
                offset: 0,
                what: format!("packed bytes that cannot be unpacked: {error}"),
                expected: "a whole .gz or .zst".into(),
            });
        }
        let first = std::io::Cursor::new(head.clone());
        let whole: Box<dyn Read + Send> = match failed {
            Some(error) => Box::new(first.chain(Failing(Some(error)))),
            None => Box::new(first.chain(reader)),
        };
        let reader = BufReader::with_capacity(256 << 10, whole);
        Ok(Input::Stream(Stream { path: path.to_owned(), reader, head, packed_len, more: None, file: None }))
    }

    /// Reads from a stream that is written meanwhile: events are handed on as soon as their order is known, or nothing
    /// comes that could change it.
    pub fn from_live(path: &Path, reader: Box<dyn Read + Send>, more: More) -> Result<Input> {
        let mut input = Input::from_reader(path, reader, None)?;
        if let Input::Stream(stream) = &mut input {
            stream.more = Some(more);
        }
        Ok(input)
    }

    /// The first bytes of the (unpacked) recording, [`HEAD`] of them or all there are.
    pub fn head(&self) -> &[u8] {
        match self {
            Input::Mapped(map) | Input::Logs(Spooled { map, .. }) => map.head(),
            Input::Stream(stream) => &stream.head,
        }
    }

    /// The name of the input in messages.
    pub fn path(&self) -> &Path {
        match self {
            Input::Mapped(map) | Input::Logs(Spooled { map, .. }) => map.path(),
            Input::Stream(stream) => &stream.path,
        }
    }

    /// Bytes of the (unpacked) input, when they are known beforehand.
    pub fn size(&self) -> Option<u64> {
        match self {
            Input::Mapped(map) | Input::Logs(Spooled { map, .. }) => Some(map.size() as u64),
            Input::Stream(_) => None,
        }
    }

    /// Makes sure that every byte of the input can be addressed: a stream is spooled to an unnamed temporary file. Of
    /// one that fails, what came before is kept. A packed file that expands beyond reason, or beyond half of the free
    /// space, counts as one that fails.
    pub fn spool(self) -> Result<Spooled> {
        self.spool_behind(&[])
    }

    /// Spools a stream of which the bytes `consumed` were read already; they come first.
    pub fn spool_behind(mut self, consumed: &[u8]) -> Result<Spooled> {
        let path = self.path().to_owned();
        let (mut source, packed_len) = match self {
            Input::Mapped(map) => return Ok(Spooled { map, starts: vec![0], failed: None }),
            Input::Logs(logs) => return Ok(logs),
            Input::Stream(Stream { file: Some(file), .. }) => {
                return Ok(Spooled { map: MappedFile::from_file(&path, file)?, starts: vec![0], failed: None });
            }
            Input::Stream(Stream { packed_len, .. }) => (self.source(), packed_len),
        };
        let mut file = temporary::file().map_err(Error::io("temporary file"))?;
        let limit = packed_len.map_or(u64::MAX, spool_limit).min(free_space(&file) / 2);
        file.write_all(consumed).map_err(Error::io("temporary file"))?;
        loop {
            let chunk = source.take(256 << 10);
            file.write_all(&chunk).map_err(Error::io("temporary file"))?;
            if chunk.is_empty() || source.position() > limit {
                break;
            }
            source.recycle(chunk);
        }
        let failed = source.take_error().or_else(|| (source.position() > limit).then(too_large));
        Ok(Spooled { map: MappedFile::from_file(&path, file)?, starts: vec![0], failed })
    }

    /// Begins reading at the first byte.
    pub fn source(&mut self) -> Source<'_> {
        match self {
            Input::Mapped(map) | Input::Logs(Spooled { map, .. }) => map.source(),
            Input::Stream(stream) => Source {
                inner: Inner::Stream(StreamSource {
                    reader: &mut stream.reader,
                    spare: Vec::new(),
                    error: None,
                    ahead: Vec::new(),
                    taken: 0,
                    more: stream.more.as_ref(),
                }),
                position: 0,
            },
        }
    }
}

impl MappedFile {
    /// Begins reading at the first byte.
    pub fn source(&self) -> Source<'_> {
        Source { inner: Inner::Map(self), position: 0 }
    }
}

#[cfg(feature = "packed")]
use packed::{is_packed, unpack_file, unpack_stream};

#[cfg(not(feature = "packed"))]
fn is_packed(_: &[u8]) -> bool {
    false
}

#[cfg(not(feature = "packed"))]
fn unpack_file(_: &Path, shown: &Path, _: u64, _: &[u8]) -> Result<Unpacked> {
    Err(Error::Usage(format!("{}: packed, which this build does not read", shown.display())))
}

#[cfg(not(feature = "packed"))]
fn unpack_stream(_: &Path, reader: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    Ok(reader)
}

/// Gives an error once, then nothing.
struct Failing(Option<std::io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Consecutive chunks of one [`Input`].
pub struct Source<'a> {
    inner: Inner<'a>,
    position: u64,
}

enum Inner<'a> {
    Map(&'a MappedFile),
    Stream(StreamSource<'a>),
}

struct StreamSource<'a> {
    reader: &'a mut BufReader<Box<dyn Read + Send>>,
    spare: Vec<Vec<u8>>,
    error: Option<std::io::Error>,
    /// Bytes that were looked at before they are taken.
    ahead: Vec<u8>,
    /// Number of bytes of `ahead` that are taken already.
    taken: usize,
    more: Option<&'a More>,
}

impl StreamSource<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        let wanted = count.min(MAX_CHUNK);
        let waiting = self.ahead.get(self.taken..).unwrap_or_default();
        let first = waiting.get(..wanted).unwrap_or(waiting);
        bytes.extend_from_slice(first);
        self.taken += first.len();
        if self.taken == self.ahead.len() {
            self.ahead.clear();
            self.taken = 0;
        }
        let missing = wanted - bytes.len();
        if missing > 0 && self.error.is_none() {
            self.error = self.reader.by_ref().take(missing as u64).read_to_end(&mut bytes).err();
        }
        bytes
    }

    fn peek(&mut self, count: usize) -> &[u8] {
        let wanted = count.min(MAX_CHUNK);
        let waiting = self.ahead.len() - self.taken;
        if waiting < wanted && self.error.is_none() {
            self.ahead.drain(..self.taken);
            self.taken = 0;
            let missing = (wanted - waiting) as u64;
            self.error = self.reader.by_ref().take(missing).read_to_end(&mut self.ahead).err();
        }
        let waiting = self.ahead.get(self.taken..).unwrap_or_default();
        waiting.get(..wanted).unwrap_or(waiting)
    }

    fn comes(&mut self, count: usize) -> bool {
        let Some(more) = self.more else { return true };
        loop {
            let has_buffered = !self.reader.buffer().is_empty();
            let have = self.ahead.len() - self.taken + self.reader.buffer().len();
            if have >= count.min(MAX_CHUNK) || self.error.is_some() {
                return true;
            }
            if !has_buffered && !more(SILENCE) {
                return false;
            }
            self.ahead.drain(..self.taken);
            self.taken = 0;
            let read = match self.reader.fill_buf() {
                Ok([]) => return true,
                Ok(bytes) => {
                    self.ahead.extend_from_slice(bytes);
                    bytes.len()
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    self.error = Some(e);
                    return true;
                }
            };
            self.reader.consume(read);
        }
    }
}

impl<'a> Source<'a> {
    /// Offset of the next byte in the (unpacked) stream.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Total length, when it is known beforehand.
    pub fn len(&self) -> Option<u64> {
        match &self.inner {
            Inner::Map(map) => Some(map.size() as u64),
            Inner::Stream(_) => None,
        }
    }

    /// Whether the input is written while it is read, so that nothing should be held back longer than its order takes.
    pub fn is_live(&self) -> bool {
        matches!(&self.inner, Inner::Stream(StreamSource { more: Some(_), .. }))
    }

    /// Whether the next `count` bytes can be looked at without a long wait: `false` when a live stream falls silent
    /// before they have come. Where the input ends before them, there is nothing to wait for.
    pub fn comes(&mut self, count: usize) -> bool {
        match &mut self.inner {
            Inner::Map(_) => true,
            Inner::Stream(stream) => stream.comes(count),
        }
    }

    /// Whether [`Source::len`] is known to be zero.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The next `count` bytes, or fewer at the end of the input or (for streams) beyond [`MAX_CHUNK`]. A stream's
    /// memory grows with the bytes that came, never with `count`.
    pub fn take(&mut self, count: usize) -> Chunk<'a> {
        let chunk = match &mut self.inner {
            Inner::Map(map) => {
                let start = usize::try_from(self.position).unwrap_or(usize::MAX);
                let rest = map.bytes().get(start..).unwrap_or_default();
                Chunk::Borrowed(rest.get(..count).unwrap_or(rest))
            }
            Inner::Stream(stream) => Chunk::Owned(stream.take(count)),
        };
        self.position += chunk.len() as u64;
        chunk
    }

    /// Looks at the next `count` bytes without taking them; fewer at the end of the input or (for streams) beyond
    /// [`MAX_CHUNK`].
    pub fn peek(&mut self, count: usize) -> &[u8] {
        match &mut self.inner {
            Inner::Map(map) => {
                let start = usize::try_from(self.position).unwrap_or(usize::MAX);
                let rest = map.bytes().get(start..).unwrap_or_default();
                rest.get(..count).unwrap_or(rest)
            }
            Inner::Stream(stream) => stream.peek(count),
        }
    }

    /// The bytes of a stream that were looked at and not taken.
    pub fn looked_at(&self) -> &[u8] {
        match &self.inner {
            Inner::Map(_) => &[],
            Inner::Stream(stream) => stream.ahead.get(stream.taken..).unwrap_or_default(),
        }
    }

    /// Takes `count` bytes without looking at them.
    pub fn skip(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let chunk = self.take(left.min(1 << 20));
            if chunk.is_empty() {
                break;
            }
            left -= chunk.len();
            self.recycle(chunk);
        }
    }

    /// Gives a chunk's memory back for the next one.
    pub fn recycle(&mut self, chunk: Chunk<'a>) {
        if let (Inner::Stream(stream), Chunk::Owned(bytes)) = (&mut self.inner, chunk)
            && stream.spare.len() < 64
            && bytes.capacity() <= 1 << 20
        {
            stream.spare.push(bytes);
        }
    }

    /// Says that nothing before `offset` will be looked at again; a map drops those pages from resident memory.
    pub fn release(&mut self, offset: u64) {
        if let Inner::Map(map) = &self.inner {
            map.release(offset);
        }
    }

    /// The error that ended the input early, if one did: a broken pipe, a damaged `.gz`, a file that shrank.
    pub fn take_error(&mut self) -> Option<std::io::Error> {
        match &mut self.inner {
            Inner::Map(map) => map.take_error(),
            Inner::Stream(stream) => stream.error.take(),
        }
    }
}
