//! A dataset of several recordings in a directory.
//!
//! The files of a recording are written side by side in a hidden directory, then each is moved to
//! `<table>/trace=<key>/`, and then its entry appears by a rename. Whoever moves files holds the lock of the dataset.
//! Before the first file moves, `manifest/<key>.json.half` says that they will: the next run takes away what a killed
//! one left half there. Recordings that are ready at the same time are put together, so that they wait for the disk
//! once.

use crate::prelude::*;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use tracequet_trace::source::store::Version;

use super::lock;
use super::recording::{NewFile, NewRecording};
use super::storage::{GRACE, Holds, Listed, Manifest, ReadEntry, Storage, Turn};
use tracequet_dataset::format::{Entry, Format, Pack, paths, tag_of};
use tracequet_dataset::write::dataset_writer::{DatasetWriter, Finished};
use tracequet_dataset::write::entries::{self, names, read_manifest};
use tracequet_dataset::write::folders::{self, refuse_link, remove_all};
use tracequet_dataset::write::pack_places;
use tracequet_dataset::write::staging::{self, PART};
use tracequet_dataset::write::{durable, growing, leftovers};

/// A directory with a dataset of several recordings.
#[derive(Clone, Debug)]
pub struct Directory {
    pub(super) root: PathBuf,
    /// Whether what was put lasts when the power fails. Not wanted where the whole directory is synced at the end.
    pub(super) durable: bool,
}

impl Directory {
    /// The directory `root`. What is put there lasts when the power fails if it is `durable`.
    pub fn new(root: impl Into<PathBuf>, durable: bool) -> Directory {
        Directory { root: root.into(), durable }
    }

