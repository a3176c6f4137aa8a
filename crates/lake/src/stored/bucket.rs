//! A dataset of several recordings in an object store. Files are uploaded; an entry is one object, written on the
//! condition that there is none, and the manifest on the condition that no other writer has replaced it.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::files::{Holds, Listed, Manifest, NewFile, NewRecording, ReadEntry, Storage, Turn};
use crate::prelude::*;
use tracequet_dataset::format::paths::{self, ENTRIES, MANIFEST, NO_RECORDING, VIEWS, key_of, table_of};
use tracequet_dataset::format::{
    DamagedEntry, Entry, Format, MOST_ENTRY_BYTES, MOST_MANIFEST_BYTES, Pack, PackHead, Recorded, tag_of,
};
use tracequet_dataset::write::read_small;
use tracequet_trace::source::store::{Address, Failure, FailureKind, Object, Store, When, each, open, read};

use super::dataset::{ON_THEIR_WAY, key_of_entry, on_its_way};
use super::folder::Folder;
use super::lease::Lease;

type Stored<T> = std::result::Result<T, Failure>;

/// A place in a store with a dataset of several recordings, and the folder on this machine where recordings are made
/// for it.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: Arc<dyn Store>,
    address: Address,
    folder: Folder,
    /// Files of tables without rows that are known to be there.
    empty: Mutex<HashSet<String>>,
    /// Whether the store was found to have no conditions.
    unconditional: AtomicBool,
}

impl Bucket {
    /// The dataset at an address.
    pub(crate) fn at(address: Address) -> Result<Bucket> {
        Bucket::of(open(&address)?, address)
    }

    fn of(store: Arc<dyn Store>, address: Address) -> Result<Bucket> {
        let folder = Folder::new()?;
        Ok(Bucket { store, address, folder, empty: Mutex::default(), unconditional: AtomicBool::new(false) })
    }

    /// Does something in the store. A failure is that of the address.
    fn ask<T>(&self, what: impl FnOnce(&dyn Store) -> Stored<T>) -> Result<T> {
        what(self.store.as_ref()).map_err(|failure| failure.at(self.shown()).into())
    }

    fn key(&self, name: &str) -> String {
        self.address.below(name)
    }

    fn upload(&self, files: &[NewFile]) -> Result<()> {
        self.ask(|store| each(files, |file| store.upload(&self.key(&file.name), &file.path))).map(drop)
    }

    /// Whether something lies at the address that is no part of a dataset of several recordings. Files of tables are
    /// files of a killed or an unfinished run; its entries and its manifest may have come since they were
    /// looked for.
    fn has_something_else(&self, objects: &[Object]) -> bool {
        let is_table = |key: &str| key_of(key).is_some() && table_of(key).is_some();
        let beside = [MANIFEST, VIEWS, LEASE].map(|name| self.key(name));
        let is_part = |key: &String| is_table(key) || key_of_entry(key).is_some() || beside.contains(key);
        !objects.iter().all(|object| is_part(&object.key))
    }

