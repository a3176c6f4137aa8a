//! A folder for temporary files that is removed when it is dropped, and when the program is ended.

use crate::prelude::*;

use tracequet_dataset::write::Unfinished;

/// The folder.
#[derive(Debug)]
pub struct Folder {
    // Dropped in this order: what is removed need not be on the list.
    _unfinished: Unfinished,
    folder: tempfile::TempDir,
}

impl Folder {
    /// A new one, empty.
    pub fn new() -> Result<Folder> {
        let make = || tempfile::Builder::new().prefix("tracequet-").tempdir();
        let (folder, unfinished) = Unfinished::make(&[], make).map_err(Error::io("temporary directory"))?;
        Ok(Folder { _unfinished: unfinished, folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
