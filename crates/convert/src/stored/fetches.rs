//! Copies of objects that recordings are read from, in a folder that goes at the end.

use crate::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tracequet_trace::source::RecordingPath;
use tracequet_trace::source::store::{Address, Fetched, fetch};

use super::inputs::why_not;
use tracequet_lake::Folder;

/// Makes copies of objects. They lie in a folder for temporary files, which is made for the first.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    folder: Mutex<Option<Folder>>,
    stopped: AtomicBool,
}

impl Fetches {
    /// A copy of the object at an address. Nothing if its entity tag is `unless`.
    pub(crate) fn fetch(&self, address: &Address, unless: Option<&str>) -> Result<Option<Fetched>> {
        why_not(address)?;
        Ok(fetch(address, unless, &self.folder()?, &self.stopped)?)
    }

    /// A recording on this machine: itself if it is a file, or else a copy.
    pub(crate) fn here(&self, recording: &RecordingPath) -> Result<RecordingPath> {
        let Some(address) = recording.address() else { return Ok(recording.clone()) };
        let copy = self.fetch(&address?, None)?;
        copy.map(RecordingPath::of_copy).ok_or_else(|| Error::Internal("an object without a copy".into()))
    }

    /// Ends what is under way.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Whether it was ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn folder(&self) -> Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*folder {
            return Ok(folder.path().to_owned());
        }
        let made = folder.insert(Folder::new()?);
        Ok(made.path().to_owned())
    }
}