    /// The directory without syncing, for what does not last: parts of a recording that something else will take the
    /// place of.
    pub fn without_syncing(&self) -> Directory {
        Directory::new(&self.root, false)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Adds a part of a recording that is still written: a file for each of its tables. Each appears whole, and none
    /// changes afterwards.
    pub(super) fn add_part(&self, key: &str, number: u32, part: DatasetWriter) -> Result<()> {
        let Finished { staging, files, .. } = part.finished()?;
        if self.durable {
            durable::sync_tree(staging.path())?;
        }
        let _turn = self.turn_for(&[])?;
        let files: Vec<_> = files.into_iter().map(|file| NewFile::part(file, key, number)).collect();
        self.move_beside(&files)
    }

    /// Writes or replaces the entry of a recording, in one step.
    pub fn note(&self, key: &str, entry: &[u8]) -> Result<()> {
        staging::relative(key)?;
        let _turn = self.turn()?;
        self.write_entry(key, entry)
    }

    /// Puts a recording in the place of its parts, table by table, and then its entry. Who reads a table meanwhile
    /// finds all parts or the whole. `before` is an entry that names all tables.
    pub fn finish(&self, key: &str, whole: DatasetWriter, before: &[u8], entry: &[u8]) -> Result<()> {
        let Finished { staging, files, .. } = whole.finished()?;
        // A folder for each, since what takes the place of all parts at once is their folder.
        let mut moves = Vec::new();
        for (number, file) in files.into_iter().enumerate() {
            let file = NewFile::part(file, key, 0);
            let to = self.place(&file)?;
            let from = staging.path().join(number.to_string());
            make_folder(&from)?;
            move_file(&file.path, &from.join(to.file_name().unwrap_or_default()))?;
            moves.push((from, folder_of(&to)));
        }
        if self.durable {
            durable::sync_tree(staging.path())?;
        }
        let _turn = self.turn_for(&[])?;
        self.write_entry(key, before)?;
        for (from, to) in moves {
            let folder = folder_of(&to);
            make_folder(&folder)?;
            // The parts go away with the hidden directory.
            if !to.exists() || staging::exchange(&from, &to).is_err() {
                remove_all(&to)?;
                move_file(&from, &to)?;
            }
            self.sync_folder(&folder);
        }
        self.write_entry(key, entry)
    }

    /// Takes away what [`Storage::open`] made, if nothing was put there since.
    pub fn leave(self, was_there: bool) {
        let folder = self.entries();
        let is_empty = names(&folder).is_ok_and(|names| names.iter().all(|name| name == paths::LOCK));
        if is_empty && !was_there {
            // Fails, rightly, where something else has moved in.
            fs::remove_file(folder.join(paths::LOCK)).ok();
            fs::remove_dir(&folder).ok();
            fs::remove_dir(&self.root).ok();
        }
    }

    /// The place of a file. Fails if that is behind a link.
    fn place(&self, file: &NewFile) -> Result<PathBuf> {
        let name = staging::relative(&file.name)?;
        folders::place(&self.root, name.parent().unwrap_or(&name))?;
        Ok(self.root.join(name))
    }

    /// Moves files to their places, beside what lies there.
    fn move_beside(&self, files: &[NewFile]) -> Result<()> {
        for file in files {
            let to = self.place(file)?;
            make_folder(&folder_of(&to))?;
            move_file(&file.path, &to)?;
        }
        self.sync_folders_of(files)
    }

    fn write_entry(&self, key: &str, entry: &[u8]) -> Result<()> {
        self.replace(&self.entry_path(key), &format!("{key}.entry"), entry)?;
        self.sync_folder(&self.entries());
        Ok(())
    }

    /// Writes a file in one step: under a fresh name, which [`Storage::open`] removes when it was left behind, and then
    /// a move.
    fn replace(&self, path: &Path, fresh_name: &str, bytes: &[u8]) -> Result<()> {
        let fresh = self.fresh(fresh_name);
        self.write(&fresh, bytes)?;
        move_file(&fresh, path).inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    fn remove_halves(&self) -> Result<()> {
        let folder = self.entries();
        let mut others = Vec::new();
        for name in names(&folder)?.into_iter().filter(|name| name.ends_with(paths::HALF)) {
            match paths::key_of_half(&name) {
                Some(key) if fs::symlink_metadata(self.entry_path(key)).is_err() => self.remove_half(key)?,
                Some(key) => {
                    self.settle_labels(key)?;
                    self.remove_unnamed(key)?;
                }
                None => others.push(folder.join(&name)),
            }
        }
        // Of files that were to take the place of others, but for those that a note above has brought there.
        others.iter().try_for_each(|path| remove_all(path))
    }

    /// Brings the file of new labels to its place, if the entry of the recording has these labels already: the note is
    /// a copy of it.
    fn settle_labels(&self, key: &str) -> Result<()> {
        let text = |path: &Path| entries::read_small(path).ok();
        for format in Format::ALL {
            let fresh = self.fresh_labels(key, format);
            if fs::symlink_metadata(&fresh).is_ok() && text(&self.half(key)) == text(&self.entry_path(key)) {
                let file = NewFile { name: paths::file(paths::LABELS, key, format), path: fresh };
                self.move_beside(&[file])?;
            }
        }
        Ok(())
    }

    /// Removes the files of a recording or a pack that is half there, in whatever tables it has them, and the note
    /// that it is.
    pub(super) fn remove_half(&self, key: &str) -> Result<()> {
        for folder in folders::of_recording(&self.root, key)? {
            self.remove_folder(&folder)?;
        }
        if paths::is_pack(key) {
            remove_all(&self.hidden(key))?;
        }
        remove_all(&self.half(key))
    }

    /// Removes the files of tables that the entry of a recording does not name, or says have none, and the note that
    /// there may be some. An entry that is damaged names nothing, and nothing is removed.
    fn remove_unnamed(&self, key: &str) -> Result<()> {
        let entry = self.entry(key)?.and_then(|entry| Entry::parse(key, &entry.ok()?.1).ok());
        if let Some(entry) = entry {
            let with_files = entry.tables.iter().filter(|table| table.bytes > 0);
            let named: HashSet<PathBuf> =
                with_files.map(|table| self.root.join(paths::folder(&table.name, key))).collect();
            for folder in folders::of_recording(&self.root, key)?.iter().filter(|folder| !named.contains(*folder)) {
                self.remove_folder(folder)?;
            }
        }
        remove_all(&self.half(key))
    }

    /// Removes the folder of a recording in a table, and that of the table when it was the last one.
    fn remove_folder(&self, folder: &Path) -> Result<()> {
        remove_all(folder)?;
        self.remove_empty(&folder_of(folder));
        Ok(())
    }

    /// Removes the folder of a table that has nothing any more.
    pub(super) fn remove_empty(&self, table: &Path) {
        for folder in table.ancestors().take_while(|folder| *folder != self.root) {
            // Fails, rightly, when other recordings have the table.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        durable::write_new(path, bytes, self.durable)
    }

    fn sync_trees(&self, trees: &[&Path]) -> Result<()> {
        if self.durable { durable::sync_trees(trees) } else { Ok(()) }
    }

    pub(super) fn sync_folder(&self, folder: &Path) {
        if self.durable {
            durable::sync_folder(folder);
        }
    }

    /// Makes the names of files last that have moved to their places, and of the folders that were made for them.
    fn sync_folders_of<'f>(&self, files: impl IntoIterator<Item = &'f NewFile>) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let mut folders = BTreeSet::new();
        for file in files {
            let folder = folder_of(&self.root.join(&file.name));
            folders.insert(folder_of(&folder));
            folders.insert(folder);
        }
        durable::sync_folders(&folders.into_iter().collect::<Vec<_>>())
    }

    pub(super) fn entries(&self) -> PathBuf {
        self.root.join(paths::ENTRIES)
    }

    pub(super) fn entry_path(&self, key: &str) -> PathBuf {
        self.root.join(paths::entry(key))
    }

    pub(super) fn half(&self, key: &str) -> PathBuf {
        self.root.join(paths::half(key))
    }

    pub(super) fn hidden(&self, pack: &str) -> PathBuf {
        self.root.join(paths::hidden(pack))
    }

    /// Where the file of new labels of a recording waits for its entry.
    fn fresh_labels(&self, key: &str, format: Format) -> PathBuf {
        self.fresh(&format!("{key}.labels.{}", format.name()))
    }

    /// A name for a file that is to take the place of another. [`Storage::open`] removes what was left behind.
    fn fresh(&self, name: &str) -> PathBuf {
        self.entries().join(format!("{name}{}", paths::HALF))
    }
}

impl Storage for Directory {
    fn shown(&self) -> PathBuf {
        self.root.clone()
    }

