//! Where a dataset of several recordings lies: a directory or an object store. A [`Lake`](super::Lake) decides what is
//! done, its storage does each step in its own way.

use crate::prelude::*;
use std::fmt::Debug;
use std::fs::File;
use std::time::{Duration, SystemTime};

use tracequet_trace::source::store::Version;

use super::recording::{NewFile, NewRecording};
use tracequet_dataset::format::{DamagedEntry, Pack};
use tracequet_dataset::write::growing::Committing;

/// The time for which files stay whose place a pack has taken, under a hidden name: a reader may have begun to read
/// them.
pub const GRACE: Duration = Duration::from_secs(3600);

/// A recording as the listing of the entries has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The key.
    pub key: String,
    /// The tag of its entry, if it can be had without reading it.
    pub tag: Option<String>,
    /// When its entry was written or took its name, if the storage goes by that.
    pub changed: Option<SystemTime>,
}

/// `manifest.json` as it is now.
#[derive(Debug)]
pub struct Manifest {
    /// The text, or the reason why it cannot be read.
    pub text: Result<Vec<u8>>,
    /// By this the storage knows whether another writer has replaced it since.
    pub version: Version,
    /// When it was written, if the storage goes by that: entries that are older are in it as they are.
    pub written: Option<SystemTime>,
}

/// The tag and the text of an entry, or why it is not read.
pub type ReadEntry = std::result::Result<(String, Vec<u8>), DamagedEntry>;

/// The content of the place where a dataset is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Nothing.
    Nothing,
    /// A dataset of several recordings, perhaps one that has only been begun.
    Recordings,
    /// Something else.
    SomethingElse,
}

/// Held by the writer whose turn it is, where only one can write at a time.
#[derive(Default)]
pub struct Turn {
    // Dropped in this order.
    pub(super) _lease: Option<Box<dyn std::any::Any>>,
    pub(super) _committing: Option<Committing>,
    pub(super) _lock: Option<File>,
}

impl Turn {
    /// A turn that lasts as long as something is held.
    pub fn holding(lease: impl std::any::Any) -> Turn {
        Turn { _lease: Some(Box::new(lease)), ..Turn::default() }
    }

    /// A turn that lasts as long as a file is locked.
    pub(super) fn locked(file: File) -> Turn {
        Turn { _lock: Some(file), ..Turn::default() }
    }
}

/// Where a dataset of several recordings lies. Names are those of [`tracequet_dataset::format::paths`].
pub trait Storage: Debug + Send + Sync {
    /// The name in messages.
    fn shown(&self) -> PathBuf;

    /// A folder of this machine, from which files get to their places: recordings are written below it.
    fn folder(&self) -> &Path;

    /// The content of the place.
    fn holds(&self) -> Result<Holds>;

