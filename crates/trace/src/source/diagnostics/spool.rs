//! Bytes of a recording between the thread that takes them from the runtime and the reader behind it.
//!
//! The runtime drops events when its bytes are not read, so they are written to a file at once, and read from there as
//! fast as conversion goes. The file has no name and is cut in segments: those that were read are given back to the
//! disk, but for those of a recording that is small as a whole, so that it can be saved when its tables cannot be
//! written. A file that is to be kept is one segment. What was not read yet has a bound: a full spool takes nothing
//! more until some of it is read.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::source::temporary;

/// Bytes of a segment.
const SEGMENT: u64 = 64 << 20;
/// Bytes of a recording of which nothing is given back to the disk.
const RETAINED: u64 = 256 << 20;

struct Segment {
    file: Arc<File>,
    len: u64,
}

struct SpoolState {
    /// Segments that were read, while those of the whole recording are there.
    read: Option<Vec<Segment>>,
    /// Segments that were not read yet, the one that is written last.
    segments: VecDeque<Segment>,
    /// The number of bytes of the first piece that were read.
    position: u64,
    /// Bytes that came, and those of them that were read.
    written: u64,
    taken: u64,
    /// Nothing comes any more.
    ended: bool,
    /// The reader has ended.
    abandoned: bool,
}

struct Shared {
    state: Mutex<SpoolState>,
    changed: Condvar,
    /// Bytes that wait to be read, at most.
    limit: u64,
}

impl SpoolState {
    /// Whether more may be written now, or writing would fail at once. When nobody reads any more, so much of a whole
    /// recording is still taken in as is kept of one.
    fn has_room(&self, limit: u64) -> bool {
        self.ended || self.abandoned || self.unread() < limit
    }

    fn unread(&self) -> u64 {
        self.written - self.taken
    }

    /// Whether there is something to read, be it the end.
    fn has_more(&self) -> bool {
        self.ended || self.segments.len() > 1 || self.segments.front().is_some_and(|first| first.len > self.position)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a spool in which up to `limit` bytes wait to be read. With `keep`, a new file of that name holds all bytes,
/// and stays.
pub fn spool(keep: Option<&Path>, limit: u64) -> io::Result<(SpoolWriter, SpoolReader)> {
    let first = if let Some(path) = keep { new_file(path)? } else { temporary::file()? };
    let state = SpoolState {
        read: Some(Vec::new()),
        segments: VecDeque::from([Segment { file: Arc::new(first), len: 0 }]),
        position: 0,
        written: 0,
        taken: 0,
        ended: false,
        abandoned: false,
    };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), limit: limit.max(1) });
    let segment_bytes = if keep.is_some() { u64::MAX } else { SEGMENT };
    Ok((SpoolWriter { shared: shared.clone(), segment_bytes }, SpoolReader { shared }))
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).open(path)
}

/// The end that bytes are put in. Clones write to the same spool.
#[derive(Clone)]
pub struct SpoolWriter {
    shared: Arc<Shared>,
    segment_bytes: u64,
}