    fn folder(&self) -> &Path {
        &self.root
    }

    /// A killed first run left a dataset that has no summary yet.
    fn holds(&self) -> Result<Holds> {
        let is_empty = match fs::read_dir(&self.root) {
            Ok(mut entries) => entries.next().is_none(),
            Err(e) if e.kind() == ErrorKind::NotFound => true,
            Err(e) if e.kind() == ErrorKind::NotADirectory => false,
            Err(source) => return Err(Error::Io { path: self.root.clone(), source }),
        };
        // Looked for last: another first run may be making it.
        Ok(match self.entries().is_dir() {
            true => Holds::Recordings,
            false if is_empty => Holds::Nothing,
            false => Holds::SomethingElse,
        })
    }

    /// Fails if something that would have to be changed lies behind a link.
    fn open(&self) -> Result<()> {
        let folder = self.entries();
        refuse_link(&folder)?;
        make_folder(&folder)?;
        leftovers::remove(&self.root, PART);
        let _turn = self.turn()?;
        self.remove_halves()?;
        self.settle(GRACE)
    }

    fn turn(&self) -> Result<Turn> {
        let path = self.entries().join(paths::LOCK);
        let lock = match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => {
                let expected = "a file, which a run locks: remove it".to_owned();
                return Err(Error::Dataset { path, what: "is a link, or no file".into(), expected });
            }
            _ => lock::lock(&path).map_err(Error::io(path))?,
        };
        Ok(Turn::locked(lock))
    }

    fn turn_for(&self, coming: &[NewRecording]) -> Result<Turn> {
        let trees: BTreeSet<&Path> = coming.iter().map(NewRecording::folder).collect();
        self.sync_trees(&trees.into_iter().collect::<Vec<_>>())?;
        Ok(Turn { _committing: Some(growing::commit()), ..self.turn()? })
    }

    fn puts_together(&self) -> bool {
        true
    }

