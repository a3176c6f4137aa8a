//! Bytes of a recording between the thread that takes them from the runtime and the reader behind it.
//!
//! The runtime drops events when nobody takes its bytes, so they are written to a file at once, and read from there as fast
//! as conversion goes. The file has no name and is cut in segments: those that were read are given back to the disk. A file
//! that is to be kept is one segment.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a segment.
const SEGMENT: u64 = 64 << 20;

struct Segment {
    file: Arc<File>,
    len: u64,
}

#[derive(Default)]
struct State {
    /// Segments that were not read yet, the one that is written last.
    segments: VecDeque<Segment>,
    /// What was read of the first of them.
    position: u64,
    /// Nothing comes any more.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl State {
    /// Whether there is something to read, be it the end.
    fn has_more(&self) -> bool {
        self.ended || self.segments.len() > 1 || self.segments.front().is_some_and(|first| first.len > self.position)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a spool. With `keep`, a new file of that name holds all bytes, and stays.
pub fn spool(keep: Option<&Path>) -> io::Result<(SpoolWriter, SpoolReader)> {
    let shared = Arc::<Shared>::default();
    let first = match keep {
        Some(path) => File::options().read(true).write(true).create_new(true).open(path)?,
        None => tempfile::tempfile()?,
    };
    shared.lock().segments.push_back(Segment { file: Arc::new(first), len: 0 });
    let segment_bytes = if keep.is_some() { u64::MAX } else { SEGMENT };
    Ok((SpoolWriter { shared: shared.clone(), segment_bytes }, SpoolReader { shared }))
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
                return Err(io::Error::other("the recording was given up"));
            }
            if state.abandoned {
                return Err(io::Error::other("nobody reads the recording any more"));
            }
            if state.segments.back().is_none_or(|last| last.len >= self.segment_bytes) {
                state.segments.push_back(Segment { file: Arc::new(tempfile::tempfile()?), len: 0 });
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
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Says that nothing comes any more.
    pub fn end(&self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

/// The end that bytes are taken from. It waits for more until the spool has ended.
pub struct SpoolReader {
    shared: Arc<Shared>,
}

impl SpoolReader {
    /// A function that waits up to a limit for the next bytes, and says whether a read would give something now: bytes, or
    /// the end.
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
                    state.segments.pop_front();
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
                "the file of the recording was cut by somebody else",
            ));
        }
        // Only this end takes segments away.
        self.shared.lock().position += read as u64;
        Ok(read)
    }
}

impl Drop for SpoolReader {
    fn drop(&mut self) {
        self.shared.lock().abandoned = true;
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
        let (mut writer, mut reader) = spool(None).unwrap();
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
        // What was read is not held any more.
        assert_eq!(reader.shared.lock().segments.len(), 1);
    }

    #[test]
    fn a_file_that_is_kept_holds_all_bytes_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nettrace");
        let (writer, mut reader) = spool(Some(&path)).unwrap();
        writer.write(&pattern(0, 5000)).unwrap();
        writer.end();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert!(bytes == pattern(0, 5000) && std::fs::read(&path).unwrap() == bytes);
        assert!(spool(Some(&path)).is_err());
    }

    #[test]
    fn an_end_wakes_the_reader_and_stops_the_writer() {
        let (writer, mut reader) = spool(None).unwrap();
        let other = writer.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            other.end();
        });
        assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0);
        thread.join().unwrap();
        assert!(writer.write(b"late").is_err());
        let (writer, reader) = spool(None).unwrap();
        drop(reader);
        assert!(writer.write(b"nobody").is_err());
    }
}
