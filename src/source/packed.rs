//! Sees through .gz, .zst and .zip.

use std::io::{Read, Write};
use std::path::Path;

use super::MappedFile;
use super::spooled::{Spooled, Unpacked, spool_limit, too_large};
use crate::error::{Error, Result};

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const ZIP: &[u8] = b"PK\x03\x04";
/// Logs of one archive that are read; a .diagsession holds two or three.
const MAX_LOGS: usize = 64;

/// Whether the first bytes are those of a packed file.
pub fn is_packed(head: &[u8]) -> bool {
    head.starts_with(GZIP) || head.starts_with(ZSTD) || head.starts_with(ZIP)
}

/// Opens a packed file.
pub(super) fn unpack_file(path: &Path, map: MappedFile) -> Result<Unpacked> {
    if map.bytes().starts_with(ZIP) {
        return unpack_zip(path, map);
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

/// A .zip with a recording in it (`app.nettrace.zip`), or with the logs of one session. Of several recordings, one comes
/// behind the other: the reader reads the first and says that there is another.
fn unpack_zip(path: &Path, map: MappedFile) -> Result<Unpacked> {
    let len = map.bytes().len() as u64;
    let broken = |e: zip::result::ZipError| Error::Unreadable {
        path: path.to_owned(),
        offset: 0,
        what: format!("damaged .zip: {e}"),
        expected: "a .zip with a recording in it".into(),
    };
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut archive = zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(broken)?;
    let is_recording = |name: &str| {
        let name = name.to_ascii_lowercase();
        [".nettrace", ".netperf", ".etl"].iter().any(|end| name.ends_with(end))
    };
    let names: Vec<String> = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let is_log = |name: &&String| name.to_ascii_lowercase().ends_with(".etl");
    if names.iter().filter(is_log).count() > 1 {
        let logs: Vec<usize> = names.iter().filter(is_log).filter_map(|name| archive.index_for_name(name)).collect();
        return spool_logs(path, archive, &logs, spool_limit(len));
    }
    let found: Vec<&String> = match names.as_slice() {
        [only] => vec![only],
        names => names.iter().filter(|name| is_recording(name)).collect(),
    };
    if found.is_empty() {
        return Err(Error::Usage(format!("{}: no .nettrace, .netperf or .etl in this .zip", path.display())));
    }
    let found: Vec<usize> = found.iter().filter_map(|name| archive.index_for_name(name)).collect();
    // The entry is read by a thread of its own: the decoder borrows the archive, the stream must own what it reads.
    let (sender, receiver) = std::sync::mpsc::sync_channel::<std::io::Result<Vec<u8>>>(4);
    std::thread::spawn(move || {
        for index in found {
            let mut entry = match archive.by_index(index) {
                Ok(entry) => entry,
                Err(e) => return drop(sender.send(Err(std::io::Error::other(e)))),
            };
            loop {
                let mut block = Vec::new();
                match entry.by_ref().take(256 << 10).read_to_end(&mut block) {
                    Ok(0) => break,
                    Ok(_) => {
                        if sender.send(Ok(block)).is_err() {
                            return;
                        }
                    }
                    Err(e) => return drop(sender.send(Err(e))),
                }
            }
        }
    });
    Ok(Unpacked::Stream(Box::new(Blocks { receiver, block: std::io::Cursor::default() })))
}

/// The logs of one session that come in one archive (`.diagsession`; `app.etl` and `app.kernel.etl` in a .zip), one
/// behind the other in a temporary file. All other files in it (symbols, metadata) are passed over.
fn spool_logs(
    path: &Path,
    mut archive: zip::ZipArchive<std::io::BufReader<std::fs::File>>,
    logs: &[usize],
    limit: u64,
) -> Result<Unpacked> {
    let mut file = tempfile::tempfile().map_err(Error::io("temporary file"))?;
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
