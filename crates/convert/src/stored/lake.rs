//! A dataset of several recordings that grows in a store: each recording appears by one object, its entry, which is written
//! when all its files are there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracequet_dataset::format::paths::{self, ENTRIES, MANIFEST, VIEWS, key_of, table_of};
use tracequet_dataset::format::{DamagedEntry, Entry, MOST_ENTRY_BYTES, MOST_MANIFEST_BYTES, Summed, hash_of, tag_of};
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_dataset::write::{Encoders, Lake, Put};
use tracequet_trace::error::{Error, Result};
use tracequet_trace::source::store::{Address, Failure, FailureKind, Object, Store, Version, When, each, open, read};

use super::dataset::{files_below, key_of_entry};
use crate::lake::described;
use crate::lake::empty::{Empty, is_of_now};
use crate::lake::head::head_of;
use crate::lake::repair::written_as;
use crate::request::Convert;

/// How often a summary is made again after another writer has written one.
const ATTEMPTS: u32 = 30;

type Stored<T> = std::result::Result<T, Failure>;

/// A dataset in a store, and the folder on this machine where recordings are made for it. The folder has files
/// only of those that are being written.
#[derive(Debug)]
pub(crate) struct StoreLake {
    store: Arc<dyn Store>,
    address: Address,
    folder: PathBuf,
    /// Entries that were read, by their key, each with its tag.
    seen: Mutex<HashMap<String, Seen>>,
    /// What was there when it was opened, until it is asked for.
    opened: Mutex<Option<Summed>>,
    /// Tables of which this run has seen to it that there is a file without rows.
    empty: Mutex<Vec<String>>,
    /// Whether the store was found to have no conditions.
    unconditional: AtomicBool,
}

/// The tag and the text of an entry.
type Seen = (Option<String>, Vec<u8>);

/// What became of a manifest that was to be written.
enum Summary {
    Written,
    /// Another writer has changed it since it was read.
    IsAnother,
}

/// Removes recordings of a dataset in a store.
pub(crate) fn remove(address: &Address, keys: &[String]) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::io("temporary directory"))?;
    let lake = StoreLake::open(open(address)?, address.clone(), folder.path(), false)?;
    let shown = address.shown();
    if !folder.path().join(MANIFEST).is_file() {
        return Err(Error::Usage(format!("{} is not a dataset of several recordings", shown.display())));
    }
    let (format, address_type) = head_of(folder.path())?;
    for key in keys {
        if !lake.remove(key).map_err(|failure| failure.at(&shown))? {
            return Err(Error::Usage(format!("{}: there is no recording {key}", shown.display())));
        }
    }
    lake.describe(&Convert { format, address_type, ..Convert::default() })
}

/// Writes the manifest of a dataset in a store anew, by the entries of its recordings. Returns what was damaged.
pub(crate) fn repair(address: &Address) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().map_err(Error::io("temporary directory"))?;
    let lake = StoreLake::open(open(address)?, address.clone(), folder.path(), true)?;
    lake.repair()
}

impl StoreLake {
    /// Opens the dataset at an address, which may be nothing yet. Its manifest is copied into the folder;
    /// if its entries are to be summed up `anew`, what it says of them is not used.
    pub(crate) fn open(store: Arc<dyn Store>, address: Address, folder: &Path, anew: bool) -> Result<StoreLake> {
        let lake = StoreLake {
            store,
            address,
            folder: folder.to_owned(),
            seen: Mutex::default(),
            opened: Mutex::default(),
            empty: Mutex::default(),
            unconditional: AtomicBool::new(false),
        };
        let entries_folder = folder.join(ENTRIES);
        std::fs::create_dir_all(&entries_folder).map_err(Error::io(&entries_folder))?;
        let shown = lake.address.shown();
        let manifest = read(lake.store.as_ref(), &lake.key(MANIFEST), MOST_MANIFEST_BYTES).map_err(|f| f.at(&shown))?;
        let listed = lake.listed().map_err(|failure| failure.at(&shown))?;
        let is_new = manifest.is_none() && listed.is_empty();
        if is_new && lake.has_something_else().map_err(|failure| failure.at(&shown))? {
            let message =
                format!("{} holds something else than a dataset of tracequet, so nothing is added", shown.display());
            return Err(Error::Usage(message));
        }
        let bytes = manifest.as_ref().map(|(bytes, _)| bytes.as_slice());
        let summed = lake.sum(bytes.filter(|_| !anew), &listed).map_err(|failure| failure.at(&shown))?;
        *lake.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(summed);
        if let Some(bytes) = bytes {
            let path = folder.join(MANIFEST);
            std::fs::write(&path, bytes).map_err(Error::io(path))?;
        }
        Ok(lake)
    }