impl SpoolWriter {
    /// Appends bytes. After an error those that were written before are there, and it should be ended.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let (file, len) = {
            let mut state = self.shared.lock();
            if state.ended {
                return Err(io::Error::other("the recording was cancelled"));
            }
            // A recording that is whole may be saved yet.
            if state.abandoned && (state.read.is_none() || state.written >= self.shared.limit) {
                return Err(io::Error::other("the reader of the recording has ended"));
            }
            if state.segments.back().is_none_or(|last| last.len >= self.segment_bytes) {
                state.segments.push_back(Segment { file: Arc::new(temporary::file()?), len: 0 });
            }
            let Some(last) = state.segments.back() else { return Ok(()) };
            (last.file.clone(), last.len)
        };
        // Only this end moves the place of the file; the reader says where it reads.
        write_at(&file, bytes, len)?;
        let mut state = self.shared.lock();
        if let Some(last) = state.segments.back_mut() {
            last.len += bytes.len() as u64;
        }
        state.written += bytes.len() as u64;
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Bytes that wait to be read.
    pub fn unread(&self) -> u64 {
        self.shared.lock().unread()
    }

    /// Waits up to a limit until the reader has made room, and says whether there is some.
    pub fn has_room(&self, limit: Duration) -> bool {
        let state = self.shared.lock();
        if state.has_room(self.shared.limit) {
            return true;
        }
        let full = |state: &mut SpoolState| !state.has_room(self.shared.limit);
        let waited = self.shared.changed.wait_timeout_while(state, limit, full);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_room(self.shared.limit)
    }

    /// Writes all that came to a new file in a folder, when nothing of it was given back to the disk yet. `name` is how
    /// the file's begins. To be called when nothing comes any more.
    pub fn save(&self, folder: &Path, name: &str) -> Option<io::Result<PathBuf>> {
        let segments: Vec<Segment> = {
            let mut state = self.shared.lock();
            let mut all = state.read.take()?;
            all.extend(state.segments.drain(..));
            all
        };
        Some(save(segments, folder, name))
    }

    /// Says that nothing comes any more.
    pub fn end(&self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

/// Each segment goes when it has been copied: there may be little space.
fn save(segments: Vec<Segment>, folder: &Path, name: &str) -> io::Result<PathBuf> {
    let named = |n: u32| folder.join(if n == 0 { format!("{name}.nettrace") } else { format!("{name}.{n}.nettrace") });
    let mut tries = (0..1000).map(named);
    let (path, file) = loop {
        let path = tries.next().ok_or(io::ErrorKind::AlreadyExists)?;
        match new_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => break (path, made?),
        }
    };
    let copied = copy(segments, &file);
    if copied.is_err() {
        std::fs::remove_file(&path).ok();
    }
    copied.map(|()| path)
}

fn copy(segments: Vec<Segment>, file: &File) -> io::Result<()> {
    let (mut buffer, mut at) = (vec![0; 256 << 10], 0);
    for segment in segments {
        let mut position = 0;
        while position < segment.len {
            let wanted = usize::try_from(segment.len - position).unwrap_or(usize::MAX).min(buffer.len());
            let read = read_at(&segment.file, buffer.get_mut(..wanted).unwrap_or_default(), position)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            write_at(file, buffer.get(..read).unwrap_or_default(), at)?;
            position += read as u64;
            at += read as u64;
        }
    }
    file.sync_all()
}

/// The end that bytes are taken from. It waits for more until the spool has ended.
pub struct SpoolReader {
    shared: Arc<Shared>,
}

impl SpoolReader {
    /// A function that waits up to a limit for the next bytes, and says whether a read would give something now: bytes,
    /// or the end.
    pub fn more(&self) -> impl Fn(Duration) -> bool + Send + 'static {
        let shared = self.shared.clone();
        move |limit| {
            let waited = shared.changed.wait_timeout_while(shared.lock(), limit, |state| !state.has_more());
            waited.unwrap_or_else(PoisonError::into_inner).0.has_more()
        }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        let (file, position, available) = loop {
            let (more, position) = (state.segments.len() > 1, state.position);
            match state.segments.front() {
                Some(first) if first.len > position => break (first.file.clone(), position, first.len - position),
                Some(_) if more => {
                    let first = state.segments.pop_front();
                    let is_small = state.written <= RETAINED;
                    state.read = state.read.take().filter(|_| is_small).map(|mut read| {
                        read.extend(first);
                        read
                    });
                    state.position = 0;
                }
                _ if state.ended => return Ok(0),
                _ => state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        let wanted = usize::try_from(available).unwrap_or(usize::MAX).min(buffer.len());
        let read = read_at(&file, buffer.get_mut(..wanted).unwrap_or_default(), position)?;
        if read == 0 && wanted > 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "another process truncated the file of the recording",
            ));
        }
        // Only this end takes segments away.
        let mut state = self.shared.lock();
        state.position += read as u64;
        state.taken += read as u64;
        drop(state);
        self.shared.changed.notify_all();
        Ok(read)
    }
}

