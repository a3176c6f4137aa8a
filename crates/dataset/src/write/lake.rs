//! A growing dataset of several recordings: each recording appears complete, also with several writers.
//!
//! `manifest/<key>.json` is the entry of a recording: what has no entry is not in the dataset. A recording's files are
//! written side by side in a hidden directory, then each is moved to `<table>/trace=<key>/`, and then its entry appears
//! by a rename. A table of which a recording has no rows has no file: `<table>/trace=none/` has one without rows, once
//! for the dataset. Whoever moves files holds the lock of the dataset. Before the first file moves,
//! `manifest/<key>.json.half` says which tables there will be: the next run takes away what a killed one left half
//! there. Recordings that are ready at the same time are put together, so that they wait for the disk once.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tracequet_trace::error::{Error, Result};

use super::dataset::{Dataset, Finished, FinishedFile};
use super::entries::{Parsed, names, read_small, summed};
use super::folders::{self, refuse_link, remove_all};
use super::staging::{self, PART, Staging};
use super::{durable, growing, leftovers, lock};
use crate::format::{Format, Summed, check_size, hash_of, paths};

/// The entry of a recording, in its hidden directory. No table has such a name.
const ENTRY: &str = ".entry";

/// A dataset of several recordings.
#[derive(Debug)]
pub struct Lake {
    root: PathBuf,
    /// Whether what was put lasts when the power fails. Not wanted where the whole directory is synced at the end.
    durable: bool,
    /// The manifest that was read last.
    manifest: Mutex<Option<Parsed>>,
}

/// A recording that is written, but not in the dataset yet. Dropped, its files are removed.
#[derive(Debug)]
pub struct NewRecording {
    key: String,
    sha256: String,
    files: Vec<FinishedFile>,
    replaced: Vec<String>,
    /// Where its entry lies until then.
    entry: PathBuf,
    staging: Arc<Staging>,
}

impl NewRecording {
    /// The files of `part`, with an `entry` whose `tables` name all of them. Recordings with the keys `replaced` go
    /// when it comes.
    pub fn new(key: &str, part: Dataset, entry: &[u8], replaced: Vec<String>) -> Result<NewRecording> {
        staging::relative(key)?;
        let Finished { staging, prefix, files } = part.finished()?;
        let path = staging.path().join(format!("{prefix}{ENTRY}"));
        fs::write(&path, entry).map_err(Error::io(&path))?;
        let sha256 = hash_of(entry).unwrap_or_default();
        Ok(NewRecording { key: key.to_owned(), sha256, files, replaced, entry: path, staging })
    }

    /// How many files it is, with its entry.
    pub fn file_count(&self) -> usize {
        self.files.len() + 1
    }

    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The recordings that go when it comes.
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }
}

/// What became of a recording that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is in the dataset.
    Done,
    /// Another writer has put it in the meantime, and it is left as it is.
    WasThere,
    /// A recording with other content has its key, and it was not put.
    IsTaken,
}

impl Lake {
    /// The dataset in a directory, which is made if it is not there. What a killed run left half there is removed. Fails if
    /// something that would have to be changed lies behind a link.
    pub fn open(root: &Path, durable: bool) -> Result<Lake> {
        let folder = root.join(paths::ENTRIES);
        refuse_link(&folder)?;
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let lake = Lake { root: root.to_owned(), durable, manifest: Mutex::default() };
        leftovers::remove(root, PART);
        let _lock = lake.lock()?;
        lake.remove_halves()?;
        Ok(lake)
    }

