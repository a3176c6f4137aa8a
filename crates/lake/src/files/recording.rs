//! A recording that is written, and not in the dataset yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracequet_dataset::error::{Error, Result};

use tracequet_dataset::format::{hash_of, paths};
use tracequet_dataset::write::dataset_writer::{DatasetWriter, Finished, FinishedFile};
use tracequet_dataset::write::staging::{self, Staging};

/// The entry of a recording, in its hidden directory. No table has such a name.
const ENTRY: &str = ".entry";

/// A file on its way into a dataset.
#[derive(Debug)]
pub struct NewFile {
    /// The name in the dataset.
    pub name: String,
    /// Where it lies until then.
    pub path: PathBuf,
}

impl NewFile {
    /// The file of a table, which becomes a part of the recording `key`.
    pub(super) fn part(file: FinishedFile, key: &str, number: u32) -> NewFile {
        let extension = file.path.extension().unwrap_or_default().to_string_lossy();
        let name = format!("{}/{}", paths::folder(&file.table, key), paths::part(number, &extension));
        NewFile { name, path: file.path }
    }
}

/// A recording that is written, but not in the dataset yet. Dropped, its files are removed.
#[derive(Debug)]
pub struct NewRecording {
    key: String,
    hash: Option<String>,
    files: Vec<NewFile>,
    /// The recordings that go when it comes.
    pub replaced: Vec<String>,
    /// Where its entry lies until then.
    entry: PathBuf,
    staging: Arc<Staging>,
}

impl NewRecording {
    /// The files of `part`, with an `entry` whose `tables` name all of them. Recordings with the keys `replaced` go
    /// when it comes.
    pub fn new(key: &str, part: DatasetWriter, entry: &[u8], replaced: Vec<String>) -> Result<NewRecording> {
        staging::relative(key)?;
        let Finished { staging, prefix, files } = part.finished()?;
        let path = staging.path().join(format!("{prefix}{ENTRY}"));
        fs::write(&path, entry).map_err(Error::io(&path))?;
        let files = files.into_iter().map(|file| NewFile::part(file, key, 0)).collect();
        let hash = hash_of(entry);
        Ok(NewRecording { key: key.to_owned(), hash, files, replaced, entry: path, staging })
    }

    /// The number of files, with the entry.
    pub fn file_count(&self) -> usize {
        self.files.len() + 1
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The hash of what it was made of.
    pub fn hash(&self) -> Option<&str> {
        self.hash.as_deref()
    }

    /// The files of its tables.
    pub fn files(&self) -> &[NewFile] {
        &self.files
    }

    /// The file of its entry.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// The hidden directory with its files.
    pub(super) fn folder(&self) -> &Path {
        self.staging.path()
    }
}
