//! Unpacks .gz, .zst and .zip.

use crate::prelude::*;
use std::fmt;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::MappedFile;
use super::reopened::Reopened;
use super::spooled::{Spooled, Unpacked, spool_limit, too_large};

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const ZIP: &[u8] = b"PK\x03\x04";
/// Logs of one archive that are read; a .diagsession holds two or three.
const MAX_LOGS: usize = 64;

/// Whether the first bytes are those of a packed file.
pub fn is_packed(head: &[u8]) -> bool {
    head.starts_with(GZIP) || head.starts_with(ZSTD) || head.starts_with(ZIP)
}

/// Opens a packed file of `len` bytes that begins with `head`, and goes by the name `shown` in messages.
pub(super) fn unpack_file(path: &Path, shown: &Path, len: u64, head: &[u8]) -> Result<Unpacked> {
    if head.starts_with(ZIP) {
        return unpack_zip(path, shown, len);
    }
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    Ok(Unpacked::Stream(Box::new(file)))
}

/// The inside of a .gz or .zst stream.
pub fn unpack_stream(path: &Path, reader: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let mut reader = std::io::BufReader::with_capacity(256 << 10, reader);
    let head = std::io::BufRead::fill_buf(&mut reader).map_err(Error::io(path))?;
    if head.starts_with(GZIP) {
        Ok(Box::new(flate2::bufread::MultiGzDecoder::new(reader)))
    } else if head.starts_with(ZSTD) {
        let decoder = zstd::stream::read::Decoder::with_buffer(reader).map_err(Error::io(path))?;
        Ok(Box::new(decoder))
    } else if head.starts_with(ZIP) {
        Err(Error::Usage(format!("{}: a .zip cannot be read from a pipe, its directory is at the end", path.display())))
    } else {
        Ok(Box::new(reader))
    }
}

type Archive = zip::ZipArchive<Reopened>;

fn open_zip(path: &Path, shown: &Path) -> Result<Archive> {
    let broken = |what: String| Error::Unreadable {
        path: shown.to_owned(),
        offset: 0,
        what,
        expected: "a .zip with a recording in it".into(),
    };
    let file = Reopened::open(path).map_err(Error::io(path))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| match error.to_string() {
        // "End of central directory".
        text if text.contains("EOCD") => broken("the .zip is cut off: the directory at its end is missing".into()),
        text => broken(format!("damaged .zip: {text}")),
    })?;
    // Entries that share their bytes make a small archive expand without bound.
    match archive.has_overlapping_entries() {
        Ok(true) => Err(broken("damaged .zip: its entries overlap".into())),
        _ => Ok(archive),
    }
}

/// The part of an archive that is one recording: an entry, or the logs of one session.
#[derive(Clone, Debug)]
struct Held {
    /// The name of the first entry.
    name: String,
    entries: Vec<usize>,
}

/// The recordings of an archive in the order of its directory. All its .etl are the logs of one session. An archive
/// with one entry holds a recording, whatever its name.
fn held(archive: &Archive) -> Vec<Held> {
    let names: Vec<String> = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let (mut all, mut logs): (Vec<Held>, Option<usize>) = (Vec::new(), None);
    for name in &names {
        let Some(index) = archive.index_for_name(name) else { continue };
        let lower = name.to_ascii_lowercase();
        let lower = [".gz", ".zst"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
        let is_log = lower.ends_with(".etl");
        let is_recording =
            is_log || [".nettrace", ".netperf", ".corprof", ".gcdump"].iter().any(|end| lower.ends_with(end));
        if !is_recording && names.len() > 1 {
            continue;
        }
        match logs.filter(|_| is_log).and_then(|place| all.get_mut(place)) {
            Some(logs) => logs.entries.push(index),
            None => {
                logs = logs.or_else(|| is_log.then_some(all.len()));
                all.push(Held { name: name.clone(), entries: vec![index] });
            }
        }
    }
    all
}

/// A recording in a .zip. The directory of the archive is read once, for all recordings in it.
#[derive(Clone)]
pub(super) struct Entry {
    archive: Arc<Archive>,
    held: Held,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({})", self.held.name)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.held.name == other.held.name
    }
}

