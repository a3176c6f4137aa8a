//! A writer of recordings, for profilers written in Rust and for tests.

use std::io::{self, Write};

use crate::frame::{CHUNK_HEADER, COMMIT_AT, RECORD_HEADER, chunk_header, commit_word, record_header};
use crate::header::Header;
use crate::kind;

/// Bytes of records after which a thread's chunk is written.
const CHUNK_BYTES: usize = 64 << 10;

/// Writes a recording to any output, chunk by chunk. The recorder in `recorder/` does the same into a mapped file, with
/// a commit after each record; this writer keeps the records of each thread until a chunk is full.
///
/// ```
/// use corprof::{Header, Writer, encode, kind};
///
/// let header = Header { chunk_align: 8, pointer_size: 8, frequency: 1_000_000_000, ..Default::default() };
/// let mut writer = Writer::new(Vec::new(), &header)?;
/// let thread = writer.thread(4711);
/// let mut payload = Vec::new();
/// encode::gc_started(&mut payload, 5, 0b1, 0, &encode::BoundsSaid::default());
/// writer.record(thread, kind::GC_STARTED, 0, 1_000, &payload)?;
/// let recording: Vec<u8> = writer.finish(2_000)?;
/// assert!(recording.starts_with(b".corprof"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Writer<W: Write> {
    out: W,
    position: u64,
    align: u64,
    sequence: u64,
    threads: Vec<Pending>,
    chunk_bytes: usize,
}

struct Pending {
    thread_id: u64,
    chunks: u32,
    records: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header. `chunk_align` is set to 8 when it is no alignment.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut header = header.clone();
        if !header.chunk_align.is_power_of_two() || !(8..=1 << 20).contains(&header.chunk_align) {
            header.chunk_align = 8;
        }
        let bytes = header.encode();
        out.write_all(&bytes)?;
        let align = u64::from(header.chunk_align);
        let position = bytes.len() as u64;
        Ok(Writer { out, position, align, sequence: 0, threads: Vec::new(), chunk_bytes: CHUNK_BYTES })
    }

    /// Bytes of records after which a chunk is closed; 64 KiB unless said.
    pub fn chunk_bytes(mut self, bytes: usize) -> Writer<W> {
        self.chunk_bytes = bytes;
        self
    }

    /// A new thread with this OS id; returns its number, for [`Writer::record`].
    pub fn thread(&mut self, thread_id: u64) -> u32 {
        self.threads.push(Pending { thread_id, chunks: 0, records: Vec::new() });
        u32::try_from(self.threads.len() - 1).unwrap_or(u32::MAX)
    }

    /// A record of a thread; records are numbered in the order of these calls. `payload` is made with
    /// [`crate::encode`]; `ticks` is the time at which the callback was entered.
    pub fn record(&mut self, thread: u32, kind: u8, flags: u8, ticks: u64, payload: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let head = record_header(kind, flags, self.sequence, ticks, 0, payload);
        let chunk_bytes = self.chunk_bytes;
        let index = usize::try_from(thread).unwrap_or(usize::MAX);
        let unknown = || io::Error::new(io::ErrorKind::InvalidInput, format!("thread {thread} does not exist"));
        if u32::try_from(payload.len() + RECORD_HEADER + CHUNK_HEADER + (1 << 20)).is_err() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a payload of 4 GiB"));
        }
        let pending = self.threads.get_mut(index).ok_or_else(unknown)?;
        let full = !pending.records.is_empty() && pending.records.len() + RECORD_HEADER + payload.len() > chunk_bytes;
        if full {
            self.flush(index)?;
        }
        if let Some(pending) = self.threads.get_mut(index) {
            pending.records.extend(head);
            pending.records.extend(payload);
        }
        Ok(())
    }

    fn pad(&mut self) -> io::Result<()> {
        let gap = self.position.next_multiple_of(self.align) - self.position;
        io::copy(&mut io::Read::take(io::repeat(0), gap), &mut self.out)?;
        self.position += gap;
        Ok(())
    }

    fn flush(&mut self, index: usize) -> io::Result<()> {
        self.pad()?;
        let Some(pending) = self.threads.get_mut(index) else { return Ok(()) };
        let used = CHUNK_HEADER + pending.records.len();
        let capacity = u32::try_from((used as u64).next_multiple_of(self.align)).unwrap_or(u32::MAX);
        let thread = u32::try_from(index).unwrap_or(u32::MAX);
        let mut head = chunk_header(capacity, pending.thread_id, thread, pending.chunks);
        let word = commit_word(u32::try_from(pending.records.len()).unwrap_or(u32::MAX));
        if let Some(place) = head.get_mut(COMMIT_AT..COMMIT_AT + 8) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(&head)?;
        self.out.write_all(&pending.records)?;
        self.position += used as u64;
        pending.records.clear();
        pending.chunks += 1;
        self.pad()
    }

    /// Writes what is left without an end mark, as after a crash.
    pub fn abandon(mut self) -> io::Result<W> {
        for index in 0..self.threads.len() {
            let left = self.threads.get(index).is_some_and(|t| !t.records.is_empty());
            if left {
                self.flush(index)?;
            }
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the end mark and what is left.
    pub fn finish(mut self, ticks: u64) -> io::Result<W> {
        if self.threads.is_empty() {
            self.thread(0);
        }
        self.record(0, kind::END, 0, ticks, &[])?;
        self.abandon()
    }
}