    /// The files that a recording has of these tables.
    fn objects_of<'t>(
        &self,
        store: &dyn Store,
        key: &str,
        tables: impl Iterator<Item = &'t String>,
    ) -> Stored<Vec<Object>> {
        let folders: Vec<String> = tables.map(|table| self.key(&paths::folder(table, key))).collect();
        Ok(each(&folders, |folder| store.list(folder))?.concat())
    }

    /// An entry with its tag and its text; nothing if it is not there.
    fn read_entry(&self, key: &str) -> Stored<Option<ReadEntry>> {
        match read(self.store.as_ref(), &self.key(&paths::entry(key)), MOST_ENTRY_BYTES) {
            // Without a tag it is read each time.
            Ok(found) => {
                Ok(found
                    .map(|(text, version)| Ok((version.etag.as_deref().map(tag_of_etag).unwrap_or_default(), text))))
            }
            Err(failure) if failure.kind == FailureKind::TooLarge => Ok(Some(Err(DamagedEntry::too_large(key)))),
            Err(failure) => Err(failure),
        }
    }

    /// Returns whether that is the entry now.
    fn put_entry(&self, new: &NewRecording) -> Result<bool> {
        let entry = read_small(new.entry()).map_err(Error::io(new.entry()))?;
        let key = self.key(&paths::entry(new.key()));
        self.ask(|store| self.put_if(store, &key, &entry, When::Absent))
    }

    /// Writes an entry on a condition, if the store has such, and returns whether that is the entry now.
    fn put_if(&self, store: &dyn Store, key: &str, entry: &[u8], when: When) -> Stored<bool> {
        match store.put(key, entry, when) {
            Err(failure) if failure.kind == FailureKind::Unsupported => {
                self.unconditional.store(true, Ordering::Release);
                store.put(key, entry, When::Always).map(|()| true)
            }
            // The entry may be our own, written by a request whose answer was lost.
            Err(failure) if failure.kind == FailureKind::Changed => {
                Ok(read(store, key, MOST_ENTRY_BYTES)?.is_some_and(|(there, _)| there == entry))
            }
            result => result.map(|()| true),
        }
    }
}

/// Held by whoever removes recordings or takes their places.
const LEASE: &str = "manifest/.lease";

impl Bucket {
    /// The packs that have their entry, and files on the way to their places.
    fn begun(&self) -> Result<BTreeSet<String>> {
        let prefix = self.key(ON_THEIR_WAY);
        let waiting = self.ask(|store| store.list(&prefix))?;
        let there = if waiting.is_empty() { Vec::new() } else { self.packs()? };
        let pack = |object: &Object| {
            let rest = object.key.strip_prefix(&prefix)?.trim_start_matches('/');
            rest.split('/').next().filter(|pack| there.iter().any(|one| one == pack)).map(str::to_owned)
        };
        Ok(waiting.iter().filter_map(pack).collect())
    }

    /// Moves the files of a pack that has its entry to their places, table by table: the old ones go first, so that a
    /// glob finds no row twice. `files` are those that are on this machine; the others are fetched.
    fn take_places(&self, pack: &Pack, files: &[NewFile]) -> Result<()> {
        let entries: HashSet<String> = self.list()?.into_iter().map(|one| one.key).collect();
        let there = self.packs()?;
        let dead: Vec<&String> = pack.replaces.iter().filter(|name| there.contains(name)).collect();
        let mut away: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for table in &pack.tables {
            away.insert(table.name.clone(), Vec::new());
        }
        for name in &dead {
            let Some(Ok((_, text))) = self.entry(name)? else { continue };
            let Ok(old) = Pack::<Recorded>::parse(name, &text) else { continue };
            for table in old.tables {
                let names = (0u32..).zip(&table.files).map(|(number, _)| paths::packed(&table.name, name, number));
                let names: Vec<String> = names.collect();
                away.entry(table.name.clone()).or_default().extend(names);
            }
        }
        let left: Vec<_> = pack.members.iter().filter(|member| entries.contains(member.key())).collect();
        for member in &left {
            for table in member.rows.iter().filter_map(|(place, _)| pack.table(*place)) {
                let file = paths::file(&table.name, member.key(), Format::Parquet);
                away.entry(table.name.clone()).or_default().push(file);
            }
        }
        let copies = self.folder.path().join("moving");
        for (table, old) in &away {
            self.ask(|store| each(old, |name| store.delete(&self.key(name))))?;
            let count = pack.tables.iter().find(|one| one.name == *table).map_or(0, |table| table.files.len());
            for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
                let name = paths::packed(table, &pack.name, number);
                let waiting = on_its_way(&pack.name, &name);
                let here = files.iter().find(|file| file.name == name).map(|file| file.path.clone());
                let path = match here {
                    Some(path) => path,
                    // Where it is no more it is in its place.
                    None if !self.ask(|store| store.is_there(&self.key(&waiting)))? => continue,
                    None => self.fetched(&waiting, &copies)?,
                };
                self.ask(|store| store.upload(&self.key(&name), &path))?;
                self.ask(|store| store.delete(&self.key(&waiting)))?;
                if path.starts_with(&copies) {
                    std::fs::remove_file(&path).map_err(Error::io(&path))?;
                }
            }
        }
        let keys = left.iter().map(|member| member.key()).chain(dead.iter().map(|name| name.as_str()));
        let keys: Vec<String> = keys.map(|key| self.key(&paths::entry(key))).collect();
        self.ask(|store| each(&keys, |key| store.delete(key))).map(drop)
    }
}

