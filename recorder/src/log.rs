//! The recording: a file that is mapped piece by piece, of which each thread takes chunks.
//!
//! A thread that has room in its chunk writes without any lock and without a system call; the commit word behind each
//! record makes it part of the recording at once. Taking a chunk is one atomic addition. Callbacks never touch the file
//! itself: the helper thread maps it ahead of them, and where it is late they write into memory (see `spill`).

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::spill::{self, Spill};
use crate::{helper, platform};
use corprof::{self as format, CHUNK_HEADER, COMMIT_AT, RECORD_HEADER, chunk_header, commit_word, record_header};

/// Bytes that are mapped at once.
const SEGMENT: u64 = 8 << 20;
/// Segments at most: 128 GiB.
const SEGMENTS: usize = 16 << 10;
/// Chunks begin at multiples of this.
pub const ALIGN: u64 = 4096;
/// The largest chunk, and as much as a thread leaves unused at the end.
const MAX_CHUNK: u64 = 64 << 10;
/// Segments that are mapped ahead of the one in use, at most.
const MAX_AHEAD: u64 = 16;

/// Whether records are taken.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    file: File,
    cursor: AtomicU64,
    segments: Box<[AtomicPtr<u8>]>,
    /// Segments that are mapped ahead: twice as many each time that was not enough.
    ahead: AtomicU64,
}

/// The moment at which a callback was entered.
#[derive(Clone, Copy)]
pub struct Entry {
    sequence: u64,
    ticks: u64,
}

/// Takes the next number and the time; `None` when nothing is recorded (any more).
#[inline]
pub fn enter() -> Option<Entry> {
    if !ACTIVE.load(Ordering::Acquire) {
        return None;
    }
    let ticks = platform::ticks();
    Some(Entry { sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed) + 1, ticks })
}

/// Begins a recording.
pub fn begin(path: &Path, header: &format::Header) -> std::io::Result<()> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let bytes = header.encode();
    let first = (bytes.len() as u64).next_multiple_of(ALIGN);
    let segments = (0..SEGMENTS).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
    let log = Log { file, cursor: AtomicU64::new(first), segments, ahead: AtomicU64::new(1) };
    let base = log.map(0)?;
    // SAFETY: the first segment is mapped, longer than any header, and not yet shared with any thread.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base, bytes.len()) };
    if LOG.set(log).is_ok() {
        ACTIVE.store(true, Ordering::Release);
    }
    Ok(())
}

/// Ends the recording: an end mark, and the file as long as it has to be. The helper has stopped.
pub fn end() {
    let Some(log) = LOG.get() else { return };
    report_lost();
    if !ACTIVE.swap(false, Ordering::AcqRel) {
        return;
    }
    let entry = Entry { sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed) + 1, ticks: platform::ticks() };
    put(entry, format::kind::END, 0, &[]);
    spill::replay(|at| log.map_to(at));
    // Threads may still write into chunks that they have; none of these lies behind the cursor.
    log.file.set_len(log.cursor.load(Ordering::Acquire)).ok();
}

/// Tells how many records could not be written.
pub fn report_lost() {
    let lost = LOST.swap(0, Ordering::Relaxed);
    if lost > 0
        && let Some(entry) = enter()
    {
        let mut payload = Vec::new();
        corprof::encode::varint(&mut payload, lost);
        put(entry, format::kind::LOST, 0, &payload);
    }
}

/// For the helper: maps the file ahead of the callbacks, and brings into it what they had to write elsewhere.
pub fn map_ahead() {
    let Some(log) = LOG.get().filter(|_| ACTIVE.load(Ordering::Acquire)) else { return };
    let current = log.cursor.load(Ordering::Relaxed) / SEGMENT;
    for index in current..=current + log.ahead.load(Ordering::Relaxed) {
        if log.map(index).is_err() {
            break; // what finds no room is counted where it is lost
        }
    }
    spill::replay(|at| log.map_to(at));
}