impl Drop for SpoolReader {
    fn drop(&mut self) {
        self.shared.lock().abandoned = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(start: u64, count: usize) -> Vec<u8> {
        (start..).take(count).map(|n| (n % 251) as u8).collect()
    }

    #[test]
    fn bytes_come_out_in_order_across_segments_while_they_are_written() {
        let (mut writer, mut reader) = spool(None, u64::MAX).unwrap();
        writer.segment_bytes = 1000;
        let all = 100_000u64;
        let thread = std::thread::spawn(move || {
            let mut at = 0;
            while at < all {
                let count = (at * 7 % 977 + 1).min(all - at);
                writer.write(&pattern(at, count as usize)).unwrap();
                at += count;
            }
            writer.end();
        });
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        thread.join().unwrap();
        assert!(bytes == pattern(0, all as usize));
        // Bytes that were read are kept only while they may have to be saved.
        let state = reader.shared.lock();
        assert_eq!((state.segments.len(), state.written, state.taken), (1, all, all));
        assert!(state.read.as_ref().is_some_and(|read| read.len() > 50));
    }

    #[test]
    fn a_large_recording_is_given_back_to_the_disk_as_it_is_read() {
        let (mut writer, mut reader) = spool(None, u64::MAX).unwrap();
        writer.segment_bytes = 1000;
        writer.write(&pattern(0, 1000)).unwrap();
        // As if there had been more before.
        writer.shared.lock().written += RETAINED;
        writer.write(&pattern(1000, 10)).unwrap();
        reader.read_exact(&mut [0; 1005]).unwrap();
        assert!(reader.shared.lock().read.is_none());
        let folder = tempfile::tempdir().unwrap();
        assert!(writer.save(folder.path(), "a").is_none());
    }

    #[test]
    fn a_full_spool_takes_more_when_some_of_it_was_read() {
        let (writer, mut reader) = spool(None, 1000).unwrap();
        let (now, long) = (Duration::ZERO, Duration::from_secs(60));
        writer.write(&pattern(0, 999)).unwrap();
        assert!(writer.has_room(now));
        writer.write(&pattern(999, 1)).unwrap();
        assert!(!writer.has_room(now));
        let other = writer.clone();
        let waiting = std::thread::spawn(move || other.has_room(long));
        reader.read_exact(&mut [0; 1]).unwrap();
        assert!(waiting.join().unwrap());
        writer.write(&[7]).unwrap();
        let other = writer.clone();
        let waiting = std::thread::spawn(move || other.has_room(long));
        writer.end();
        assert!(waiting.join().unwrap(), "an end wakes who waits");
    }

    #[test]
    fn what_nobody_reads_any_more_can_be_saved() {
        let (mut writer, mut reader) = spool(None, 5000).unwrap();
        writer.segment_bytes = 1000;
        for at in [0, 700, 1400, 2100] {
            writer.write(&pattern(at, 700)).unwrap();
        }
        reader.read_exact(&mut [0; 1500]).unwrap();
        drop(reader);
        // The rest still comes, up to the bound of the spool.
        writer.write(&pattern(2800, 2300)).unwrap();
        assert!(writer.write(b"too much").is_err());
        writer.end();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app-7.nettrace"), "of somebody else").unwrap();
        let path = writer.save(folder.path(), "app-7").unwrap().unwrap();
        assert_eq!(path, folder.path().join("app-7.1.nettrace"));
        assert!(std::fs::read(&path).unwrap() == pattern(0, 5100));
        assert!(writer.save(folder.path(), "app-7").is_none(), "once");
    }

    #[test]
    fn a_file_that_is_kept_holds_all_bytes_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nettrace");
        let (writer, mut reader) = spool(Some(&path), u64::MAX).unwrap();
        writer.write(&pattern(0, 5000)).unwrap();
        writer.end();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert!(bytes == pattern(0, 5000) && std::fs::read(&path).unwrap() == bytes);
        assert!(spool(Some(&path), u64::MAX).is_err());
    }

    #[test]
    fn an_end_wakes_the_reader_and_stops_the_writer() {
        let (writer, mut reader) = spool(None, u64::MAX).unwrap();
        let other = writer.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            other.end();
        });
        assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0);
        thread.join().unwrap();
        assert!(writer.write(b"late").is_err());
        let (writer, reader) = spool(None, 1).unwrap();
        drop(reader);
        writer.write(b"for a file that may be saved").unwrap();
        assert!(writer.write(b"nobody").is_err());
    }
}
