//! A hidden directory for recordings with hardly any files, which lie there side by side until they are put into the
//! dataset.

use crate::prelude::*;

use super::staging::Staging;

/// Recordings in one directory.
const MOST: usize = 512;

/// Where the files of small recordings are written. A directory is removed when no recording needs it any more.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    current: Option<Arc<Staging>>,
    /// Places that were given out in the current directory.
    places: usize,
}

impl Shelf {
    /// For the dataset of several recordings in `folder`. Nothing is made yet.
    pub fn new(folder: &Path) -> Shelf {
        Shelf { folder: folder.to_owned(), current: None, places: 0 }
    }

    /// A directory, and what the names of a recording's files begin with there.
    pub fn place(&mut self) -> Result<(Arc<Staging>, String)> {
        let staging = match &self.current {
            Some(staging) if self.places < MOST => staging.clone(),
            _ => {
                self.places = 0;
                self.current.insert(Arc::new(Staging::inside(&self.folder)?)).clone()
            }
        };
        self.places += 1;
        Ok((staging, format!("{}-", self.places)))
    }
}