impl Log {
    /// The segment, mapped now if it is not yet. Only one thread at a time calls this.
    fn map(&self, index: u64) -> std::io::Result<*mut u8> {
        let place = usize::try_from(index).ok().and_then(|at| self.segments.get(at));
        let place = place.ok_or(std::io::ErrorKind::FileTooLarge)?;
        let known = place.load(Ordering::Acquire);
        if !known.is_null() {
            return Ok(known);
        }
        let from = index * SEGMENT;
        platform::grow(&self.file, from, from + SEGMENT)?;
        // SAFETY: the file belongs to this process alone; the map is never unmapped.
        let map = unsafe { memmap2::MmapOptions::new().offset(from).len(SEGMENT as usize).map_mut(&self.file)? };
        // So that no callback waits for the file system at the first touch of a page.
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::PopulateWrite).ok();
        let base = map.as_ptr().cast_mut();
        std::mem::forget(map);
        place.store(base, Ordering::Release);
        Ok(base)
    }

    /// The place of a byte of the file, mapped now if it is not yet.
    fn map_to(&self, at: u64) -> std::io::Result<*mut u8> {
        // SAFETY: the place lies in the segment.
        self.map(at / SEGMENT).map(|base| unsafe { base.add((at % SEGMENT) as usize) })
    }

    /// Room for a chunk that nobody else has, in the file or in memory that goes there later.
    fn reserve(&self, bytes: u64) -> std::io::Result<(*mut u8, Option<Arc<Spill>>)> {
        if bytes > SEGMENT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        loop {
            let at = self.cursor.fetch_add(bytes, Ordering::Relaxed);
            let (first, last) = (at / SEGMENT, (at + bytes - 1) / SEGMENT);
            if first != last {
                helper::wake(); // what is left of the segment stays unused
                continue;
            }
            let place = usize::try_from(first).ok().and_then(|index| self.segments.get(index));
            let base = place.ok_or(std::io::ErrorKind::FileTooLarge)?.load(Ordering::Acquire);
            if base.is_null() {
                let wider = |ahead: u64| Some((ahead * 2).min(MAX_AHEAD));
                self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, wider).ok();
                helper::wake();
                let spill = Spill::new(at, bytes)?;
                return Ok((spill.memory(), Some(spill)));
            }
            // SAFETY: `at` lies in the segment, with `bytes` bytes behind it.
            return Ok((unsafe { base.add((at % SEGMENT) as usize) }, None));
        }
    }
}

/// What a thread writes into.
struct Local {
    thread: u32,
    thread_id: u64,
    chunk: *mut u8,
    /// Keeps the memory of the chunk alive if it is not in the file.
    spill: Option<Arc<Spill>>,
    capacity: u64,
    used: u64,
    chunks: u32,
    written: u64,
    payload: Vec<u8>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::new(Local {
        thread: THREADS.fetch_add(1, Ordering::Relaxed),
        thread_id: platform::thread_id(),
        chunk: std::ptr::null_mut(),
        spill: None,
        capacity: 0,
        used: 0,
        chunks: 0,
        written: 0,
        payload: Vec::with_capacity(8 << 10),
    });
}

impl Local {
    fn new_chunk(&mut self, log: &Log, record: u64) -> std::io::Result<()> {
        // Chunks grow with what the thread has to say, so that little of the file stays unused.
        let wanted = (self.written / 8).clamp(ALIGN, MAX_CHUNK).max(CHUNK_HEADER as u64 + record);
        let capacity = wanted.next_multiple_of(ALIGN);
        let (chunk, spill) = log.reserve(capacity)?;
        let head = chunk_header(capacity as u32, self.thread_id, self.thread, self.chunks);
        // SAFETY: the chunk is this thread's, aligned to a page, and longer than its header. The mark goes last.
        unsafe {
            std::ptr::copy_nonoverlapping(head.as_ptr().add(4), chunk.add(4), CHUNK_HEADER - 4);
            AtomicU32::from_ptr(chunk.cast()).store(format::CHUNK_MARK, Ordering::Release);
        }
        (self.chunk, self.spill, self.capacity, self.used) = (chunk, spill, capacity, CHUNK_HEADER as u64);
        self.chunks += 1;
        Ok(())
    }

