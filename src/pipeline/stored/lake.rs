//! A dataset of several recordings that grows in a store: each recording appears by one object, its entry, which is written
//! when all its files are there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::dataset::{ENTRIES, MANIFEST, MOST_BYTES, files_below, key_of_entry};
use crate::error::{Error, Result};
use crate::pipeline::describe;
use crate::pipeline::known::head_of;
use crate::pipeline::request::Convert;
use crate::sink::{Put, entry_path};
use crate::source::store::{Address, Failure, FailureKind, Store, Version, When, each, open, read};

/// So often a summary is made anew when somebody else has written one meanwhile.
const ATTEMPTS: u32 = 30;

type Stored<T> = std::result::Result<T, Failure>;

/// A dataset in a store, and the folder on this machine where recordings are made for it. The folder has the entries of all
/// recordings, and files only of those that are being written.
#[derive(Debug)]
pub(in crate::pipeline) struct StoreLake {
    store: Arc<dyn Store>,
    address: Address,
    folder: PathBuf,
    /// Entries that were read, by their key, each with its tag.
    seen: Mutex<HashMap<String, (Option<String>, Vec<u8>)>>,
    /// Whether the store was found to have no conditions.
    unconditional: AtomicBool,
}

/// Removes recordings of a dataset in a store.
pub(in crate::pipeline) fn remove(address: &Address, keys: &[String]) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::io("temporary directory"))?;
    let lake = StoreLake::open(open(address)?, address.clone(), folder.path())?;
    let shown = address.shown();
    if !folder.path().join(MANIFEST).is_file() {
        return Err(Error::Usage(format!("{} is no dataset of several recordings", shown.display())));
    }
    let (format, address_type) = head_of(folder.path())?;
    for key in keys {
        if !lake.remove(key).map_err(|failure| failure.at(&shown))? {
            return Err(Error::Usage(format!("{}: there is no recording {key}", shown.display())));
        }
    }
    lake.describe(&Convert { format, address_type, ..Convert::default() })
}

impl StoreLake {
    /// Opens the dataset at an address, which may be nothing yet. Its manifest and its entries are copied into the folder.
    pub(in crate::pipeline) fn open(store: Arc<dyn Store>, address: Address, folder: &Path) -> Result<StoreLake> {
        let lake = StoreLake {
            store,
            address,
            folder: folder.to_owned(),
            seen: Mutex::default(),
            unconditional: AtomicBool::new(false),
        };
        let entries_folder = folder.join(ENTRIES);
        std::fs::create_dir_all(&entries_folder).map_err(Error::io(&entries_folder))?;
        let shown = lake.address.shown();
        let manifest = read(lake.store.as_ref(), &lake.key(MANIFEST), MOST_BYTES).map_err(|f| f.at(&shown))?;
        let entries = lake.entries().map_err(|failure| failure.at(&shown))?;
        if manifest.is_none() && entries.is_empty() {
            let has_any = lake.store.has_any(lake.address.prefix()).map_err(|failure| failure.at(&shown))?;
            if has_any {
                let message = format!(
                    "{} holds something else than a dataset of tracequet, so nothing is added",
                    shown.display()
                );
                return Err(Error::Usage(message));
            }
        }
        if let Some((bytes, _)) = manifest {
            write(&folder.join(MANIFEST), &bytes)?;
        }
        for (key, bytes) in entries {
            write(&folder.join(entry_path(&key)), &bytes)?;
        }
        Ok(lake)
    }

