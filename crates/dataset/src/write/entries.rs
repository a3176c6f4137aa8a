//! The entries of a dataset of several recordings: `manifest/<key>.json`, one for each.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use tracequet_trace::error::{Error, Result};

use crate::format::{DamagedEntry, Line, MOST_ENTRY_BYTES, MOST_MANIFEST_BYTES, Summed, paths, tag_of};

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

/// The recordings of a dataset: key and entry, in the order of keys. None if it has no folder of entries.
pub fn entries(root: &Path) -> Result<Vec<(String, EntryBytes)>> {
    let names = names(&root.join(paths::ENTRIES))?;
    let mut keys: Vec<String> = names.iter().filter_map(|name| paths::key_of_entry(name).map(str::to_owned)).collect();
    keys.sort();
    let entry = |key: String| {
        let entry = read(root, &key)?;
        Some((key, entry))
    };
    Ok(keys.into_iter().filter_map(entry).collect())
}

/// Nothing if it was removed meanwhile.
fn read(root: &Path, key: &str) -> Option<EntryBytes> {
    match read_small(&root.join(paths::entry(key))) {
        Ok(bytes) => Some(Ok(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => Some(Err(DamagedEntry::new(key, e.to_string()))),
    }
}

/// A manifest that was read, and what it sums up.
pub(super) type Parsed = (Vec<u8>, Summed);

/// The entries of a dataset, summed up: what `manifest.json` says, and the entries that it does not have yet. All
/// entries are read when one was removed or changed since that was written, and when the sum is to be made `anew`.
/// `schema_version` is that of the tables of this program; `before` is the manifest that was read before, if one was.
pub(super) fn summed(root: &Path, schema_version: u32, anew: bool, before: &mut Option<Parsed>) -> Result<Summed> {
    // Before the listing: what comes meanwhile is new.
    let manifest = if anew { None } else { manifest(root) };
    let listed = listed(root)?;
    if let Some((bytes, written)) = manifest {
        if before.as_ref().is_none_or(|(own, _)| *own != bytes) {
            *before = Summed::parse(&bytes, schema_version).map(|summed| (bytes, summed));
        }
        if let Some((_, summed)) = before
            && let Some(fresh) = fresh(root, &listed, summed, written)
        {
            let mut summed = summed.clone();
            add(root, &mut summed, fresh.into_iter());
            return Ok(summed);
        }
    }
    let mut summed = Summed::new(schema_version);
    add(root, &mut summed, listed.iter().map(|(key, _)| key.as_str()));
    Ok(summed)
}

/// The entries that are not among those that a manifest sums up, if these are as they were. One that may have been
/// written after the manifest is read for that.
fn fresh<'l>(
    root: &Path,
    listed: &'l [(String, Option<SystemTime>)],
    summed: &Summed,
    written: SystemTime,
) -> Option<Vec<&'l str>> {
    let (mut recordings, mut failed) = (summed.recordings().iter().peekable(), summed.failed().iter().peekable());
    let mut fresh = Vec::new();
    for (key, changed) in listed {
        // Both are in the order of keys, so that one that is gone is still the next in the end.
        let is_it = |line: &&Line| line.key() == key;
        let Some(line) = recordings.next_if(is_it).or_else(|| failed.next_if(is_it)) else {
            fresh.push(key.as_str());
            continue;
        };
        let is_older = changed.is_some_and(|changed| changed < written);
        let is_same = |entry: EntryBytes| entry.is_ok_and(|bytes| tag_of(&bytes) == line.tag());
        if !is_older && !read(root, key).is_some_and(is_same) {
            return None;
        }
    }
    (recordings.peek().is_none() && failed.peek().is_none()).then_some(fresh)
}

fn add<'k>(root: &Path, summed: &mut Summed, keys: impl Iterator<Item = &'k str>) {
    for key in keys {
        match read(root, key) {
            Some(Ok(bytes)) => summed.add(key, &tag_of(&bytes), &bytes),
            Some(Err(damaged)) => summed.add_damaged(damaged),
            None => {}
        }
    }
}

/// The manifest, and when it was written.
fn manifest(root: &Path) -> Option<(Vec<u8>, SystemTime)> {
    let path = root.join(paths::MANIFEST);
    let written = fs::metadata(&path).ok()?.modified().ok()?;
    Some((read_manifest(&path).ok()?, written))
}

/// The keys of the entries in their order, each with when it was last changed, where the system says so.
fn listed(root: &Path) -> Result<Vec<(String, Option<SystemTime>)>> {
    let folder = root.join(paths::ENTRIES);
    let found = match fs::read_dir(&folder) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Io { path: folder, source }),
    };
    let mut listed = Vec::new();
    for entry in found {
        let entry = entry.map_err(Error::io(&folder))?;
        let name = entry.file_name();
        if let Some(key) = name.to_str().and_then(paths::key_of_entry) {
            listed.push((key.to_owned(), entry.metadata().ok().and_then(|found| changed(&found))));
        }
    }
    listed.sort();
    Ok(listed)
}

