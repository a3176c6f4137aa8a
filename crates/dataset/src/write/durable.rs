//! Makes written files last before a dataset takes its place, so that a loss of power leaves the old one or the new
//! one.

use crate::prelude::*;
use std::fs::{self, File, OpenOptions};
use std::io::Write;

use tracequet_trace::parallel;

use super::folders::remove_all;

/// Files that are synced at once: a journal writes what comes together in one go.
const AT_ONCE: usize = 16;

/// Files from which the whole file system is synced in one go, where that can be done: it may have to wait for what
/// other programs wrote, but not once for each file.
const MANY: usize = 1024;

/// The bytes that all programs together may have written that are not on a disk yet, in KB, for fewer files to be
/// synced in one go.
const LITTLE_KB: u64 = 256 << 10;

/// Writes a new file, and syncs it if it is `durable`. Removes what lies there: it was left behind, and may be a link.
/// Also removes a file that cannot be written whole, as on a full disk.
pub fn write_new(path: &Path, bytes: &[u8], durable: bool) -> Result<()> {
    remove_all(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(Error::io(path))?;
    let written = file.write_all(bytes).and_then(|()| if durable { file.sync_all() } else { Ok(()) });
    written.map_err(|error| {
        // A file that cannot be removed now, the next run removes.
        let _ = fs::remove_file(path);
        Error::io(path)(error)
    })
}

/// Syncs all files below a folder, and the folders themselves.
pub fn sync_tree(folder: &Path) -> Result<()> {
    let (files, folders) = below(folder)?;
    if (files.len() >= MANY || little_waits()) && sync_file_system(folder)? {
        return Ok(());
    }
    sync_each(&files, &folders)
}

/// Syncs all files below folders of one file system, and the folders themselves.
pub fn sync_trees(trees: &[&Path]) -> Result<()> {
    if let Some(first) = trees.first()
        && sync_file_system(first)?
    {
        return Ok(());
    }
    trees.iter().try_for_each(|folder| sync_tree(folder))
}

/// Makes the names in folders of one file system last.
pub fn sync_folders(folders: &[PathBuf]) -> Result<()> {
    if let Some(first) = folders.first()
        && !sync_file_system(first)?
    {
        folders.iter().for_each(|folder| sync_folder(folder));
    }
    Ok(())
}

/// Syncs all that was written to the file system of a folder. `false` where that is not possible, or would not report
/// errors (Linux before 5.8).
#[cfg(target_os = "linux")]
fn sync_file_system(folder: &Path) -> Result<bool> {
    static REPORTS_ERRORS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let reports = || {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
    };
    if !*REPORTS_ERRORS.get_or_init(reports) {
        return Ok(false);
    }
    let handle = File::open(folder).map_err(Error::io(folder))?;
    match rustix::fs::syncfs(&handle) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(Error::Io { path: folder.to_owned(), source: error.into() }),
    }
}

/// Whether little of what programs wrote waits for a disk. `false` where that is not known.
fn little_waits() -> bool {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let dirty = memory.lines().find_map(|line| line.strip_prefix("Dirty:")?.trim().strip_suffix(" kB"));
    dirty.and_then(|kb| kb.parse::<u64>().ok()).is_some_and(|kb| kb <= LITTLE_KB)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &Path) -> Result<bool> {
    Ok(false)
}

/// The files and the folders of a tree, parents first.
fn below(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
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
    Ok((files, folders))
}

fn sync_each(files: &[PathBuf], folders: &[PathBuf]) -> Result<()> {
    parallel::each(AT_ONCE, files, |_, path| {
        // Windows syncs what is open for writing only.
        let file = OpenOptions::new().write(true).open(path).map_err(Error::io(path))?;
        file.sync_all().map_err(Error::io(path))
    })?;
    folders.iter().rev().for_each(|folder| sync_folder(folder));
    Ok(())
}

/// Makes the names in a folder last. Best effort: not every system can sync a folder.
pub fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(handle) = File::open(folder)
    {
        let _ = handle.sync_all();
    }
}
