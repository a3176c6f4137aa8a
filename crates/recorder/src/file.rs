//! The file of a recording: made without harm to any other, mapped piece by piece, filled from its beginning.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::fault;
use crate::platform;
use crate::spill::{self, Spill};

/// Bytes of one map.
pub const SEGMENT: u64 = 8 << 20;
/// Maps at most: 128 GiB.
const SEGMENTS: usize = fault::MAX_MAPS;
/// Chunks begin at multiples of this.
pub const ALIGN: u64 = 4096;
/// Where the disk is nearly full, blocks are taken in steps down to this.
const LEAST: u64 = 64 << 10;
/// Segments that are mapped ahead of the one in use, at most.
const MAX_AHEAD: u64 = 16;

/// The time for which a full disk is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(200);

/// Takes blocks of a file from its end, the first number, to the second.
type Grow = fn(&File, u64, u64) -> Result<()>;

/// A recording's file.
pub struct RecordingFile {
    file: File,
    path: PathBuf,
    /// Where the next chunk begins.
    cursor: AtomicU64,
    segments: Box<[Segment]>,
    /// Segments that are mapped ahead: twice as many each time that was not enough.
    ahead: AtomicU64,
    /// When the disk was found to be full.
    full: Mutex<Option<Instant>>,
    /// Whether that was said.
    said_full: AtomicBool,
    grow: Grow,
}

struct Segment {
    base: AtomicPtr<u8>,
    /// Bytes of it that have blocks on the disk.
    ready: AtomicU64,
}

/// Makes the file. One that is there already is never touched: a second process with the same setting, or an earlier
/// recording. The process id, and then a number, go behind the name's stem until it is new.
fn create(path: &Path) -> Result<(File, PathBuf)> {
    let new = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
    let taken = match new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_file() => error,
        made => return made.map(|file| (file, path.to_owned())),
    };
    for attempt in 1..100 {
        let mut name = OsString::from(path.file_stem().unwrap_or_default());
        name.push(format!("-{}", std::process::id()));
        if attempt > 1 {
            name.push(format!("-{attempt}"));
        }
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        let other = path.with_file_name(name);
        match new(&other) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => {
                let file = made?;
                let (first, second) = (path.display(), other.display());
                platform::say(format_args!("{first} exists already; this process is recorded to {second}"));
                return Ok((file, other));
            }
        }
    }
    Err(taken)
}

impl RecordingFile {
    /// Makes a file that begins with these bytes, which fit into [`LEAST`].
    pub fn create(path: &Path, header: &[u8]) -> Result<RecordingFile> {
        RecordingFile::create_with(path, header, platform::grow)
    }