impl Eq for Entry {}

/// The recordings in a .zip; none of anything else.
pub(super) fn recordings_in(path: &Path) -> Vec<Entry> {
    let is_zip = || {
        let mut head = [0; 4];
        let file = path.is_file().then(|| std::fs::File::open(path).ok())?;
        file?.read_exact(&mut head).ok()?;
        (head == *ZIP).then_some(())
    };
    let Some(archive) = is_zip().and_then(|()| open_zip(path, path).ok()) else { return Vec::new() };
    let all = held(&archive);
    // A clone has no file open: there may be many archives.
    let archive = Arc::new(archive.clone());
    all.into_iter().map(|held| Entry { archive: archive.clone(), held }).collect()
}

impl Entry {
    /// The name in the archive.
    pub fn name(&self) -> &str {
        &self.held.name
    }

    /// The unpacked entry, and the size of the archive, which goes by the name `shown` in messages.
    pub fn unpack(&self, path: &Path, shown: &Path) -> Result<(Unpacked, u64)> {
        let len = std::fs::metadata(path).map_err(Error::io(path))?.len();
        Ok((unpack_held(shown, len, Archive::clone(&self.archive), vec![self.held.clone()])?, len))
    }

    /// The bytes of the entry.
    pub fn bytes(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        let len = std::fs::metadata(path).map_err(Error::io(path))?.len();
        let entries = self.held.entries.clone();
        Ok(Box::new(stream(Archive::clone(&self.archive), entries).take(spool_limit(len))))
    }
}

/// A .zip with a recording in it (`app.nettrace.zip`), or with the logs of one session. Of several recordings, one
/// comes behind the other: the reader reads the first and says that there is another. Whoever wants all of them asks
/// [`super::RecordingPath`].
fn unpack_zip(path: &Path, shown: &Path, len: u64) -> Result<Unpacked> {
    let archive = open_zip(path, shown)?;
    let all = held(&archive);
    unpack_held(shown, len, archive, all)
}

/// The inside of an archive of `len` bytes: logs if there are several, or else one recording behind the other.
fn unpack_held(path: &Path, len: u64, archive: Archive, all: Vec<Held>) -> Result<Unpacked> {
    if let Some(logs) = all.iter().find(|held| held.entries.len() > 1) {
        return spool_logs(path, archive, &logs.entries, spool_limit(len));
    }
    if all.is_empty() {
        let is_of_perfcollect = |name: &str| name.contains(".trace/") && name.contains("perf.data");
        let mut names = archive.file_names().filter_map(|name| name.ok());
        let what = match names.any(|name| is_of_perfcollect(&name)) {
            true => "a recording of perfcollect, which is read by PerfView; expected one of dotnet-trace (.nettrace)",
            false => "no .nettrace, .netperf, .etl, .gcdump or .corprof in this .zip",
        };
        return Err(Error::Usage(format!("{}: {what}", path.display())));
    }
    let entries = all.into_iter().flat_map(|held| held.entries).collect();
    Ok(Unpacked::Stream(Box::new(stream(archive, entries))))
}

/// The bytes of some entries, one behind the other. They are unpacked by a thread of their own, or where no thread can be made by
/// who reads them.
fn stream(archive: Archive, entries: Vec<usize>) -> Box<dyn Read + Send> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(4);
    let here = Entries { archive, entries: entries.into_iter(), current: None };
    let mut aside = here.clone();
    let work = move || {
        loop {
            let mut block = Vec::new();
            let read = aside.by_ref().take(256 << 10).read_to_end(&mut block);
            let is_last = !matches!(read, Ok(1..));
            if sender.send(read.map(|_| block)).is_err() || is_last {
                return;
            }
        }
    };
    match std::thread::Builder::new().spawn(work) {
        Ok(_) => Box::new(Blocks { receiver, block: std::io::Cursor::default() }),
        Err(_) => Box::new(here),
    }
}