impl Storage for Bucket {
    fn shown(&self) -> PathBuf {
        self.address.shown()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn holds(&self) -> Result<Holds> {
        if !self.list()?.is_empty() || !self.packs()?.is_empty() {
            return Ok(Holds::Recordings);
        }
        let objects = self.ask(|store| store.list(self.address.prefix()))?;
        Ok(match self.has_something_else(&objects) {
            true => Holds::SomethingElse,
            false if objects.is_empty() => Holds::Nothing,
            false => Holds::Recordings,
        })
    }

    /// Does what a killed compaction has left to do.
    fn open(&self) -> Result<()> {
        if self.begun()?.is_empty() {
            return Ok(());
        }
        let _turn = self.turn_for(&[])?;
        self.settle(Duration::ZERO)
    }

    fn manifest(&self) -> Result<Option<Manifest>> {
        let found = self.ask(|store| read(store, &self.key(MANIFEST), MOST_MANIFEST_BYTES))?;
        Ok(found.map(|(text, version)| Manifest { text: Ok(text), version, written: None }))
    }

    fn list(&self) -> Result<Vec<Listed>> {
        let objects = self.ask(|store| store.list(&self.key(ENTRIES)))?;
        let listed = |object: &Object| {
            let key = key_of_entry(&object.key)?.to_owned();
            // A tag that no entry has: one without a tag is read each time.
            let tag = object.etag.as_deref().map_or_else(|| "?".to_owned(), tag_of_etag);
            Some(Listed { key, tag: Some(tag), changed: None })
        };
        let mut listed: Vec<_> = objects.iter().filter_map(listed).collect();
        listed.sort();
        Ok(listed)
    }

    fn read(&self, listed: &[&Listed], each_read: &mut dyn FnMut(&str, ReadEntry)) -> Result<()> {
        for some in listed.chunks(AT_ONCE) {
            let read = self.ask(|_| each(some, |one| self.read_entry(&one.key)))?;
            for (one, entry) in some.iter().zip(read) {
                if let Some(entry) = entry {
                    each_read(&one.key, entry);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, key: &str) -> Result<Option<ReadEntry>> {
        self.ask(|_| self.read_entry(key))
    }

    fn pack_head(&self, name: &str) -> Result<Option<std::result::Result<Vec<u8>, DamagedEntry>>> {
        let key = self.key(&paths::entry(name));
        self.ask(|store| match store.head(&key, HEAD) {
            Ok(bytes) if bytes.contains(&b'\n') => Ok(Some(Ok(bytes))),
            Ok(_) => Ok(self.read_entry(name)?.map(|entry| entry.map(|(_, text)| text))),
            Err(failure) if failure.kind == FailureKind::Missing => Ok(None),
            Err(failure) => Err(failure),
        })
    }

    fn has(&self, names: &[String]) -> Result<Vec<bool>> {
        let known = self.empty.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_there = |name: &String| Ok(known.contains(name) || self.store.is_there(&self.key(name))?);
        let there = self.ask(|_| each(names, is_there))?;
        let found = names.iter().zip(&there).filter(|(name, is)| **is && key_of(name) == Some(NO_RECORDING));
        self.empty.lock().unwrap_or_else(PoisonError::into_inner).extend(found.map(|(name, _)| name.clone()));
        Ok(there)
    }

    fn copy(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join("copy");
        let mut file = File::create(&path).map_err(Error::io(&path))?;
        let got = self.store.get(&self.key(name), None, u64::MAX, &mut file);
        got.map_err(|failure| failure.at(self.shown().join(name)))?;
        Ok(path)
    }

    fn put_files(&self, new: &NewRecording, _: bool) -> Result<()> {
        self.upload(new.files())
    }

    fn put_entries(&self, new: &[&NewRecording]) -> Result<Vec<bool>> {
        new.iter().map(|new| self.put_entry(new)).collect()
    }

    fn put_empty(&self, files: &[NewFile]) -> Result<()> {
        self.upload(files)?;
        let names = files.iter().map(|file| file.name.clone());
        self.empty.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        Ok(())
    }

    fn put_summary(&self, files: &[(&'static str, String)], before: Option<&Manifest>) -> Result<bool> {
        self.ask(|store| {
            for (name, text) in files {
                let (key, text) = (self.key(name), text.as_bytes());
                let when = match before {
                    _ if *name != MANIFEST => When::Always,
                    None => When::Absent,
                    Some(before) if before.text.as_ref().is_ok_and(|before| before == text) => continue,
                    Some(before) if before.version.etag.is_some() => When::Unchanged(&before.version),
                    Some(_) => When::Always,
                };
                match store.put(&key, text, when) {
                    Err(failure) if failure.kind == FailureKind::Changed => return Ok(false),
                    Err(failure) if failure.kind == FailureKind::Unsupported => {
                        store.put(&key, text, When::Always)?;
                    }
                    result => result?,
                }
            }
            Ok(true)
        })
    }

    fn take_away(&self, key: &str) -> Result<bool> {
        let Some(entry) = self.entry(key)? else { return Ok(false) };
        self.ask(|store| {
            store.delete(&self.key(&paths::entry(key)))?;
            let objects = match entry.and_then(|(_, text)| Entry::parse(key, &text)) {
                Ok(entry) => self.objects_of(store, key, entry.tables.iter().map(|table| &table.name))?,
                // The entry is damaged, and does not say where the files are.
                Err(_) => {
                    let all = store.list(self.address.prefix())?.into_iter();
                    all.filter(|object| key_of(&object.key) == Some(key)).collect()
                }
            };
            each(&objects, |object| store.delete(&object.key)).map(|_| true)
        })
    }

    fn shrink(&self, key: &str, entry: &[u8], gone: &[String]) -> Result<()> {
        self.ask(|store| {
            store.put(&self.key(&paths::entry(key)), entry, When::Always)?;
            let objects = self.objects_of(store, key, gone.iter())?;
            each(&objects, |object| store.delete(&object.key)).map(drop)
        })
    }

    fn packs(&self) -> Result<Vec<String>> {
        let folder = self.key(&format!("{ENTRIES}/{}", paths::PACKS));
        let objects = self.ask(|store| store.list(&folder))?;
        let name = |object: &Object| paths::pack_of_entry(object.key.rsplit('/').next()?).map(str::to_owned);
        let mut packs: Vec<String> = objects.iter().filter_map(name).collect();
        packs.sort();
        Ok(packs)
    }

    fn fetched(&self, name: &str, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(tag_of(name.as_bytes()));
        if path.exists() {
            return Ok(path);
        }
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let mut file = File::create(&path).map_err(Error::io(&path))?;
        let mut got = self.store.get(&self.key(name), None, u64::MAX, &mut file);
        if let (Err(FailureKind::Missing), Some(pack)) = (got.as_ref().map_err(|failure| failure.kind), key_of(name)) {
            got = self.store.get(&self.key(&on_its_way(pack, name)), None, u64::MAX, &mut file);
        }
        got.map_err(|failure| failure.at(self.shown().join(name)))?;
        Ok(path)
    }

    fn turn_for(&self, coming: &[NewRecording]) -> Result<Turn> {
        // Recordings that only come are put under conditions.
        if !coming.is_empty() && coming.iter().all(|new| new.replaced.is_empty()) {
            return Ok(Turn::default());
        }
        let lease = Lease::take(self.store.clone(), self.key(LEASE)).map_err(|failure| failure.at(self.shown()))?;
        Ok(Turn::holding(lease))
    }

    fn prepare_pack(&self, pack: &Pack, files: &[NewFile]) -> Result<()> {
        let key = |file: &NewFile| self.key(&on_its_way(&pack.name, &file.name));
        self.ask(|store| each(files, |file| store.upload(&key(file), &file.path))).map(drop)
    }

    fn put_pack(&self, pack: &Pack, files: &[NewFile]) -> Result<()> {
        let entry = self.key(&paths::entry(&pack.name));
        // The name is made of the content, so that an object of this name has it.
        self.ask(|store| self.put_if(store, &entry, &pack.text(), When::Absent))?;
        self.take_places(pack, files)
    }

    fn take_pack_away(&self, name: &str) -> Result<bool> {
        let Some(entry) = self.entry(name)? else { return Ok(false) };
        let (_, text) = entry.map_err(|damaged| damaged.at(&self.shown()))?;
        let pack = PackHead::parse(name, &text).map_err(|damaged| damaged.at(&self.shown()))?;
        self.ask(|store| {
            store.delete(&self.key(&paths::entry(name)))?;
            let objects = self.objects_of(store, name, pack.tables.iter().map(|table| &table.name))?;
            each(&objects, |object| store.delete(&object.key)).map(|_| true)
        })
    }

    /// Files whose place was taken go at once: a store has no names that globs do not see for free.
    fn settle(&self, _: Duration) -> Result<()> {
        for name in self.begun()? {
            let Some(Ok((_, text))) = self.entry(&name)? else { continue };
            if let Ok(pack) = Pack::<Recorded>::parse(&name, &text) {
                self.take_places(&pack, &[])?;
            }
        }
        Ok(())
    }

    /// The entry comes first, so that of two who do this at once the file is that of the one whose entry is there.
    fn relabel(&self, key: &str, before: &[u8], entry: &[u8], file: Option<&NewFile>) -> Result<bool> {
        let name = self.key(&paths::entry(key));
        let is_put = self.ask(|store| {
            let Some((there, version)) = read(store, &name, MOST_ENTRY_BYTES)? else { return Ok(false) };
            if there != before {
                return Ok(false);
            }
            let when = if version.etag.is_some() { When::Unchanged(&version) } else { When::Always };
            self.put_if(store, &name, entry, when)
        })?;
        if is_put {
            match file {
                Some(file) => self.upload(std::slice::from_ref(file))?,
                None => self.ask(|store| {
                    let objects = self.objects_of(store, key, std::iter::once(&paths::LABELS.to_owned()))?;
                    each(&objects, |object| store.delete(&object.key)).map(drop)
                })?,
            }
        }
        Ok(is_put)
    }

    fn note(&self) -> Option<String> {
        let is_unconditional = self.unconditional.load(Ordering::Acquire);
        is_unconditional.then(|| {
            format!(
                "{}: this store cannot write under a condition, so let one run at a time write to it",
                self.address.shown().display()
            )
        })
    }
}

/// Bytes of an entry of a pack that mostly have its first line: 32 for each of 8,192 recordings, and its tables.
const HEAD: u64 = 512 << 10;

/// Entries that are in memory at once.
const AT_ONCE: usize = 256;

/// Identifies the content of an entry, with the length of other tags and without quotes.
fn tag_of_etag(etag: &str) -> String {
    format!("e{}", tag_of(etag.as_bytes()))
}

#[cfg(test)]
mod tests;