    fn create_with(path: &Path, header: &[u8], grow: Grow) -> Result<RecordingFile> {
        let (file, path) = create(path)?;
        let segment = || Segment { base: AtomicPtr::new(std::ptr::null_mut()), ready: AtomicU64::new(0) };
        let new = RecordingFile {
            file,
            path,
            cursor: AtomicU64::new((header.len() as u64).next_multiple_of(ALIGN)),
            segments: (0..SEGMENTS).map(|_| segment()).collect(),
            ahead: AtomicU64::new(1),
            full: Mutex::new(None),
            said_full: AtomicBool::new(false),
            grow,
        };
        let begun = new.map(0).and_then(|()| {
            let to = new.place(0, header.len() as u64).ok_or(ErrorKind::StorageFull)?;
            // SAFETY: the place has room for these bytes, and no other thread knows of it.
            unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), to, header.len()) };
            Ok(())
        });
        if let Err(error) = begun {
            std::fs::remove_file(&new.path).ok(); // nothing of use would be left
            return Err(error);
        }
        Ok(new)
    }

    /// Maps a segment, as much of it as the disk has room for. Only one thread at a time calls this.
    fn map(&self, index: u64) -> Result<()> {
        let segment = usize::try_from(index).ok().and_then(|at| self.segments.get(at));
        let segment = segment.ok_or(ErrorKind::FileTooLarge)?;
        let (from, ready) = (index * SEGMENT, segment.ready.load(Ordering::Relaxed));
        if ready == SEGMENT {
            return Ok(());
        }
        let mut full = self.full.lock().unwrap_or_else(|e| e.into_inner());
        if full.is_some_and(|since| since.elapsed() < FULL_PAUSE) {
            return Err(ErrorKind::StorageFull.into());
        }
        let mut more = SEGMENT - ready;
        loop {
            match (self.grow)(&self.file, from + ready, from + ready + more) {
                Ok(()) => break,
                Err(error) if is_full(&error) && more > LEAST => {
                    more = (more / 2).next_multiple_of(LEAST);
                    continue;
                }
                Err(error) => {
                    *full = Some(Instant::now());
                    return Err(error);
                }
            }
        }
        *full = None;
        if segment.base.load(Ordering::Relaxed).is_null() {
            // SAFETY: the file is this process's own. Where another cuts it nevertheless, `fault` steps in.
            let map = unsafe { memmap2::MmapOptions::new().offset(from).len(SEGMENT as usize).map_mut(&self.file)? };
            let base = map.as_ptr().cast_mut();
            std::mem::forget(map); // never unmapped
            fault::guard(base, SEGMENT as usize);
            segment.base.store(base, Ordering::Release);
        }
        // So that no callback waits for the file system at the first touch of a page.
        #[cfg(target_os = "linux")]
        {
            const POPULATE_WRITE: libc::c_int = 23;
            let start = segment.base.load(Ordering::Relaxed).wrapping_add(ready as usize);
            // SAFETY: advice on a part of the map; an old kernel refuses it.
            unsafe { libc::madvise(start.cast(), more as usize, POPULATE_WRITE) };
        }
        segment.ready.store(ready + more, Ordering::Release);
        Ok(())
    }

    /// The place of `bytes` bytes of the file in memory, if they are mapped and have blocks.
    fn place(&self, at: u64, bytes: u64) -> Option<*mut u8> {
        let segment = self.segments.get(usize::try_from(at / SEGMENT).ok()?)?;
        let within = at % SEGMENT;
        let there = within + bytes <= segment.ready.load(Ordering::Acquire);
        let base = segment.base.load(Ordering::Acquire);
        (there && !base.is_null()).then(|| base.wrapping_add(within as usize))
    }

    /// Room for a chunk of the caller alone, in the file or in memory that goes there later. `late` is called when the
    /// file should be mapped further.
    pub fn reserve(&self, bytes: u64, late: impl Fn()) -> Result<(*mut u8, Option<Arc<Spill>>)> {
        if bytes > SEGMENT {
            return Err(ErrorKind::FileTooLarge.into());
        }
        loop {
            // A record that fits nowhere takes no place in the file, so that it does not grow by what is lost.
            let next = self.cursor.load(Ordering::Relaxed);
            if self.place(next, bytes).is_none() && !spill::has_room(bytes) {
                late();
                return Err(ErrorKind::StorageFull.into());
            }
            let at = self.cursor.fetch_add(bytes, Ordering::Relaxed);
            if at / SEGMENT != (at + bytes - 1) / SEGMENT {
                late(); // what is left of the segment stays unused
                continue;
            }
            if at / SEGMENT >= SEGMENTS as u64 {
                return Err(ErrorKind::FileTooLarge.into());
            }
            if let Some(place) = self.place(at, bytes) {
                return Ok((place, None));
            }
            let wider = |ahead: u64| Some((ahead * 2).min(MAX_AHEAD));
            self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, wider).ok();
            late();
            let spill = Spill::new(at, bytes)?;
            return Ok((spill.memory(), Some(spill)));
        }
    }

    /// Maps the file ahead of the callbacks, and copies into it what they had to write into memory. Only one thread at
    /// a time calls this.
    pub fn map_ahead(&self) {
        let current = self.cursor.load(Ordering::Relaxed) / SEGMENT;
        for index in current..=current + self.ahead.load(Ordering::Relaxed) {
            if let Err(error) = self.map(index) {
                if index == current && !self.said_full.swap(true, Ordering::Relaxed) {
                    let path = self.path.display();
                    platform::say(format_args!("{path}: {error}: callbacks from now on may be lost"));
                }
                break;
            }
        }
        self.replay();
    }

    /// Copies chunks from memory to where they belong.
    fn replay(&self) {
        spill::replay(|at, bytes| {
            self.place(at, bytes).or_else(|| {
                self.map(at / SEGMENT).ok()?;
                self.place(at, bytes)
            })
        });
    }

    /// Copies what is left, and cuts the file behind the last chunk. Threads may still write into chunks that they
    /// have: they are not behind the cursor.
    pub fn end(&self) {
        self.replay();
        // Chunks that are still in memory have no place on the disk.
        let ready = self.segments.iter().map(|segment| segment.ready.load(Ordering::Acquire));
        let ready = (0..).zip(ready).filter(|(_, ready)| *ready > 0).map(|(index, ready)| index * SEGMENT + ready);
        if let (Some(end), false) = (ready.max(), fault::faulted()) {
            self.file.set_len(end.min(self.cursor.load(Ordering::Acquire))).ok();
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a smaller piece may do.
fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::alone::alone;

    const HEADER: &[u8] = b".corprof, not a whole one";

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_file_that_is_there_is_never_touched() {
        let folder = folder();
        let path = folder.path().join("app.v1.corprof");
        std::fs::write(&path, "of another process").unwrap();
        let [second, third] = [(), ()].map(|()| RecordingFile::create(&path, HEADER).unwrap());
        let pid = std::process::id();
        assert_eq!(second.path(), folder.path().join(format!("app.v1-{pid}.corprof")));
        assert_eq!(third.path(), folder.path().join(format!("app.v1-{pid}-2.corprof")));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "of another process");
        for file in [second, third] {
            file.end();
            assert!(std::fs::read(file.path()).unwrap().starts_with(HEADER));
        }
        // A recording goes into a file only, and nothing is made beside another kind of node.
        assert!(RecordingFile::create(Path::new("/dev/null"), HEADER).is_err());
        assert!(!PathBuf::from(format!("/dev/null-{pid}")).exists());
    }

    /// ext2 and others know no fallocate: a hole in the file would be SIGBUS on a full disk.
    #[test]
    fn where_blocks_cannot_be_reserved_they_are_written() {
        let folder = folder();
        let path = folder.path().join("app.corprof");
        let file = RecordingFile::create_with(&path, HEADER, platform::write_zeros).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert!(metadata.blocks() * 512 >= SEGMENT, "{} blocks", metadata.blocks());
        assert!(file.place(SEGMENT - 1, 1).is_some());
        file.end();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), ALIGN);
    }

    const DISK: u64 = 1 << 20;

    fn grow_on_a_small_disk(file: &File, from: u64, end: u64) -> Result<()> {
        if end > DISK { Err(ErrorKind::StorageFull.into()) } else { platform::grow(file, from, end) }
    }

    #[test]
    fn a_small_disk_is_used_to_its_end_and_then_memory() {
        alone("file::tests::a_small_disk_and_then_memory");
    }

    #[test]
    #[ignore = "run by the test above"]
    fn a_small_disk_and_then_memory() {
        let folder = folder();
        let file = RecordingFile::create_with(&folder.path().join("small"), HEADER, grow_on_a_small_disk).unwrap();
        let (mut on_disk, chunk) = (0, 64 << 10);
        // The file begins with a page for the header, so the last chunk of the disk does not fit.
        while let (_, None) = file.reserve(chunk, || ()).unwrap() {
            on_disk += chunk;
            file.map_ahead();
        }
        assert_eq!(on_disk, DISK - chunk);
        // Neither what waits in memory nor what is lost makes the file longer.
        while file.reserve(chunk, || ()).is_ok() {}
        let cursor = file.cursor.load(Ordering::Relaxed);
        assert!(file.reserve(chunk, || ()).is_err() && file.cursor.load(Ordering::Relaxed) == cursor);
        file.end();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), DISK);
    }

    fn no_disk(_: &File, _: u64, _: u64) -> Result<()> {
        Err(ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_full_disk_leaves_no_empty_file() {
        let folder = folder();
        let path = folder.path().join("app.corprof");
        let error = RecordingFile::create_with(&path, HEADER, no_disk).err().expect("no room");
        assert_eq!((error.kind(), path.exists()), (ErrorKind::StorageFull, false));
    }

    #[test]
    fn a_file_that_is_cut_from_outside_ends_nothing_but_the_recording() {
        alone("file::tests::a_write_into_a_cut_file");
    }

    /// Without the handler of `fault` this is SIGBUS.
    #[test]
    #[ignore = "run by the test above"]
    fn a_write_into_a_cut_file() {
        let folder = folder();
        let path = folder.path().join("app.corprof");
        let file = RecordingFile::create(&path, HEADER).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let (place, spill) = file.reserve(ALIGN, || ()).unwrap();
        assert!(spill.is_none() && !fault::faulted());
        // SAFETY: the place is this test's, with room for a page.
        unsafe { place.write_bytes(1, ALIGN as usize) };
        assert!(fault::faulted());
        file.end();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
