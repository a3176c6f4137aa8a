//! What of a dataset in a directory is read to sum it up.

use std::fs::{self, File};
use std::path::Path;

use super::super::directory::Directory;
use super::*;
use tracequet_dataset::format::{AddressType, Head, Layout, MOST_MANIFEST_BYTES};
use tracequet_dataset::write::entries::read_manifest;

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

fn summed_in(root: &Path, anew: bool) -> Summed {
    Lake::of(Directory::new(root, false), VERSION).summed(anew).unwrap()
}

fn keys(summed: &Summed) -> Vec<&str> {
    summed.recordings().iter().map(|line| line.key()).collect()
}

fn rows(summed: &Summed) -> u64 {
    summed.tables().map(|table| table.rows).sum()
}

/// Writes the manifest of what there is, as if this many seconds ago; negative: in the future.
fn describe(root: &Path, seconds_ago: i64) {
    let summed = summed_in(root, true);
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
    let of = |anew| summed_in(root, anew);
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
    let of = || summed_in(root, false);
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
    assert_eq!(rows(&summed_in(root, false)), 7);
}

/// A lake that sums up again goes by what it has read, and notices what changed since.
#[test]
fn a_sum_that_was_made_is_gone_by() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (key, rows) in [("a", 1), ("b", 2)] {
        entry(root, key, rows);
    }
    describe(root, -60);
    entry(root, "c", 10);
    fs::write(root.join(paths::entry("d")), "{").unwrap();
    let lake = Lake::of(Directory::new(root, false), VERSION);
    let of = || {
        let summed = lake.summed(false).unwrap();
        (keys(&summed).join(" "), rows(&summed), summed.damaged().len())
    };
    assert_eq!([of(), of()], [("a b c".into(), 13, 1), ("a b c".into(), 13, 1)]);
    // The manifest has the others, so that only these are read.
    entry(root, "a", 100);
    fs::remove_file(root.join(paths::entry("c"))).unwrap();
    entry(root, "d", 5);
    assert_eq!(of(), ("a b d".into(), 8, 0));
    fs::remove_file(root.join(paths::MANIFEST)).unwrap();
    assert_eq!([of(), of()], [("a b d".into(), 107, 0), ("a b d".into(), 107, 0)]);
}
