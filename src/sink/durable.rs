//! Makes written files last before a dataset takes its place, so that a loss of power leaves the old one or the new one.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Files that are synced at once: a journal writes what comes together in one go.
const AT_ONCE: usize = 16;

/// The files of one thread.
enum Share<'s> {
    Begun(std::thread::ScopedJoinHandle<'s, Result<()>>),
    Done(Result<()>),
}

/// Syncs all files below a folder, and the folders themselves.
pub(super) fn sync_tree(folder: &Path) -> Result<()> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut next = 0;
    while let Some(path) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(&path).map_err(Error::io(&path))? {
            let entry = entry.map_err(Error::io(&path))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    let share = files.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let start = |share| match std::thread::Builder::new().spawn_scoped(scope, move || sync_files(share)) {
            Ok(thread) => Share::Begun(thread),
            // No thread can be had: this one does it.
            Err(_) => Share::Done(sync_files(share)),
        };
        let shares: Vec<_> = files.chunks(share).map(start).collect();
        let ended = shares.into_iter().map(|share| match share {
            Share::Begun(thread) => {
                thread.join().unwrap_or_else(|_| Err(Error::Internal("a thread that syncs files died".into())))
            }
            Share::Done(outcome) => outcome,
        });
        ended.collect::<Result<Vec<()>>>()
    })?;
    folders.iter().rev().for_each(|folder| sync_folder(folder));
    Ok(())
}

fn sync_files(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        // Windows syncs what is open for writing only.
        let file = OpenOptions::new().write(true).open(path).map_err(Error::io(path))?;
        file.sync_all().map_err(Error::io(path))?;
    }
    Ok(())
}

/// Makes the names in a folder last. Best effort: not every system can sync a folder.
pub(super) fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(handle) = File::open(folder)
    {
        let _ = handle.sync_all();
    }
}
