//! Entries in a directory, `manifest/<key>.json`, and other small files there.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};

use crate::format::{DamagedEntry, MOST_ENTRY_BYTES, MOST_MANIFEST_BYTES, paths};
use crate::prelude::*;

/// The content of an entry, or of another small file. A pipe or a device in its place would never end.
pub fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    read_up_to(MOST_ENTRY_BYTES, path)
}

/// The content of a manifest, which has a line for each recording.
pub fn read_manifest(path: &Path) -> std::io::Result<Vec<u8>> {
    read_up_to(MOST_MANIFEST_BYTES, path)
}

fn read_up_to(bytes: u64, path: &Path) -> std::io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() || found.len() > bytes {
        return Err(std::io::Error::other(format!("is not a file of at most {} MB", bytes >> 20)));
    }
    fs::read(path)
}

/// The bytes of an entry, or why they cannot be read.
pub type EntryBytes = std::result::Result<Vec<u8>, DamagedEntry>;

/// The recordings of a dataset that have an entry of their own, but for some keys: key and entry, in the order of keys.
/// None if it has no folder of entries.
pub fn entries_but(root: &Path, is_out: impl Fn(&str) -> bool) -> Result<Vec<(String, EntryBytes)>> {
    let names = names(&root.join(paths::ENTRIES))?;
    let keys = names.iter().filter_map(|name| paths::key_of_entry(name)).filter(|key| !is_out(key));
    let mut keys: Vec<String> = keys.map(str::to_owned).collect();
    keys.sort();
    let entry = |key: String| {
        let entry = read(root, &key)?;
        Some((key, entry))
    };
    Ok(keys.into_iter().filter_map(entry).collect())
}

/// The entry of a recording or of a pack; nothing if it is not there, or was removed meanwhile.
pub fn read(root: &Path, key: &str) -> Option<EntryBytes> {
    match read_small(&root.join(paths::entry(key))) {
        Ok(bytes) => Some(Ok(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => Some(Err(DamagedEntry::new(key, e.to_string()))),
    }
}

/// The first line of the entry of a pack, with its end; nothing if it is not there.
pub fn pack_head(root: &Path, name: &str) -> Option<EntryBytes> {
    let path = root.join(paths::entry(name));
    let read = || {
        if !fs::metadata(&path)?.is_file() {
            return Err(std::io::Error::other("is no file"));
        }
        let mut line = Vec::new();
        BufReader::with_capacity(1 << 16, File::open(&path)?.take(MOST_ENTRY_BYTES)).read_until(b'\n', &mut line)?;
        Ok(line)
    };
    match read() {
        Ok(bytes) => Some(Ok(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => Some(Err(DamagedEntry::new(name, e.to_string()))),
    }
}

/// Names of what is in a folder; none if it is not there. A name that is no text is not one of ours.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let names = entries.filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose());
            names.collect::<std::io::Result<_>>().map_err(Error::io(folder))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(Error::Io { path: folder.to_owned(), source }),
    }
}