    fn manifest(&self) -> Result<Option<Manifest>> {
        let path = self.root.join(paths::MANIFEST);
        let written = fs::metadata(&path).and_then(|found| found.modified()).ok();
        match read_manifest(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            text => Ok(Some(Manifest { text: text.map_err(Error::io(path)), version: Version::default(), written })),
        }
    }

    fn list(&self) -> Result<Vec<Listed>> {
        let folder = self.entries();
        let found = match fs::read_dir(&folder) {
            Ok(found) => found,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Io { path: folder, source }),
        };
        let mut listed = Vec::new();
        for entry in found {
            let entry = entry.map_err(Error::io(&folder))?;
            if let Some(key) = entry.file_name().to_str().and_then(paths::key_of_entry) {
                let changed = entry.metadata().ok().and_then(|found| changed(&found));
                listed.push(Listed { key: key.to_owned(), tag: None, changed });
            }
        }
        listed.sort();
        Ok(listed)
    }

    fn read(&self, listed: &[&Listed], each: &mut dyn FnMut(&str, ReadEntry)) -> Result<()> {
        for one in listed {
            if let Some(entry) = self.entry(&one.key)? {
                each(&one.key, entry);
            }
        }
        Ok(())
    }

    fn entry(&self, key: &str) -> Result<Option<ReadEntry>> {
        Ok(entries::read(&self.root, key).map(|entry| entry.map(|text| (tag_of(&text), text))))
    }

    fn pack_head(&self, name: &str) -> Result<Option<entries::EntryBytes>> {
        Ok(entries::pack_head(&self.root, name))
    }

    fn has(&self, names: &[String]) -> Result<Vec<bool>> {
        Ok(names.iter().map(|name| self.root.join(name).is_file()).collect())
    }

    fn has_files(&self, files: &[(String, u64)]) -> bool {
        files.iter().all(|(name, bytes)| {
            fs::metadata(self.root.join(name)).is_ok_and(|found| found.is_file() && found.len() == *bytes)
        })
    }

    fn copy(&self, name: &str) -> Result<PathBuf> {
        Ok(self.root.join(name))
    }

    fn check(&self, new: &NewRecording) -> Result<()> {
        new.files().iter().try_for_each(|file| self.place(file).map(drop))
    }

    fn put_files(&self, new: &NewRecording, replaces: bool) -> Result<()> {
        let note = self.half(new.key());
        if fs::symlink_metadata(&note).is_ok() {
            // Another process was killed meanwhile.
            self.remove_half(new.key())?;
        }
        move_file(new.entry(), &note)?;
        if replaces {
            // Maybe written before another writer summed up the old one: it must not be taken for that.
            let touched =
                File::options().append(true).open(&note).and_then(|note| note.set_modified(SystemTime::now()));
            touched.map_err(Error::io(&note))?;
        }
        for file in new.files() {
            let to = self.root.join(&file.name);
            fresh_folder(&folder_of(&to))?;
            move_file(&file.path, &to)?;
        }
        Ok(())
    }

    fn put_entries(&self, new: &[&NewRecording]) -> Result<Vec<bool>> {
        self.sync_folders_of(new.iter().flat_map(|new| new.files()))?;
        for new in new {
            move_file(&self.half(new.key()), &self.entry_path(new.key()))?;
        }
        self.sync_folder(&self.entries());
        Ok(vec![true; new.len()])
    }

    fn abandon(&self, new: &[&NewRecording]) {
        for key in new.iter().map(|new| new.key()).filter(|key| fs::symlink_metadata(self.half(key)).is_ok()) {
            // A half that cannot be removed now, the next run removes.
            let _ = self.remove_half(key);
        }
    }

    fn put_empty(&self, files: &[NewFile]) -> Result<()> {
        let trees: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
        self.sync_trees(&trees.into_iter().collect::<Vec<_>>())?;
        let _turn = self.turn_for(&[])?;
        self.move_beside(files)
    }

    /// In one step each. No other writer changes them meanwhile.
    fn put_summary(&self, files: &[(&'static str, String)], _: Option<&Manifest>) -> Result<bool> {
        for (name, text) in files {
            let path = self.root.join(staging::relative(name)?);
            self.replace(&path, &format!("{name}.summary"), text.as_bytes())?;
        }
        self.sync_folder(&self.root);
        Ok(true)
    }

    fn take_away(&self, key: &str) -> Result<bool> {
        let entry = self.entry_path(key);
        if fs::symlink_metadata(&entry).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            return Ok(false);
        }
        // Fails before anything is removed.
        folders::of_recording(&self.root, key)?;
        fs::rename(&entry, self.half(key)).map_err(Error::io(entry))?;
        self.remove_half(key).map(|()| true)
    }

    fn packs(&self) -> Result<Vec<String>> {
        pack_places::names_in(&self.root)
    }

    fn turn_to_pack(&self) -> Result<Turn> {
        let path = self.entries().join(pack_places::LOCK);
        refuse_link(&path)?;
        Ok(Turn::locked(lock::lock(&path).map_err(Error::io(path))?))
    }

    fn fetched(&self, name: &str, _: &Path) -> Result<PathBuf> {
        Ok(pack_places::place_of(&self.root, name).unwrap_or_else(|| self.root.join(name)))
    }

    fn put_pack(&self, pack: &Pack, files: &[NewFile]) -> Result<()> {
        let trees: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
        self.sync_trees(&trees.into_iter().collect::<Vec<_>>())?;
        self.put_in_place(pack, files)
    }

    fn take_pack_away(&self, name: &str) -> Result<bool> {
        self.take_away(name)
    }

    fn settle(&self, grace: Duration) -> Result<()> {
        self.settle_packs(grace)
    }

    /// The note comes first: by it the next run goes on where a killed one stopped.
    fn shrink(&self, key: &str, entry: &[u8], _: &[String]) -> Result<()> {
        // Fails before anything is changed.
        folders::of_recording(&self.root, key)?;
        self.write(&self.half(key), entry)?;
        self.write_entry(key, entry)?;
        self.remove_unnamed(key)
    }

    /// The new file waits beside the entries, so that the next run can go on where a killed one stopped.
    fn relabel(&self, key: &str, before: &[u8], entry: &[u8], file: Option<&NewFile>) -> Result<bool> {
        if !matches!(self.entry(key)?, Some(Ok((_, there))) if there == before) {
            return Ok(false);
        }
        // Fails before anything is changed.
        folders::of_recording(&self.root, key)?;
        if let Some(file) = file {
            self.place(file)?;
            let format = Format::ALL.into_iter().find(|format| file.name == paths::file(paths::LABELS, key, *format));
            let format = format.ok_or_else(|| Error::Internal(format!("{} is no file of labels", file.name)))?;
            if self.durable {
                let written = File::options().append(true).open(&file.path).and_then(|written| written.sync_all());
                written.map_err(Error::io(&file.path))?;
            }
            move_file(&file.path, &self.fresh_labels(key, format))?;
        }
        self.write(&self.half(key), entry)?;
        self.write_entry(key, entry)?;
        self.settle_labels(key)?;
        self.remove_unnamed(key).map(|()| true)
    }
}

/// The folder that something is in.
fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Makes the folder of a recording that has no file of a table yet.
fn fresh_folder(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        // A folder that lies there is abandoned: the recording has no entry.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => remove_all(folder).and_then(|()| make_folder(folder)),
        // The table is new.
        Err(e) if e.kind() == ErrorKind::NotFound => make_folder(folder),
        made => made.map_err(Error::io(folder)),
    }
}

pub(super) fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder))
}

pub(super) fn move_file(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(Error::io(to))
}

/// When a file was written or took its name. One that was written long ago, and was put there just now, has changed
/// just now.
fn changed(found: &fs::Metadata) -> Option<SystemTime> {
    let written = found.modified().ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (seconds, nanoseconds) = (u64::try_from(found.ctime()).ok()?, u64::try_from(found.ctime_nsec()).ok()?);
        let since = std::time::Duration::from_secs(seconds) + std::time::Duration::from_nanos(nanoseconds);
        Some(written.max(SystemTime::UNIX_EPOCH.checked_add(since)?))
    }
    #[cfg(not(unix))]
    Some(written)
}
