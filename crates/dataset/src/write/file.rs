//! The file of one table, opened only while bytes go into it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// A dataset can have more tables than a process may have open files, so a table's file is opened by the first write
/// and let go by [`TableFile::release`]; a later write appends.
#[derive(Debug)]
pub(super) struct TableFile {
    path: PathBuf,
    open: Option<File>,
    created: bool,
    written: u64,
}

impl TableFile {
    /// A file at `path`, which does not exist yet. Nothing is touched before the first write.
    pub(super) fn new(path: PathBuf) -> TableFile {
        TableFile { path, open: None, created: false, written: 0 }
    }

    /// Bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Closes the handle until the next write.
    pub(super) fn release(&mut self) {
        self.open = None;
    }

    fn handle(&mut self) -> std::io::Result<&mut File> {
        if self.open.is_none() {
            let mut options = OpenOptions::new();
            if self.created {
                options.append(true);
            } else {
                // create_new: two names that differ only in case are one file on some systems, and must not mix.
                options.write(true).create_new(true);
            }
            let opened = options.open(&self.path);
            self.open = Some(match (opened, self.path.parent()) {
                (Err(e), Some(folder)) if !self.created && e.kind() == ErrorKind::NotFound => {
                    std::fs::create_dir_all(folder)?;
                    options.open(&self.path)?
                }
                (opened, _) => opened?,
            });
            self.created = true;
        }
        self.open.as_mut().ok_or_else(|| std::io::Error::other("no file"))
    }
}

impl Write for TableFile {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let count = self.handle()?.write(buffer)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.open.as_mut().map_or(Ok(()), File::flush)
    }
}
