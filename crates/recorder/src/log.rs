//! The recording: chunks of a file, filled by each thread for itself.
//!
//! A thread that has room in its chunk writes without any lock and without a system call; the commit word behind each
//! record makes it part of the recording at once. Taking a chunk is one atomic addition. Callbacks never touch the file
//! itself: the helper thread maps it ahead of them, and where it is late they write into memory (see `spill`).

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use corprof::record_header;
use corprof::{CHUNK_HEADER, CHUNK_MARK, COMMIT_AT, Header, RECORD_HEADER, chunk_header, commit_word, encode, kind};

pub use crate::file::ALIGN;
use crate::file::RecordingFile;
use crate::spill::Spill;
use crate::{fault, platform};

/// The largest chunk, and as much as a thread leaves unused at the end.
const MAX_CHUNK: u64 = 64 << 10;

/// Whether records are taken.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static FILE: OnceLock<RecordingFile> = OnceLock::new();
/// The thread that maps the file ahead.
static HELPER: OnceLock<Thread> = OnceLock::new();

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
    Some(now())
}

#[inline]
fn now() -> Entry {
    let ticks = platform::ticks();
    Entry { sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed) + 1, ticks }
}

/// Begins a recording.
pub fn begin(path: &Path, header: &Header) -> std::io::Result<()> {
    let file = RecordingFile::create(path, &header.encode())?;
    if FILE.set(file).is_ok() {
        ACTIVE.store(true, Ordering::Release);
    }
    Ok(())
}

/// Says which thread calls [`map_ahead`].
pub fn set_helper(thread: Thread) {
    HELPER.set(thread).ok();
}

/// Lets the helper work now: there is, or soon will be, no room in the file.
fn wake_helper() {
    if let Some(thread) = HELPER.get() {
        thread.unpark();
    }
}

/// Ends the recording: an end mark, and the file as long as it has to be. The helper has stopped.
pub fn end() {
    let Some(file) = FILE.get() else { return };
    report_lost();
    if !ACTIVE.swap(false, Ordering::AcqRel) {
        return;
    }
    put(now(), kind::END, 0, &[]);
    file.end();
}

/// Ends the recording without an end mark, after a fault of the recorder; the reason is written down.
pub fn fail(reason: &str) {
    if ACTIVE.load(Ordering::Acquire) {
        note(corprof::NOTE_FAILED, reason);
    }
    if ACTIVE.swap(false, Ordering::AcqRel) {
        platform::say(format_args!("{reason}"));
    }
}

/// Writes down something that the reader of the recording should know: a `NOTE_` code, and a text for people.
pub fn note(code: u64, text: &str) {
    if let Some(entry) = enter() {
        let mut payload = Vec::new();
        encode::named(&mut payload, &[code], text);
        put(entry, kind::NOTE, 0, &payload);
    }
}

/// Writes down how many records could not be written.
pub fn report_lost() {
    let lost = LOST.swap(0, Ordering::Relaxed);
    if lost > 0
        && let Some(entry) = enter()
    {
        let mut payload = Vec::new();
        encode::varint(&mut payload, lost);
        put(entry, kind::LOST, 0, &payload);
    }
}

/// For the helper: maps the file ahead of the callbacks, and brings into it what they had to write elsewhere.
pub fn map_ahead() {
    let Some(file) = FILE.get().filter(|_| ACTIVE.load(Ordering::Acquire)) else { return };
    if fault::faulted() {
        ACTIVE.store(false, Ordering::Release);
        let path = file.path().display();
        platform::say(format_args!("{path} was cut or could not be written: the recording ends here"));
        return;
    }
    file.map_ahead();
}

/// The buffer that a thread writes into.
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
    fn new_chunk(&mut self, file: &RecordingFile, record: u64) -> std::io::Result<()> {
        // Chunks grow with what the thread has to say, so that little of the file stays unused.
        let wanted = (self.written / 8).clamp(ALIGN, MAX_CHUNK).max(CHUNK_HEADER as u64 + record);
        let capacity = wanted.next_multiple_of(ALIGN);
        let (chunk, spill) = file.reserve(capacity, wake_helper)?;
        let head = chunk_header(capacity as u32, self.thread_id, self.thread, self.chunks);
        // SAFETY: the chunk is this thread's, aligned to a page, and longer than its header. The mark goes last.
        unsafe {
            std::ptr::copy_nonoverlapping(head.as_ptr().add(4), chunk.add(4), CHUNK_HEADER - 4);
            AtomicU32::from_ptr(chunk.cast()).store(CHUNK_MARK, Ordering::Release);
        }
        (self.chunk, self.spill, self.capacity, self.used) = (chunk, spill, capacity, CHUNK_HEADER as u64);
        self.chunks += 1;
        Ok(())
    }

    fn put(&mut self, entry: Entry, kind: u8, flags: u8, payload: &[u8]) -> std::io::Result<()> {
        let file = FILE.get().ok_or(std::io::ErrorKind::NotFound)?;
        let record = (RECORD_HEADER + payload.len()) as u64;
        if self.used + record > self.capacity {
            self.new_chunk(file, record)?;
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

    use tracequet_trace::error::Problem;
    use tracequet_trace::reader::callback::{Body, Record, Visitor, read};
    use tracequet_trace::source::Input;

    use super::*;
    use crate::alone::alone;

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

    /// Chunks that wait in memory belong to the process: a test that ends another file would take them.
    #[test]
    fn what_finds_no_room_in_the_file_comes_into_it_later() {
        alone("log::tests::records_without_a_helper");
    }

    /// Without a helper nothing is mapped ahead: all but the first segment goes through memory.
    #[test]
    #[ignore = "run by the test above"]
    fn records_without_a_helper() {
        const THREADS: u64 = 3;
        const EACH: u64 = 150_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("late.corprof");
        let header = Header {
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
                        write(entry, kind::HANDLE_CREATED, 0, |out| encode::numbers(out, &numbers));
                    }
                });
            }
        });
        assert!(crate::spill::bytes() > crate::file::SEGMENT, "nothing had to wait");
        end();

        let mut seen = Seen::default();
        let end = read(Input::open(&path).unwrap(), &mut seen).unwrap();
        assert!(end.complete && seen.problems.is_empty(), "{:?}", seen.problems);
        seen.objects.sort_unstable();
        assert!(seen.objects.into_iter().eq(0..THREADS * EACH));
    }
}
