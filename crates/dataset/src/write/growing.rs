//! The unfinished datasets of this process, so that a program that is asked to end can remove them first.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static GROWING: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
/// Held during a commit. Other threads may begin and end datasets meanwhile.
static COMMITTING: Mutex<()> = Mutex::new(());

/// The number of attempts to remove a directory into which other threads still write.
const ATTEMPTS: u32 = 20;

#[derive(Debug)]
struct Entry {
    folder: PathBuf,
    /// Parents that were made for it, the outermost first.
    made: Vec<PathBuf>,
}

/// Held while a dataset takes its name: it is not taken away in the middle of that.
pub struct Committing {
    _guard: MutexGuard<'static, ()>,
}

/// A directory is on the list as long as this lives.
#[derive(Debug)]
pub struct Growing(PathBuf);

impl Growing {
    /// Makes a directory and puts it on the list, with the parents that are made for it. [`abandon_all`] waits until
    /// this is done, so that it removes the directory as well. Called after [`abandon_all`], this waits until the
    /// process ends.
    pub fn make<F: AsRef<Path>, E>(
        parents: &[PathBuf],
        make: impl FnOnce() -> Result<F, E>,
    ) -> Result<(F, Growing), E> {
        let mut entries = lock();
        let made = make()?;
        let folder = made.as_ref().to_owned();
        entries.push(Entry { folder: folder.clone(), made: parents.to_vec() });
        Ok((made, Growing(folder)))
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        lock().retain(|entry| entry.folder != self.0);
    }
}

/// Begins a commit.
pub fn commit() -> Committing {
    Committing { _guard: COMMITTING.lock().unwrap_or_else(PoisonError::into_inner) }
}

/// Removes what the unfinished datasets of this process have written. For programs that end right after it: whatever
/// else works on a dataset waits from here on, and nothing is committed any more.
pub fn abandon_all() {
    let committing = commit();
    let entries = lock();
    for entry in entries.iter() {
        for _ in 0..ATTEMPTS {
            match fs::remove_dir_all(&entry.folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
        for folder in entry.made.iter().rev() {
            // Fails, rightly, when something else has moved in.
            let _ = fs::remove_dir(folder);
        }
    }
    // Locked until the process ends.
    std::mem::forget((committing, entries));
}

fn lock() -> MutexGuard<'static, Vec<Entry>> {
    GROWING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listed(folder: &Path) -> bool {
        lock().iter().any(|entry| entry.folder == folder)
    }

    #[test]
    fn a_directory_is_on_the_list_from_when_it_is_made_until_it_is_dropped() {
        let make = || {
            assert!(GROWING.try_lock().is_err(), "a signal here would leave the directory");
            tempfile::tempdir()
        };
        let (folder, listed) = Growing::make(&[], make).unwrap();
        assert!(is_listed(folder.path()));
        drop(listed);
        assert!(!is_listed(folder.path()));
        let failed: Result<(tempfile::TempDir, Growing), &str> = Growing::make(&[], || Err("no room"));
        assert_eq!(failed.unwrap_err(), "no room");
    }
}
