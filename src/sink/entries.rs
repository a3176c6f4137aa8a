//! The entries of a dataset of several recordings: `manifest/<key>.json`, one for each.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};

/// Folder of the entries.
pub(super) const FOLDER: &str = "manifest";
/// The file that is locked, in that folder.
pub(super) const LOCK: &str = ".lock";
const ENTRY: &str = ".json";
/// The key under which a dataset of several recordings has a file without rows of each table: `<table>/trace=none/`. It is the key
/// of no recording: those end with a hyphen and eight hexadecimal digits.
pub const NO_RECORDING: &str = "none";
/// The status of a recording that is still written, or whose recorder was killed: it has parts, and no end.
pub const UNFINISHED: &str = "unfinished";

/// Where the entry of a recording is, in the dataset.
pub fn entry_path(key: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{key}{ENTRY}"))
}

/// Larger manifests and entries are not read: 64 bytes for each of a million tables.
const MAX_BYTES: u64 = 64 << 20;

/// The content of a manifest or an entry. A pipe or a device in its place would never end.
pub fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(std::io::Error::other("is no file of at most 64 MB"));
    }
    fs::read(path)
}

/// The recordings of a dataset: key and entry, in the order of keys. None if it has no folder of entries.
pub fn entries(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = root.join(FOLDER);
    let mut found = Vec::new();
    for name in names(&folder)? {
        let Some(key) = name.strip_suffix(ENTRY) else { continue };
        let path = folder.join(&name);
        match read_small(&path) {
            Ok(bytes) => found.push((key.to_owned(), bytes)),
            // Removed meanwhile.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { path, source }),
        }
    }
    found.sort();
    Ok(found)
}

/// Names of what is in a folder; none if it is not there.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
            names.collect::<std::io::Result<_>>().map_err(Error::io(folder))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(Error::Io { path: folder.to_owned(), source }),
    }
}

/// A text of each item of a list.
pub(super) fn texts(manifest: &Value, list: &str, key: &str) -> Vec<String> {
    let list = manifest.get(list).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.get(key)?.as_str().map(str::to_owned)).collect()
}