    /// Writes a recording whose files lie in the folder: its files, then its entry. `replaced` are removed before. A
    /// recording that is there already stays, unless it is replaced. The files in the folder are removed.
    pub(in crate::pipeline) fn put(&self, key: &str, entry: &[u8], replaced: &[String]) -> Result<Put> {
        let files = files_below(&self.folder, |path| path.ends_with(&format!("/trace={key}")))?;
        let result = self.put_files(key, entry, replaced, &files).map_err(|failure| failure.at(self.address.shown()));
        for file in &files {
            // What cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        result
    }

    fn put_files(&self, key: &str, entry: &[u8], replaced: &[String], files: &[String]) -> Stored<Put> {
        for old in replaced {
            self.remove(old)?;
        }
        let entry_key = self.key(&format!("{ENTRIES}/{key}.json"));
        if self.store.is_there(&entry_key)? {
            return Ok(Put::WasThere);
        }
        each(files, |file| self.store.upload(&self.key(file), &self.folder.join(file)))?;
        match self.store.put(&entry_key, entry, When::Absent) {
            Err(failure) if failure.kind == FailureKind::Unsupported => {
                self.unconditional.store(true, Ordering::Release);
                self.store.put(&entry_key, entry, When::Always)?;
            }
            Err(failure) if failure.kind == FailureKind::Changed => {
                // It may be our own, written by a request whose answer was lost.
                let there = read(self.store.as_ref(), &entry_key, MOST_BYTES)?;
                if !there.is_some_and(|(bytes, _)| bytes == entry) {
                    return Ok(Put::WasThere);
                }
            }
            result => result?,
        }
        Ok(Put::Done)
    }

    /// Removes a recording: first its entry, since what has none is not in the dataset. Returns whether it was there.
    pub(in crate::pipeline) fn remove(&self, key: &str) -> Stored<bool> {
        let entry_key = self.key(&format!("{ENTRIES}/{key}.json"));
        let Some((entry, _)) = read(self.store.as_ref(), &entry_key, MOST_BYTES)? else { return Ok(false) };
        self.store.delete(&entry_key)?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let entry: serde_json::Value = serde_json::from_slice(&entry).unwrap_or_default();
        let tables = entry.get("tables").and_then(serde_json::Value::as_array).into_iter().flatten();
        let names: Vec<&str> = tables.filter_map(|table| table.get("name")?.as_str()).collect();
        each(&names, |table| {
            for object in self.store.list(&self.key(&format!("{table}/trace={key}")))? {
                self.store.delete(&object.key)?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Writes the files that sum up all recordings that there are now, whoever wrote them. When somebody else does so at the
    /// same time, one of both makes it anew, so that the last one has all.
    pub(in crate::pipeline) fn describe(&self, request: &Convert) -> Result<()> {
        let shown = self.address.shown();
        for attempt in 0..ATTEMPTS {
            let before = read(self.store.as_ref(), &self.key(MANIFEST), MOST_BYTES).map_err(|f| f.at(&shown))?;
            let entries = self.entries().map_err(|failure| failure.at(&shown))?;
            let files = describe::files(request, &entries)?;
            match self.put_summary(&files, before).map_err(|failure| failure.at(&shown))? {
                Put::Done => return Ok(()),
                Put::WasThere => std::thread::sleep(Duration::from_millis(u64::from(attempt + 1) * 20)),
            }
        }
        let message = "others write the manifest all the time; the recordings are there, and the next run sums them up";
        Err(Failure::other(message).at(shown))
    }

    fn put_summary(&self, files: &[(&'static str, String)], before: Option<(Vec<u8>, Version)>) -> Stored<Put> {
        for (name, text) in files {
            let key = self.key(name);
            if *name != MANIFEST {
                self.store.put(&key, text.as_bytes(), When::Always)?;
                continue;
            }
            let when = match &before {
                Some((bytes, _)) if bytes == text.as_bytes() => continue,
                Some((_, version)) if version.etag.is_some() => When::Unchanged(version),
                Some(_) => When::Always,
                None => When::Absent,
            };
            match self.store.put(&key, text.as_bytes(), when) {
                Err(failure) if failure.kind == FailureKind::Changed => return Ok(Put::WasThere),
                Err(failure) if failure.kind == FailureKind::Unsupported => {
                    self.unconditional.store(true, Ordering::Release);
                    self.store.put(&key, text.as_bytes(), When::Always)?;
                }
                result => result?,
            }
        }
        Ok(Put::Done)
    }

    /// What whoever started the run has to know.
    pub(in crate::pipeline) fn note(&self) -> Option<String> {
        let is_unconditional = self.unconditional.load(Ordering::Acquire);
        is_unconditional.then(|| {
            format!(
                "{}: this store cannot write under a condition, so let one run at a time write to it",
                self.address.shown().display()
            )
        })
    }

    /// The recordings that there are now: key and entry, in the order of keys. Only those that have changed are read.
    fn entries(&self) -> Stored<Vec<(String, Vec<u8>)>> {
        let listed = self.store.list(&self.key(ENTRIES))?;
        let listed: Vec<_> = listed.iter().filter_map(|object| Some((key_of_entry(&object.key)?, object))).collect();
        let read = each(&listed, |(key, object)| {
            let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(*key).cloned();
            if let Some((tag, bytes)) = known
                && tag.is_some()
                && tag == object.etag
            {
                return Ok(Some(((*key).to_owned(), tag, bytes)));
            }
            let found = read(self.store.as_ref(), &object.key, MOST_BYTES)?;
            // Removed meanwhile.
            Ok(found.map(|(bytes, version)| ((*key).to_owned(), version.etag, bytes)))
        })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clear();
        let mut entries = Vec::new();
        for (key, tag, bytes) in read.into_iter().flatten() {
            seen.insert(key.clone(), (tag, bytes.clone()));
            entries.push((key, bytes));
        }
        entries.sort();
        Ok(entries)
    }

    fn key(&self, name: &str) -> String {
        self.address.below(name)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(Error::io(path))
}