    /// The recordings that there were when the dataset was opened. To be asked once.
    pub(crate) fn opened(&self) -> Result<Summed> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        opened.ok_or_else(|| Error::Internal("the recordings of a dataset were asked for twice".into()))
    }

    /// The address, as it is shown.
    pub(crate) fn shown(&self) -> PathBuf {
        self.address.shown()
    }

    /// Writes the files of tables without rows that the store does not have. They are made in `lake`, which is the
    /// folder; `version` is that of the tables of the dataset, if it says one.
    pub(crate) fn put_empty(
        &self,
        empty: &Empty<'_>,
        lake: &Lake,
        encoders: &Arc<Encoders>,
        version: Option<u32>,
    ) -> Result<()> {
        let names: Vec<&str> = empty.names().collect();
        let is_lacking = |name: &&str| Ok(!is_of_now(version) || !self.store.is_there(&self.key(&empty.path(name)))?);
        let shown = self.address.shown();
        let lacking = each(&names, is_lacking).map_err(|failure| failure.at(&shown))?;
        let lacking: Vec<&str> = names.iter().zip(lacking).filter(|(_, lacks)| *lacks).map(|(name, _)| *name).collect();
        empty.put_those(lake, encoders, |name| lacking.contains(&name))?;
        let uploaded = each(&lacking, |name| {
            let path = empty.path(name);
            self.store.upload(&self.key(&path), &self.folder.join(&path))
        });
        uploaded.map_err(|failure| failure.at(&shown))?;
        *self.empty.lock().unwrap_or_else(PoisonError::into_inner) = names.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// Writes a recording whose files lie in the folder: its files, then its entry. `replaced` are removed before. A
    /// recording that is there already stays, unless it is replaced. The files in the folder are removed.
    pub(crate) fn put(&self, key: &str, entry: &[u8], replaced: &[String]) -> Result<Put> {
        let files = files_below(&self.folder, |path| path.ends_with(&format!("/{}", paths::partition(key))))?;
        let result = self.put_files(key, entry, replaced, &files).map_err(|failure| failure.at(self.address.shown()));
        for file in &files {
            // What cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        result
    }

    fn put_files(&self, key: &str, entry: &[u8], replaced: &[String], files: &[String]) -> Stored<Put> {
        let entry_key = self.key(&paths::entry(key));
        // A file that cannot be read is tried at each run, and comes to the same.
        if replaced.iter().any(|old| old == key) && replaced.iter().all(|old| old == key) {
            match read(self.store.as_ref(), &entry_key, MOST_ENTRY_BYTES) {
                Ok(Some((bytes, _))) if bytes == entry => return Ok(Put::Done),
                Err(failure) if failure.kind != FailureKind::TooLarge => return Err(failure),
                _ => {}
            }
        }
        for old in replaced {
            self.remove(old)?;
        }
        let what_it_is = |there: &[u8]| if hash_of(there) == hash_of(entry) { Put::WasThere } else { Put::IsTaken };
        if self.store.is_there(&entry_key)? {
            return match read(self.store.as_ref(), &entry_key, MOST_ENTRY_BYTES) {
                Err(failure) if failure.kind == FailureKind::TooLarge => Ok(Put::IsTaken),
                there => Ok(there?.map_or(Put::WasThere, |(there, _)| what_it_is(&there))),
            };
        }
        each(files, |file| self.store.upload(&self.key(file), &self.folder.join(file)))?;
        match self.store.put(&entry_key, entry, When::Absent) {
            Err(failure) if failure.kind == FailureKind::Unsupported => {
                self.unconditional.store(true, Ordering::Release);
                self.store.put(&entry_key, entry, When::Always)?;
            }
            Err(failure) if failure.kind == FailureKind::Changed => {
                // It may be our own, written by a request whose answer was lost.
                let there = read(self.store.as_ref(), &entry_key, MOST_ENTRY_BYTES)?;
                if there.as_ref().is_none_or(|(bytes, _)| bytes != entry) {
                    return Ok(there.map_or(Put::WasThere, |(there, _)| what_it_is(&there)));
                }
            }
            result => result?,
        }
        Ok(Put::Done)
    }

    /// Removes a recording: first its entry, since what has none is not in the dataset. Returns whether it was there.
    pub(crate) fn remove(&self, key: &str) -> Stored<bool> {
        let entry_key = self.key(&paths::entry(key));
        let entry = match read(self.store.as_ref(), &entry_key, MOST_ENTRY_BYTES) {
            Ok(None) => return Ok(false),
            Ok(Some((entry, _))) => Entry::parse(key, &entry).ok(),
            Err(failure) if failure.kind == FailureKind::TooLarge => None,
            Err(failure) => return Err(failure),
        };
        self.store.delete(&entry_key)?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let Some(entry) = entry else {
            // It is damaged, and does not say where the files are.
            let objects = self.store.list(self.address.prefix())?;
            let own: Vec<_> = objects.iter().filter(|object| key_of(&object.key) == Some(key)).collect();
            return each(&own, |object| self.store.delete(&object.key)).map(|_| true);
        };
        each(&entry.tables, |table| {
            for object in self.store.list(&self.key(&paths::folder(&table.name, key)))? {
                self.store.delete(&object.key)?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Writes the manifest anew, whatever it says. Returns what is damaged, in words.
    fn repair(&self) -> Result<Vec<String>> {
        let shown = self.address.shown();
        let summed = self.opened()?;
        let manifest = std::fs::read(self.folder.join(MANIFEST)).ok();
        let prefix = self.address.below("");
        let names = || -> Stored<Vec<String>> {
            let objects = self.store.list(self.address.prefix())?.into_iter();
            Ok(objects.filter_map(|object| Some(object.key.strip_prefix(&prefix)?.to_owned())).collect())
        };
        let names = names().map_err(|failure| failure.at(&shown))?;
        let get = |name: &str| {
            let path = self.folder.join("table");
            let mut file = std::fs::File::create(&path).map_err(Error::io(&path))?;
            let got = self.store.get(&self.key(name), None, u64::MAX, &mut file);
            got.map_err(|failure| failure.at(shown.join(name)))?;
            Ok(path)
        };
        let (format, address_type) = written_as(&shown, manifest.as_deref(), &names, get)?;
        let empty = names.iter().filter(|name| key_of(name) == Some(paths::NO_RECORDING));
        let empty = empty.filter_map(|name| table_of(name)).map(str::to_owned).collect();
        *self.empty.lock().unwrap_or_else(PoisonError::into_inner) = empty;
        self.describe(&Convert { format, address_type, refresh: true, ..Convert::default() })?;
        Ok(summed.damaged().iter().map(|damaged| damaged.at(&shown).to_string()).collect())
    }

    /// Writes the files that sum up all recordings that there are now, whoever wrote them. When another writer does so
    /// at the same time, one of both repeats it, so that the last one has all.
    pub(crate) fn describe(&self, request: &Convert) -> Result<()> {
        let shown = self.address.shown();
        for attempt in 0..ATTEMPTS {
            let before =
                read(self.store.as_ref(), &self.key(MANIFEST), MOST_MANIFEST_BYTES).map_err(|f| f.at(&shown))?;
            let bytes = before.as_ref().map(|(bytes, _)| bytes.as_slice()).filter(|_| !request.refresh);
            let summed =
                self.listed().and_then(|listed| self.sum(bytes, &listed)).map_err(|failure| failure.at(&shown))?;
            let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let files = described::files(request, &summed, &empty)?;
            match self.put_summary(&files, before).map_err(|failure| failure.at(&shown))? {
                Summary::Written => return Ok(()),
                Summary::IsAnother => std::thread::sleep(Duration::from_millis(u64::from(attempt + 1) * 20)),
            }
        }
        let message =
            "other writers keep changing the manifest; the recordings are complete, and the next run adds them to it";
        Err(Failure::other(message).at(shown))
    }

    fn put_summary(&self, files: &[(&'static str, String)], before: Option<(Vec<u8>, Version)>) -> Stored<Summary> {
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
                Err(failure) if failure.kind == FailureKind::Changed => return Ok(Summary::IsAnother),
                Err(failure) if failure.kind == FailureKind::Unsupported => {
                    self.unconditional.store(true, Ordering::Release);
                    self.store.put(&key, text.as_bytes(), When::Always)?;
                }
                result => result?,
            }
        }
        Ok(Summary::Written)
    }

    /// Whether something lies at the address that is no part of a dataset of several recordings. Files of tables are
    /// files of a killed or an unfinished run; its entries and its manifest may have come since they were
    /// looked for.
    fn has_something_else(&self) -> Stored<bool> {
        let objects = self.store.list(self.address.prefix())?;
        let is_table = |key: &str| key_of(key).is_some() && table_of(key).is_some();
        let beside = [MANIFEST, VIEWS].map(|name| self.key(name));
        let is_part = |key: &String| is_table(key) || key_of_entry(key).is_some() || beside.contains(key);
        Ok(objects.iter().any(|object| !is_part(&object.key)))
    }

    /// A note for the user.
    pub(crate) fn note(&self) -> Option<String> {
        let is_unconditional = self.unconditional.load(Ordering::Acquire);
        is_unconditional.then(|| {
            format!(
                "{}: this store cannot write under a condition, so let one run at a time write to it",
                self.address.shown().display()
            )
        })
    }

    /// The entries that there are now, with their tags.
    fn listed(&self) -> Stored<Vec<(String, Object)>> {
        let objects = self.store.list(&self.key(ENTRIES))?.into_iter();
        let mut listed: Vec<_> =
            objects.filter_map(|object| Some((key_of_entry(&object.key)?.to_owned(), object))).collect();
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(listed)
    }

    /// Sums the entries up. Only those are read that the manifest does not have; all of them, if it has one that is gone or is
    /// another now.
    fn sum(&self, manifest: Option<&[u8]>, listed: &[(String, Object)]) -> Stored<Summed> {
        let known = manifest.and_then(|bytes| Summed::parse(bytes, SCHEMA_VERSION)).filter(|known| {
            let summed = listed.iter().filter_map(|(key, object)| Some((known.tag(key)?, tag_of_object(object)?)));
            summed.filter(|(tag, own)| tag == own).count() == known.len()
        });
        let mut summed = known.unwrap_or_else(|| Summed::new(SCHEMA_VERSION));
        let fresh: Vec<_> = listed.iter().filter(|(key, _)| summed.tag(key).is_none()).collect();
        let read = each(&fresh, |(key, object)| self.entry(key, object))?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ((key, _), entry) in fresh.into_iter().zip(read) {
            match entry {
                Some(Ok((etag, bytes))) => {
                    // Without a tag it is read each time.
                    summed.add(key, &etag.as_deref().map(tag_of_etag).unwrap_or_default(), &bytes);
                    seen.insert(key.clone(), (etag, bytes));
                }
                Some(Err(damaged)) => summed.add_damaged(damaged),
                None => {}
            }
        }
        Ok(summed)
    }

    /// An entry with its tag, or why it is not read; nothing if it was removed meanwhile. One that was read and has not changed
    /// is not read again.
    fn entry(&self, key: &str, object: &Object) -> Stored<Option<std::result::Result<Seen, DamagedEntry>>> {
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        if let Some(known) = known.filter(|(etag, _)| etag.is_some() && *etag == object.etag) {
            return Ok(Some(Ok(known)));
        }
        match read(self.store.as_ref(), &object.key, MOST_ENTRY_BYTES) {
            Ok(found) => Ok(found.map(|(bytes, version)| Ok((version.etag, bytes)))),
            Err(failure) if failure.kind == FailureKind::TooLarge => Ok(Some(Err(DamagedEntry::too_large(key)))),
            Err(failure) => Err(failure),
        }
    }

    fn key(&self, name: &str) -> String {
        self.address.below(name)
    }
}

/// Identifies the content of an entry, with the length of other tags and without quotes.
fn tag_of_etag(etag: &str) -> String {
    format!("e{}", tag_of(etag.as_bytes()))
}

fn tag_of_object(object: &Object) -> Option<String> {
    object.etag.as_deref().map(tag_of_etag)
}

#[cfg(test)]
mod tests;