    /// Gets ready to be written to, and removes what a killed run left behind.
    fn open(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until no other writer changes anything, where that takes the place of conditions.
    fn turn(&self) -> Result<Turn> {
        Ok(Turn::default())
    }

    /// Takes a turn before recordings come or go. The files of `_coming` last from then on, and a program that is asked
    /// to end waits.
    fn turn_for(&self, _coming: &[NewRecording]) -> Result<Turn> {
        Ok(Turn::default())
    }

    /// Whether recordings that are ready at the same time are better put together. If not, they are put side by side.
    fn puts_together(&self) -> bool {
        false
    }

    /// The manifest.
    fn manifest(&self) -> Result<Option<Manifest>>;

    /// The entries, in the order of keys.
    fn list(&self) -> Result<Vec<Listed>>;

    /// Reads entries, and hands each on in the order of `listed`. Those that were removed meanwhile are left out.
    fn read(&self, listed: &[&Listed], each: &mut dyn FnMut(&str, ReadEntry)) -> Result<()>;

    /// The entry of a recording.
    fn entry(&self, key: &str) -> Result<Option<ReadEntry>>;

    /// The first line of the entry of a pack and its end, and maybe more; nothing if it is not there.
    fn pack_head(&self, name: &str) -> Result<Option<std::result::Result<Vec<u8>, DamagedEntry>>>;

    /// Which of these files there are.
    fn has(&self, names: &[String]) -> Result<Vec<bool>>;

    /// Whether a recording that has an entry has these files, too, each with this size, where they can be lost by
    /// themselves.
    fn has_files(&self, _files: &[(String, u64)]) -> bool {
        true
    }

    /// A file of this machine with the content of one of the dataset.
    fn copy(&self, name: &str) -> Result<PathBuf>;

    /// Fails if a recording cannot be put. Nothing is changed yet.
    fn check(&self, _new: &NewRecording) -> Result<()> {
        Ok(())
    }

    /// Puts the files of a recording that has no entry, which `replaces` another one.
    fn put_files(&self, new: &NewRecording, replaces: bool) -> Result<()>;

    /// Puts the entries of recordings whose files are there: from then on these are in the dataset. Returns for each
    /// whether that is its entry now; if not, another writer was first.
    fn put_entries(&self, new: &[&NewRecording]) -> Result<Vec<bool>>;

    /// Removes what there is of recordings whose files or entries could not be put. What has no entry is not in the
    /// dataset, so that it may stay.
    fn abandon(&self, _new: &[&NewRecording]) {}

    /// Puts files of tables without rows. They replace those of an earlier run.
    fn put_empty(&self, files: &[NewFile]) -> Result<()>;

    /// Replaces the files that sum the recordings up; the last one is the manifest, which was `before`. Returns `false`
    /// if another writer has replaced that meanwhile.
    fn put_summary(&self, files: &[(&'static str, String)], before: Option<&Manifest>) -> Result<bool>;

    /// Removes a recording, its entry first: what has none is not in the dataset. Returns whether it was there.
    fn take_away(&self, key: &str) -> Result<bool>;

    /// Replaces the entry of a recording, and then removes the files of the tables `gone`, which the new entry does not
    /// name.
    fn shrink(&self, key: &str, entry: &[u8], gone: &[String]) -> Result<()>;

    /// The names of its packs, in order, those that others have replaced among them. Their entries are read as those of
    /// recordings.
    fn packs(&self) -> Result<Vec<String>>;

    /// Waits until no one else rewrites packs.
    fn turn_to_pack(&self) -> Result<Turn> {
        Ok(Turn::default())
    }

    /// A file of this machine with the content of one of the dataset, perhaps made in `folder`.
    fn fetched(&self, name: &str, folder: &Path) -> Result<PathBuf>;

    /// Brings the files of a pack near, before others have to wait.
    fn prepare_pack(&self, _pack: &Pack, _files: &[NewFile]) -> Result<()> {
        Ok(())
    }

    /// Puts a pack into the place of the packs that it replaces and of the entries that its recordings have: its files
    /// first, where no glob finds them, then its entry in one step. From then on it is what readers of entries see, and
    /// then the files take the places of the old ones.
    fn put_pack(&self, pack: &Pack, files: &[NewFile]) -> Result<()>;

    /// Removes a pack with all its recordings, its entry first. Returns whether it was there.
    fn take_pack_away(&self, name: &str) -> Result<bool>;

    /// Does what a compaction that was killed has left to do, and removes the files whose place was taken longer ago
    /// than `grace`.
    fn settle(&self, grace: Duration) -> Result<()>;

    /// Gives a recording other labels: replaces its entry, if that still is `before`, and then the file of its labels.
    /// Without a file, of which the new entry says that there is none, the old one goes. Returns `false`, and changes
    /// nothing, if it has another entry.
    fn relabel(&self, key: &str, before: &[u8], entry: &[u8], file: Option<&NewFile>) -> Result<bool>;

    /// A note about the storage that the user has to know.
    fn note(&self) -> Option<String> {
        None
    }
}