/// When a file was written or took its name. One that was written long ago, and was put there just now, has changed just now.
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

/// Names of what is in a folder; none if it is not there. A name that is no text is not one of ours.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let names = entries.filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose());
            names.collect::<std::io::Result<_>>().map_err(Error::io(folder))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(Error::Io { path: folder.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;
    use crate::format::{AddressType, Format, Head, Layout, check_size};

    const VERSION: u32 = 3;

    fn entry(root: &Path, key: &str, rows: u64) {
        let tables = serde_json::json!([{ "name": "gc", "rows": rows, "bytes": 1 }]);
        let entry = serde_json::json!({
            "trace_id": key, "sha256": key, "schema_version": VERSION, "tables": tables, "events": 1, "dropped_events": 0,
            "complete": true,
        });
        fs::create_dir_all(root.join(paths::ENTRIES)).unwrap();
        fs::write(root.join(paths::entry(key)), entry.to_string()).unwrap();
    }

    fn keys(summed: &Summed) -> Vec<&str> {
        summed.recordings().iter().map(|line| line.key()).collect()
    }

    fn rows(summed: &Summed) -> u64 {
        summed.tables().map(|table| table.rows).sum()
    }

    /// Writes the manifest of what there is, as if this many seconds ago; negative: in the future.
    fn describe(root: &Path, seconds_ago: i64) {
        let summed = summed(root, VERSION, true, &mut None).unwrap();
        let head = Head::of_now(VERSION, Layout::Hive, Format::Parquet, AddressType::Uint64);
        let path = root.join(paths::MANIFEST);
        fs::write(&path, summed.manifest(&head, &summed.tables().collect::<Vec<_>>())).unwrap();
        let (now, by) = (SystemTime::now(), Duration::from_secs(seconds_ago.unsigned_abs()));
        let written = if seconds_ago < 0 { now + by } else { now - by };
        File::options().append(true).open(&path).unwrap().set_modified(written).unwrap();
    }

    #[test]
    fn entries_that_the_manifest_has_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let of = |anew| summed(root, VERSION, anew, &mut None).unwrap();
        entry(root, "a", 1);
        entry(root, "b", 2);
        assert_eq!((keys(&of(false)), rows(&of(false))), (vec!["a", "b"], 3), "without a manifest");
        describe(root, -60);
        // No writer writes like this: it shows what is read.
        entry(root, "a", 100);
        assert_eq!(rows(&of(false)), 3);
        assert_eq!(rows(&of(true)), 102);
        entry(root, "c", 10);
        assert_eq!((keys(&of(false)), rows(&of(false))), (vec!["a", "b", "c"], 13), "what is new is added");
        // One that is gone is in no sum.
        fs::remove_file(root.join(paths::entry("b"))).unwrap();
        assert_eq!((keys(&of(false)), rows(&of(false))), (vec!["a", "c"], 110));
    }

    #[test]
    fn no_manifest_is_written_that_would_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(paths::MANIFEST);
        let file = File::create(&path).unwrap();
        for (bytes, is_well) in [(MOST_MANIFEST_BYTES, true), (MOST_MANIFEST_BYTES + 1, false)] {
            file.set_len(bytes).unwrap();
            assert_eq!(read_manifest(&path).is_ok(), is_well, "{bytes}");
            let written = check_size(&path, usize::try_from(bytes).unwrap());
            assert_eq!(written.is_ok(), is_well, "{bytes}: {written:?}");
        }
    }

    #[test]
    fn an_entry_that_is_newer_than_the_manifest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let of = || summed(root, VERSION, false, &mut None).unwrap();
        entry(root, "a", 1);
        entry(root, "b", 2);
        describe(root, 60);
        assert_eq!(rows(&of()), 3, "newer, and the same");
        entry(root, "a", 100);
        assert_eq!(rows(&of()), 102);
        fs::write(root.join(paths::entry("b")), "{").unwrap();
        let damaged = of();
        assert_eq!((keys(&damaged), damaged.damaged().len(), rows(&damaged)), (vec!["a"], 1, 100));
        // It is in no manifest, and is reported each time until it is repaired.
        describe(root, -60);
        assert_eq!(of().damaged().len(), 1);
        entry(root, "b", 2);
        assert_eq!((of().damaged().len(), rows(&of())), (0, 102));
    }

    /// A backup that was put back, and an entry that was written before the manifest and took its name after it.
    #[cfg(unix)]
    #[test]
    fn an_old_file_that_came_later_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        entry(root, "a", 1);
        describe(root, 1);
        let path = root.join("fresh");
        let place = root.join(paths::entry("a"));
        fs::write(&path, fs::read_to_string(&place).unwrap().replace("\"rows\":1", "\"rows\":7")).unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
        fs::rename(&path, &place).unwrap();
        assert_eq!(rows(&summed(root, VERSION, false, &mut None).unwrap()), 7);
    }
}