/// The logs of one session that come in one archive (`.diagsession`; `app.etl` and `app.kernel.etl` in a .zip), one
/// behind the other in a temporary file. All other files in it (symbols, metadata) are passed over.
fn spool_logs(path: &Path, mut archive: Archive, logs: &[usize], limit: u64) -> Result<Unpacked> {
    let mut file = super::temporary::file().map_err(Error::io("temporary file"))?;
    let (mut starts, mut failed, mut at) = (Vec::new(), None, 0u64);
    let mut block = Vec::new();
    for index in logs.iter().take(MAX_LOGS) {
        let begin = at;
        let mut entry = match archive.by_index(*index) {
            Ok(entry) => entry,
            Err(e) => {
                failed.get_or_insert(std::io::Error::other(e));
                continue;
            }
        };
        loop {
            block.clear();
            let read = entry.by_ref().take(256 << 10).read_to_end(&mut block);
            file.write_all(&block).map_err(Error::io("temporary file"))?;
            at += block.len() as u64;
            if let Err(e) = read {
                failed.get_or_insert(e);
                break;
            }
            if at > limit || block.is_empty() {
                break;
            }
        }
        if at > begin {
            starts.push(begin);
        }
        if at > limit {
            failed.get_or_insert_with(too_large);
            break;
        }
    }
    if logs.len() > MAX_LOGS {
        failed.get_or_insert_with(|| std::io::Error::other("holds more than 64 logs; the rest is not read"));
    }
    Ok(Unpacked::Logs(Spooled { map: MappedFile::from_file(path, file)?, starts, failed }))
}

/// The bytes of some entries, unpacked as they are read. The decoders of the crate zip borrow its archive; this owns what it reads.
struct Entries {
    archive: Archive,
    entries: std::vec::IntoIter<usize>,
    current: Option<Current>,
}

/// The entry that is read.
struct Current {
    bytes: Box<dyn Read + Send>,
    /// Of the bytes so far, and as the archive has it.
    sum: flate2::Crc,
    expected: u32,
}

impl Clone for Entries {
    /// Of entries that are not begun.
    fn clone(&self) -> Entries {
        Entries { archive: self.archive.clone(), entries: self.entries.clone(), current: None }
    }
}

impl Entries {
    fn open(&mut self, index: usize) -> std::io::Result<Current> {
        // `by_index` refuses encrypted entries, and methods of compression that are not built in.
        let entry = self.archive.by_index(index).map_err(std::io::Error::other)?;
        let (method, stored, expected) = (entry.compression(), entry.compressed_size(), entry.crc32());
        let start = entry.data_start().ok_or_else(|| std::io::Error::other("an entry of the .zip has no place"))?;
        drop(entry);
        let mut file = self.archive.clone().into_inner();
        file.seek(SeekFrom::Start(start))?;
        let packed = file.take(stored);
        let bytes: Box<dyn Read + Send> = match method {
            zip::CompressionMethod::Stored => Box::new(packed),
            zip::CompressionMethod::Deflated => Box::new(flate2::read::DeflateDecoder::new(packed)),
            other => return Err(std::io::Error::other(format!("an entry of the .zip is packed as {other}"))),
        };
        Ok(Current { bytes, sum: flate2::Crc::new(), expected })
    }
}

impl Read for Entries {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(current) = &mut self.current else {
                let Some(index) = self.entries.next() else { return Ok(0) };
                self.current = Some(self.open(index)?);
                continue;
            };
            let read = current.bytes.read(buffer)?;
            current.sum.update(buffer.get(..read).unwrap_or_default());
            if read > 0 {
                return Ok(read);
            }
            if current.sum.sum() != current.expected {
                self.entries = Vec::new().into_iter();
                self.current = None;
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "Invalid checksum"));
            }
            self.current = None;
        }
    }
}

/// Blocks that another thread unpacks.
struct Blocks {
    receiver: std::sync::mpsc::Receiver<std::io::Result<Vec<u8>>>,
    block: std::io::Cursor<Vec<u8>>,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let n = self.block.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            match self.receiver.recv() {
                Ok(block) => self.block = std::io::Cursor::new(block?),
                Err(_) => return Ok(0),
            }
        }
    }
}
