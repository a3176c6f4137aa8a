//! An object as a temporary file, so that it can be mapped like any other recording.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::address::Address;
use super::object::{Failure, Version};
use super::open::open;
use crate::prelude::*;
use crate::source::spooled::free_space;
use crate::source::temporary::{Named, named_in};

/// A copy of an object. The file goes when this is dropped.
#[derive(Debug)]
pub struct Fetched {
    file: Named,
    shown: PathBuf,
    /// Identifies the content of the object.
    pub version: Version,
}

impl PartialEq for Fetched {
    fn eq(&self, other: &Fetched) -> bool {
        (&self.shown, &self.version) == (&other.shown, &other.version)
    }
}

impl Eq for Fetched {}

impl Fetched {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The address in messages and in tables.
    pub fn shown(&self) -> &Path {
        &self.shown
    }
}

/// Copies the object at an address into a file in `folder`, through a small buffer, unless its entity tag is `unless`:
/// then nothing is returned. An object that would take more than half of the free space is an error before anything of
/// it is read. `stopped` ends it in the middle.
pub fn fetch(address: &Address, unless: Option<&str>, folder: &Path, stopped: &AtomicBool) -> Result<Option<Fetched>> {
    let shown = address.shown();
    let store = open(address)?;
    let (mut file, path) = named_in(folder, "object-").map_err(Error::io(folder))?;
    let limit = free_space(&file) / 2;
    let mut to = Counted { file: &mut file, written: 0, failed: None, stopped };
    let got = store.get(&address.key, unless, limit, &mut to);
    if let Some(source) = to.failed {
        // Of the disk of this machine, and no fault of the recording.
        return Err(Error::Io { path: folder.to_owned(), source });
    }
    let got = got.map_err(|failure| failure.at(&shown))?;
    let Some(got) = got else { return Ok(None) };
    if to.written != got.size {
        let what = format!("the download broke off: {} of {} bytes came", to.written, got.size);
        return Err(Failure::other(what).at(&shown));
    }
    Ok(Some(Fetched { file: path, shown, version: got.version }))
}

/// Bytes that may still be written below a folder.
pub fn room(folder: &Path) -> u64 {
    std::fs::File::open(folder).map_or(u64::MAX, |folder| free_space(&folder))
}

struct Counted<'f> {
    file: &'f mut std::fs::File,
    written: u64,
    failed: Option<std::io::Error>,
    stopped: &'f AtomicBool,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(std::io::Error::other("the run was ended"));
        }
        match self.file.write(bytes) {
            Ok(written) => {
                self.written += written as u64;
                Ok(written)
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let copy = std::io::Error::from(e.kind());
                self.failed = Some(e);
                Err(copy)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
