//! Chunks that are filled in memory, because the part of the file they belong to is not mapped yet.
//!
//! The thread continues as if it wrote into the file. The helper copies what is committed, as soon as it has mapped the
//! place: such a chunk is safe from a crash of the process a moment later than others, and nothing else differs.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use corprof::{CHUNK_HEADER, CHUNK_MARK, COMMIT_AT, committed};

/// Memory for such chunks, at most. What does not fit is lost, and counted.
const MAX_BYTES: u64 = 256 << 20;

static BYTES: AtomicU64 = AtomicU64::new(0);
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// A chunk in memory; the memory goes when the last who knows it is done.
pub struct Spill {
    map: memmap2::MmapMut,
    home: u64,
}

struct Waiting {
    spill: Arc<Spill>,
    /// Bytes of records that are in the file already.
    copied: usize,
}

impl Spill {
    /// Memory for a chunk of `bytes` bytes, which belongs at `home` in the file.
    pub fn new(home: u64, bytes: u64) -> std::io::Result<Arc<Spill>> {
        let new = Arc::new(Spill { map: memmap2::MmapMut::map_anon(bytes as usize)?, home });
        if BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES {
            return Err(std::io::ErrorKind::OutOfMemory.into()); // `new` gives the bytes back
        }
        let mut waiting = WAITING.lock().unwrap_or_else(|e| e.into_inner());
        waiting.push(Waiting { spill: new.clone(), copied: 0 });
        Ok(new)
    }

    /// The first byte.
    pub fn memory(&self) -> *mut u8 {
        self.map.as_ptr().cast_mut()
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.map.len() as u64, Ordering::Relaxed);
    }
}

/// Whether a chunk of this size would fit now.
pub fn has_room(bytes: u64) -> bool {
    BYTES.load(Ordering::Relaxed) + bytes <= MAX_BYTES
}

/// Bytes of chunks in memory.
#[cfg(test)]
pub fn bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

/// Copies what is new to where it belongs: `place` has the place in memory of a number of bytes of the file from an
/// offset on. Only one thread at a time calls this.
pub fn replay(place: impl Fn(u64, u64) -> Option<*mut u8>) {
    let take = || std::mem::take(&mut *WAITING.lock().unwrap_or_else(|e| e.into_inner()));
    let mut left = take();
    left.retain_mut(|waiting| {
        // The thread has gone on to another chunk: what is here now is all.
        let done = Arc::strong_count(&waiting.spill) == 1;
        fence(Ordering::Acquire);
        match place(waiting.spill.home, waiting.spill.map.len() as u64) {
            Some(to) => waiting.copy(to),
            None => return true,
        }
        !done
    });
    WAITING.lock().unwrap_or_else(|e| e.into_inner()).append(&mut left);
}

impl Waiting {
    fn copy(&mut self, to: *mut u8) {
        let from = self.spill.memory();
        // SAFETY: a chunk begins at a page; its thread writes the commit word atomically.
        let word = unsafe { AtomicU64::from_ptr(from.add(COMMIT_AT).cast()) }.load(Ordering::Acquire);
        let Some(bytes) = committed(u64::from_le(word)).map(|n| n as usize).filter(|n| *n > self.copied) else {
            return;
        };
        // SAFETY: both places are as long as the chunk; below the commit word's count nothing is written any more, and
        // in the file no other thread writes. The commit word goes behind the records, as always, and the mark behind
        // all.
        unsafe {
            let at = CHUNK_HEADER + self.copied;
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), bytes - self.copied);
            if self.copied == 0 {
                std::ptr::copy_nonoverlapping(from.add(4), to.add(4), COMMIT_AT - 4);
                let behind = COMMIT_AT + 8;
                std::ptr::copy_nonoverlapping(from.add(behind), to.add(behind), CHUNK_HEADER - behind);
            }
            AtomicU64::from_ptr(to.add(COMMIT_AT).cast()).store(word, Ordering::Release);
            AtomicU32::from_ptr(to.cast()).store(CHUNK_MARK, Ordering::Release);
        }
        self.copied = bytes;
    }
}