    /// The same dataset for what does not last: parts of a recording that something else will take the place of.
    pub fn without_syncing(&self) -> Lake {
        Lake { root: self.root.clone(), durable: false, manifest: Mutex::default() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The recordings, summed up; `anew` without what the manifest sums up. `schema_version` is that of the tables of
    /// this program.
    pub fn summed(&self, schema_version: u32, anew: bool) -> Result<Summed> {
        let mut before = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        summed(&self.root, schema_version, anew, &mut before)
    }

    /// Moves the files of recordings to their places and adds their entries, in this order. A recording that is there
    /// already stays, unless it is replaced.
    pub fn put(&self, recordings: &[NewRecording]) -> Result<Vec<Put>> {
        if self.durable {
            let trees: BTreeSet<&Path> = recordings.iter().map(|new| new.staging.path()).collect();
            durable::sync_trees(&trees.into_iter().collect::<Vec<_>>())?;
        }
        let _lock = self.lock()?;
        let _committing = growing::commit();
        let mut half = Vec::new();
        let outcomes = self.put_all(recordings, &mut half);
        if outcomes.is_err() {
            for key in half {
                // What cannot be removed now, the next run removes.
                let _ = self.remove_half(key, &self.half(key));
            }
        }
        outcomes
    }

    /// `half` are the keys whose files have begun to move, and that have no entry yet.
    fn put_all<'n>(&self, recordings: &'n [NewRecording], half: &mut Vec<&'n str>) -> Result<Vec<Put>> {
        let mut folders = BTreeSet::new();
        let mut outcomes = Vec::new();
        let mut keys: HashMap<&str, &str> = HashMap::new();
        for new in recordings {
            let key = new.key.as_str();
            if self.is_there_as_it_is(new) {
                outcomes.push(Put::Done);
                continue;
            }
            // Before anything is removed.
            let places: Vec<PathBuf> =
                new.files.iter().map(|file| self.folder(&file.table, key)).collect::<Result<_>>()?;
            let mut has_replaced = false;
            for old in &new.replaced {
                has_replaced |= self.take_away(old)?;
            }
            let there = self.hash_there(key)?.or_else(|| keys.get(key).map(|sha256| (*sha256).to_owned()));
            if let Some(there) = there {
                outcomes.push(if there == new.sha256 { Put::WasThere } else { Put::IsTaken });
                continue;
            }
            keys.insert(key, &new.sha256);
            let note = self.half(key);
            if fs::symlink_metadata(&note).is_ok() {
                // Another process was killed meanwhile.
                self.remove_half(key, &note)?;
            }
            fs::rename(&new.entry, &note).map_err(Error::io(&note))?;
            half.push(key);
            if has_replaced {
                // Maybe written before another writer summed up the old one: it must not be taken for that.
                let touched =
                    File::options().append(true).open(&note).and_then(|note| note.set_modified(SystemTime::now()));
                touched.map_err(Error::io(&note))?;
            }
            for (file, folder) in new.files.iter().zip(places) {
                fresh_folder(&folder)?;
                move_in(file, &folder, 0)?;
                folders.extend(folder.parent().map(Path::to_owned));
                folders.insert(folder);
            }
            outcomes.push(Put::Done);
        }
        if self.durable {
            durable::sync_folders(&folders.into_iter().collect::<Vec<_>>())?;
        }
        for key in std::mem::take(half) {
            let place = self.entry(key);
            fs::rename(self.half(key), &place).map_err(Error::io(&place))?;
        }
        if self.durable {
            durable::sync_folder(&self.root.join(paths::ENTRIES));
        }
        Ok(outcomes)
    }

    /// The hash in the entry that a key has; an empty one if that is damaged.
    fn hash_there(&self, key: &str) -> Result<Option<String>> {
        match read_small(&self.entry(key)) {
            Ok(entry) => Ok(Some(hash_of(&entry).unwrap_or_default())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(_) => Ok(Some(String::new())),
        }
    }

    /// Whether a recording would only take its own place, with the same entry: another process tried a file, too, that cannot
    /// be read.
    fn is_there_as_it_is(&self, new: &NewRecording) -> bool {
        let own = |entry: Vec<u8>| read_small(&new.entry).is_ok_and(|own| own == entry);
        let is_there = |file: &FinishedFile| {
            let folder = self.folder(&file.table, &new.key).ok()?;
            Some(fs::metadata(part(file, &folder, 0)).ok()?.len() == fs::metadata(&file.path).ok()?.len())
        };
        new.replaced.contains(&new.key)
            && new.replaced.iter().all(|old| *old == new.key)
            && read_small(&self.entry(&new.key)).is_ok_and(own)
            && new.files.iter().all(|file| is_there(file) == Some(true))
    }

    /// Where the files of a recording lie. Fails if that is behind a link.
    fn folder(&self, table: &str, key: &str) -> Result<PathBuf> {
        folders::place(&self.root, &staging::relative(&paths::folder(table, key))?)
    }

    /// The entry of a recording, if it has one that can be read.
    pub fn entry_of(&self, key: &str) -> Option<Vec<u8>> {
        staging::relative(key).ok()?;
        read_small(&self.entry(key)).ok()
    }

    /// Whether a recording has one file of a table, of this size.
    pub fn has_file(&self, table: &str, key: &str, format: Format, bytes: u64) -> bool {
        let place = paths::file(table, key, format);
        let found = staging::relative(&place).ok().and_then(|place| fs::metadata(self.root.join(place)).ok());
        found.is_some_and(|found| found.is_file() && found.len() == bytes)
    }

    /// Whether there is the file without rows of a table.
    pub fn has_empty(&self, table: &str, format: Format) -> bool {
        self.root.join(paths::file(table, paths::NO_RECORDING, format)).is_file()
    }

    /// Takes the files of tables without rows into the dataset, one for each table that `part` has. They replace those
    /// of an earlier run.
    pub fn put_empty(&self, part: Dataset) -> Result<()> {
        let Finished { staging, files, .. } = part.finished()?;
        if self.durable {
            durable::sync_trees(&[staging.path()])?;
        }
        let _lock = self.lock()?;
        let _committing = growing::commit();
        let mut folders = BTreeSet::new();
        for file in &files {
            let folder = self.folder(&file.table, paths::NO_RECORDING)?;
            make_folder(&folder)?;
            move_in(file, &folder, 0)?;
            folders.extend(folder.parent().map(Path::to_owned));
            folders.insert(folder);
        }
        if self.durable {
            durable::sync_folders(&folders.into_iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Adds a part of a recording that is still written: a file for each of its tables. Each appears whole, and none changes
    /// afterwards.
    pub(super) fn add_part(&self, key: &str, number: u32, part: Dataset) -> Result<()> {
        let Finished { staging, files, .. } = part.finished()?;
        if self.durable {
            durable::sync_tree(staging.path())?;
        }
        let _lock = self.lock()?;
        let _committing = growing::commit();
        for file in &files {
            let folder = self.folder(&file.table, key)?;
            make_folder(&folder)?;
            move_in(file, &folder, number)?;
            if self.durable {
                durable::sync_folder(&folder);
            }
        }
        Ok(())
    }

    /// Writes or replaces the entry of a recording, in one step.
    pub fn note(&self, key: &str, entry: &[u8]) -> Result<()> {
        staging::relative(key)?;
        let _lock = self.lock()?;
        self.write_entry(key, entry)
    }

    /// Puts a recording in the place of its parts, table by table, and then its entry. Who reads a table meanwhile finds all
    /// parts or the whole. `before` is an entry that names all tables.
    pub fn finish(&self, key: &str, whole: Dataset, before: &[u8], entry: &[u8]) -> Result<()> {
        let Finished { staging, files, .. } = whole.finished()?;
        // A folder for each, since what takes the place of all parts at once is their folder.
        let mut moves = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let from = staging.path().join(number.to_string());
            make_folder(&from)?;
            move_in(file, &from, 0)?;
            moves.push((from, self.folder(&file.table, key)?));
        }
        if self.durable {
            durable::sync_tree(staging.path())?;
        }
        let _lock = self.lock()?;
        let _committing = growing::commit();
        self.write_entry(key, before)?;
        for (from, to) in moves {
            let folder = to.parent().unwrap_or(&self.root);
            make_folder(folder)?;
            // The parts go away with the hidden directory.
            if !to.exists() || staging::exchange(&from, &to).is_err() {
                remove_all(&to)?;
                fs::rename(&from, &to).map_err(Error::io(&to))?;
            }
            if self.durable {
                durable::sync_folder(folder);
            }
        }
        self.write_entry(key, entry)
    }

    /// Takes away what [`Lake::open`] made, if nothing was put there since.
    pub fn leave(self, was_there: bool) {
        let folder = self.root.join(paths::ENTRIES);
        let is_empty = names(&folder).is_ok_and(|names| names.iter().all(|name| name == paths::LOCK));
        if is_empty && !was_there {
            // Fails, rightly, where something else has moved in.
            fs::remove_file(folder.join(paths::LOCK)).ok();
            fs::remove_dir(&folder).ok();
            fs::remove_dir(&self.root).ok();
        }
    }

    /// By a name that [`Lake::open`] takes away when it was left behind.
    fn write_entry(&self, key: &str, entry: &[u8]) -> Result<()> {
        let (fresh, place) = (self.fresh(&format!("{key}.entry")), self.entry(key));
        self.write(&fresh, entry)?;
        fs::rename(&fresh, &place).map_err(Error::io(&place))?;
        if self.durable {
            durable::sync_folder(&self.root.join(paths::ENTRIES));
        }
        Ok(())
    }

    /// Removes a recording. Returns whether it was there.
    pub fn remove(&self, key: &str) -> Result<bool> {
        staging::relative(key)?;
        let _lock = self.lock()?;
        let _committing = growing::commit();
        self.take_away(key)
    }

    /// Replaces files of the dataset that are no tables, in one step each. `make` sees the recordings that there are
    /// now, as [`Lake::summed`] gives them; no other writer changes them meanwhile.
    pub fn describe(
        &self,
        (schema_version, anew): (u32, bool),
        make: impl FnOnce(&Summed) -> Result<Vec<(&'static str, String)>>,
    ) -> Result<()> {
        let _lock = self.lock()?;
        for (name, text) in make(&self.summed(schema_version, anew)?)? {
            let path = self.root.join(staging::relative(name)?);
            check_size(&path, text.len())?;
            let fresh = self.fresh(&format!("{name}.summary"));
            let replaced = self.write(&fresh, text.as_bytes());
            if let Err(error) = replaced.and_then(|()| fs::rename(&fresh, &path).map_err(Error::io(&path))) {
                let _ = fs::remove_file(&fresh);
                return Err(error);
            }
        }
        if self.durable {
            durable::sync_folder(&self.root);
        }
        Ok(())
    }

    /// Takes the entry away first: what has none is not in the dataset.
    fn take_away(&self, key: &str) -> Result<bool> {
        staging::relative(key)?;
        let (entry, half) = (self.entry(key), self.half(key));
        if fs::symlink_metadata(&entry).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            return Ok(false);
        }
        // Fails before anything is removed.
        folders::of_recording(&self.root, key)?;
        fs::rename(&entry, &half).map_err(Error::io(entry))?;
        self.remove_half(key, &half).map(|()| true)
    }

    fn remove_halves(&self) -> Result<()> {
        let folder = self.root.join(paths::ENTRIES);
        for name in names(&folder)?.into_iter().filter(|name| name.ends_with(paths::HALF)) {
            let path = folder.join(&name);
            match paths::key_of_half(&name) {
                Some(key) if fs::symlink_metadata(self.entry(key)).is_err() => self.remove_half(key, &path)?,
                // Of a recording that is there, or of a file that was to take the place of another.
                _ => remove_all(&path)?,
            }
        }
        Ok(())
    }

    /// Removes the files of a recording that is half there, in whatever tables it has them, and the note that it is.
    fn remove_half(&self, key: &str, half: &Path) -> Result<()> {
        for folder in folders::of_recording(&self.root, key)? {
            remove_all(&folder)?;
            // Fails, rightly, when other recordings have the table.
            for table in folder.ancestors().skip(1).take_while(|table| *table != self.root) {
                if fs::remove_dir(table).is_err() {
                    break;
                }
            }
        }
        remove_all(half)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        // What lies there is left over, and may be a link.
        remove_all(path)?;
        let mut file = File::options().write(true).create_new(true).open(path).map_err(Error::io(path))?;
        file.write_all(bytes).map_err(Error::io(path))?;
        if self.durable { file.sync_all().map_err(Error::io(path)) } else { Ok(()) }
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.root.join(paths::entry(key))
    }

    fn half(&self, key: &str) -> PathBuf {
        self.root.join(paths::half(key))
    }

    /// A name for a file that is to take the place of another. [`Lake::open`] removes what was left behind.
    fn fresh(&self, name: &str) -> PathBuf {
        self.root.join(paths::ENTRIES).join(format!("{name}{}", paths::HALF))
    }

    fn lock(&self) -> Result<File> {
        let path = self.root.join(paths::ENTRIES).join(paths::LOCK);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => {
                let expected = "a file, which a run locks: remove it".to_owned();
                Err(Error::Dataset { path, what: "is a link, or no file".into(), expected })
            }
            _ => lock::lock(&path).map_err(Error::io(path)),
        }
    }
}

/// Where a part of a recording is, in the folder of its table.
fn part(file: &FinishedFile, folder: &Path, number: u32) -> PathBuf {
    let extension = file.path.extension().unwrap_or_default().to_string_lossy();
    folder.join(paths::part(number, &extension))
}

/// Makes the folder of a recording that has no file of a table yet.
fn fresh_folder(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        // What lies there is abandoned: the recording has no entry.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => remove_all(folder).and_then(|()| make_folder(folder)),
        // The table is new.
        Err(e) if e.kind() == ErrorKind::NotFound => make_folder(folder),
        made => made.map_err(Error::io(folder)),
    }
}

/// Moves a file to its place among those of a recording.
fn move_in(file: &FinishedFile, folder: &Path, number: u32) -> Result<()> {
    let to = part(file, folder, number);
    fs::rename(&file.path, &to).map_err(Error::io(&to))
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder))
}
