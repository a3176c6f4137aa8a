//! Hidden directories beside a dataset: each is locked by the run that uses it, so that a later run knows which ones a
//! killed run left behind.
//!
//! The system releases the lock of a process when it ends, however it ends. A directory without a lock is
//! abandoned. Where the system cannot lock a directory (Windows, some network drives) nothing is removed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The purpose of a hidden directory. Its name is `.<dataset>.tracequet-<role>-<random>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A dataset grows in it.
    New,
    /// The directory holds the dataset that is being replaced, under its own name.
    Old,
}

/// Random characters of the name.
const RANDOM: usize = 8;

impl Role {
    fn prefix(self, name: &str) -> String {
        let role = match self {
            Role::New => "new",
            Role::Old => "old",
        };
        format!(".{name}.tracequet-{role}-")
    }
}

/// A hidden directory of this run. Dropped, it is removed with all that is in it.
#[derive(Debug)]
pub struct Hidden {
    // Dropped in this order: unlocked while it still exists, it would be anybody's.
    folder: TempDir,
    _lock: Option<File>,
}

impl Hidden {
    /// Makes a directory in `parent` for the dataset `name`.
    pub fn beside(parent: &Path, name: &str, role: Role) -> io::Result<Hidden> {
        loop {
            let prefix = role.prefix(name);
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).rand_bytes(RANDOM);
            // The default is for secrets (0700); a dataset is as readable as any directory its owner makes.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
            let folder = builder.tempdir_in(parent)?;
            match lock(folder.path()) {
                Lock::Taken(file) => return Ok(Hidden { folder, _lock: Some(file) }),
                Lock::Unknown => return Ok(Hidden { folder, _lock: None }),
                // Another run took it for a leftover before it was locked.
                Lock::Others => {}
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves the directory where it is.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

impl AsRef<Path> for Hidden {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

/// Removes what killed runs left beside the dataset `name`. A dataset that was moved aside, and that nothing took the
/// place of, is put back. Best effort: what cannot be removed does no harm.
pub fn remove(parent: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let Some(role) = role_of(&entry.file_name(), name) else { continue };
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        let Lock::Taken(_lock) = lock(&path) else { continue };
        if role == Role::Old {
            let target = parent.join(name);
            if fs::symlink_metadata(&target).is_err() {
                let _ = fs::rename(path.join(name), &target);
            }
        }
        let _ = fs::remove_dir_all(&path);
    }
}

fn role_of(file_name: &OsStr, name: &str) -> Option<Role> {
    let file_name = file_name.to_str()?;
    [Role::New, Role::Old].into_iter().find(|role| {
        let random = file_name.strip_prefix(&role.prefix(name));
        random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()))
    })
}

#[cfg_attr(not(unix), allow(dead_code, reason = "only Unix locks directories"))]
enum Lock {
    /// Held as long as the file is open.
    Taken(File),
    /// Another process has it, or has removed the directory.
    Others,
    /// The system does not lock directories here.
    Unknown,
}

#[cfg(unix)]
fn lock(folder: &Path) -> Lock {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{FlockOperation, flock};

    let Ok(file) = File::open(folder) else { return Lock::Others };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // Another process that held the lock may have removed the directory: then the path leads nowhere, or to
            // another directory.
            let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
            let is_there = file.metadata().is_ok_and(|own| fs::symlink_metadata(folder).is_ok_and(|m| same(&own, &m)));
            if is_there { Lock::Taken(file) } else { Lock::Others }
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Lock::Others,
        Err(_) => Lock::Unknown,
    }
}

#[cfg(not(unix))]
fn lock(_: &Path) -> Lock {
    Lock::Unknown
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_nobody_has_locked_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = Hidden::beside(parent.path(), "set", Role::New).unwrap();
        let left = Hidden::beside(parent.path(), "set", Role::New).unwrap().keep();
        fs::write(left.join("half.parquet"), b"half").unwrap();
        for other in [".set.tracequet-new-short", ".set.tracequet-new-1234567é", ".other.tracequet-new-12345678", "set"]
        {
            fs::create_dir(parent.path().join(other)).unwrap();
        }
        remove(parent.path(), "set");
        assert!(!left.exists() && used.path().exists());
        assert_eq!(names(parent.path()).len(), 5);
    }

    #[test]
    fn a_dataset_that_was_moved_aside_comes_back() {
        let parent = tempfile::tempdir().unwrap();
        for stands in [false, true] {
            let aside = Hidden::beside(parent.path(), "set", Role::Old).unwrap().keep();
            fs::create_dir(aside.join("set")).unwrap();
            fs::write(aside.join("set/which"), if stands { "older" } else { "old" }).unwrap();
            remove(parent.path(), "set");
            assert_eq!(names(parent.path()), ["set"]);
            assert_eq!(fs::read(parent.path().join("set/which")).unwrap(), b"old");
        }
    }
}