    fn put(&mut self, entry: Entry, kind: u8, flags: u8, payload: &[u8]) -> std::io::Result<()> {
        let log = LOG.get().ok_or(std::io::ErrorKind::NotFound)?;
        let record = (RECORD_HEADER + payload.len()) as u64;
        if self.used + record > self.capacity {
            self.new_chunk(log, record)?;
        }
        let duration = u32::try_from(platform::ticks().saturating_sub(entry.ticks)).unwrap_or(u32::MAX);
        let head = record_header(kind, flags, entry.sequence, entry.ticks, duration, payload);
        // SAFETY: the chunk is this thread's and has room for the record; its commit word is aligned to 8 bytes.
        unsafe {
            let at = self.chunk.add(self.used as usize);
            std::ptr::copy_nonoverlapping(head.as_ptr(), at, RECORD_HEADER);
            std::ptr::copy_nonoverlapping(payload.as_ptr(), at.add(RECORD_HEADER), payload.len());
            self.used += record;
            let word = commit_word((self.used - CHUNK_HEADER as u64) as u32);
            AtomicU64::from_ptr(self.chunk.add(COMMIT_AT).cast()).store(word.to_le(), Ordering::Release);
        }
        self.written += record;
        Ok(())
    }
}

/// Writes a record whose payload is there already.
pub fn put(entry: Entry, kind: u8, flags: u8, payload: &[u8]) {
    let done = LOCAL.try_with(|local| match local.try_borrow_mut() {
        Ok(mut local) => local.put(entry, kind, flags, payload).is_ok(),
        Err(_) => false,
    });
    if !done.unwrap_or(false) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes a record whose payload `fill` appends to a buffer that the thread keeps.
pub fn write(entry: Entry, kind: u8, flags: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let taken = LOCAL.try_with(|local| local.try_borrow_mut().map(|mut l| std::mem::take(&mut l.payload)));
    let mut payload = taken.ok().and_then(Result::ok).unwrap_or_default();
    payload.clear();
    fill(&mut payload);
    put(entry, kind, flags, &payload);
    if payload.capacity() <= 1 << 20 {
        LOCAL.try_with(|local| local.try_borrow_mut().map(|mut l| l.payload = payload)).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use tracequet::error::Problem;
    use tracequet::reader::callback::{Body, Record, Visitor, read};
    use tracequet::source::Input;

    use super::*;

    #[derive(Default)]
    struct Seen {
        objects: Vec<u64>,
        problems: Vec<Problem>,
    }

    impl Visitor for Seen {
        fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
            if let Body::HandleCreated { handle_id, .. } = record.body {
                self.objects.push(handle_id);
            }
            ControlFlow::Continue(())
        }

        fn problem(&mut self, problem: Problem) {
            self.problems.push(problem);
        }
    }

    /// Without a helper nothing is mapped ahead: all but the first segment goes through memory.
    #[test]
    fn what_finds_no_room_in_the_file_comes_into_it_later() {
        const THREADS: u64 = 3;
        const EACH: u64 = 150_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("late.corprof");
        let header = format::Header {
            chunk_align: ALIGN as u32,
            pointer_size: 8,
            frequency: platform::frequency(),
            ..Default::default()
        };
        begin(&path, &header).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for n in 0..EACH {
                        let numbers = [thread * EACH + n, n];
                        let entry = enter().unwrap();
                        write(entry, format::kind::HANDLE_CREATED, 0, |out| corprof::encode::numbers(out, &numbers));
                    }
                });
            }
        });
        assert!(spill::bytes() > SEGMENT, "nothing had to wait");
        end();

        let mut seen = Seen::default();
        let end = read(Input::open(&path).unwrap(), &mut seen).unwrap();
        assert!(end.complete && seen.problems.is_empty(), "{:?}", seen.problems);
        seen.objects.sort_unstable();
        assert!(seen.objects.into_iter().eq(0..THREADS * EACH));
    }
}
