//! Where a recording is: a file of its own, standard input, an object of a store, or a part of an archive that holds
//! several.

use crate::prelude::*;
use std::io::Read;
use std::sync::Arc;

use super::Input;
#[cfg(feature = "packed")]
use super::packed;
#[cfg(feature = "packed")]
use super::spooled::Unpacked;
use super::store::{Address, Fetched, shown};

/// Names a recording that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingPath {
    file: PathBuf,
    /// The place in an archive that holds several; the logs of one session go by the name of the first.
    #[cfg(feature = "packed")]
    entry: Option<packed::Entry>,
    /// The copy that was made of an object.
    copy: Option<Arc<Fetched>>,
}

impl RecordingPath {
    /// A file that is one recording; `-` is standard input. An object of a store is opened by a copy of it
    /// ([`RecordingPath::of_copy`]).
    pub fn of_file(file: &Path) -> RecordingPath {
        RecordingPath {
            file: file.to_owned(),
            #[cfg(feature = "packed")]
            entry: None,
            copy: None,
        }
    }

    /// An object of which there is a copy.
    pub fn of_copy(copy: Fetched) -> RecordingPath {
        let recording = RecordingPath::of_file(copy.file());
        RecordingPath { copy: Some(Arc::new(copy)), ..recording }
    }

    /// The recordings of an object of which there is a copy: one, but for a `.zip` that holds several. The copy is
    /// there as long as one of them is.
    pub fn all_of_copy(copy: Fetched) -> Vec<RecordingPath> {
        let copy = Arc::new(copy);
        let of_copy = |recording| RecordingPath { copy: Some(copy.clone()), ..recording };
        RecordingPath::all_in(copy.file()).into_iter().map(of_copy).collect()
    }

    /// The address, if it is an object of which there is no copy yet.
    pub fn address(&self) -> Option<Result<Address>> {
        if self.copy.is_some() { None } else { Address::parse(&self.file) }
    }

    /// Identifies the content of the object that it is a copy of, if the store provides that.
    pub fn etag(&self) -> Option<&str> {
        self.copy.as_ref()?.version.etag.as_deref()
    }

    /// The recordings of a file: one, but for a `.zip` that holds several. What cannot be read counts as one, so that
    /// [`RecordingPath::open`] says what is wrong with it.
    pub fn all_in(file: &Path) -> Vec<RecordingPath> {
        #[cfg(feature = "packed")]
        {
            let entries = packed::recordings_in(file);
            if entries.len() > 1 {
                let recording = |entry| RecordingPath { file: file.to_owned(), entry: Some(entry), copy: None };
                return entries.into_iter().map(recording).collect();
            }
        }
        vec![RecordingPath::of_file(file)]
    }

    /// The name in an archive that holds several.
    fn entry(&self) -> Option<&str> {
        #[cfg(feature = "packed")]
        {
            self.entry.as_ref().map(packed::Entry::name)
        }
        #[cfg(not(feature = "packed"))]
        {
            None
        }
    }

    /// The file that holds it.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The name in messages and in tables: the file, and behind it the name in the archive.
    pub fn name(&self) -> PathBuf {
        let file = self.copy.as_ref().map_or_else(|| shown(&self.file), |copy| copy.shown().to_owned());
        match self.entry() {
            None => file,
            // Put together as text: a name in an archive may be an absolute path.
            Some(entry) => {
                let mut name = file.into_os_string();
                name.push("/");
                name.push(entry);
                name.into()
            }
        }
    }

    /// Opens it.
    pub fn open(&self) -> Result<Input> {
        #[cfg(feature = "packed")]
        if let Some(entry) = &self.entry {
            let name = self.name();
            return match entry.unpack(&self.file, &name)? {
                (Unpacked::Stream(reader), len) => Input::from_reader(&name, reader, Some(len)),
                (Unpacked::Logs(logs), _) => Ok(Input::Logs(logs)),
            };
        }
        match &self.copy {
            Some(_) => Input::open_as(&self.file, &self.name()),
            None => Input::open(&self.file),
        }
    }

    /// Bytes of its file, if that is a regular one with no other recording in it.
    pub fn size_bytes(&self) -> Option<u64> {
        let found = std::fs::metadata(&self.file).ok().filter(|found| found.is_file() && self.entry().is_none());
        found.map(|found| found.len())
    }

    /// The bytes as they lie in the file or in the archive; nothing for what is no regular file.
    pub fn bytes(&self) -> Option<Result<Box<dyn Read + Send>>> {
        if !self.file.is_file() {
            return None;
        }
        #[cfg(feature = "packed")]
        if let Some(entry) = &self.entry {
            return Some(entry.bytes(&self.file));
        }
        let file = std::fs::File::open(&self.file).map_err(Error::io(&self.file));
        Some(file.map(|file| Box::new(file) as Box<dyn Read + Send>))
    }
}
