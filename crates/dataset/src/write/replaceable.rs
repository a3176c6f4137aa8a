//! Checks what `overwrite` may replace: an empty directory, or a dataset of tracequet without other files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tracequet_trace::error::{Error, Result};

use super::entries::{FOLDER, LOCK, MANIFEST, NO_RECORDING, entries, entry_path, names, read_manifest, texts};
use super::{FIRST_PART, Format};

/// Files of a dataset that are no tables.
const BESIDE_TABLES: [&str; 2] = [MANIFEST, "views.sql"];

/// Refuses to replace `target` unless it is a dataset of ours, or empty, and contains no input. `shown` is its name for
/// people.
pub(super) fn check(shown: &Path, target: &Path, overwrite: bool, inputs: &[PathBuf]) -> Result<()> {
    let shown = shown.display();
    if !overwrite {
        return Err(Error::Usage(format!("{shown} exists already; use --overwrite to replace the dataset")));
    }
    if !target.is_dir() {
        return Err(Error::Usage(format!("{shown} is not a directory, so it is not replaced")));
    }
    let holds = |input: &&PathBuf| fs::canonicalize(input).is_ok_and(|input| input.starts_with(target));
    if let Some(input) = inputs.iter().find(holds) {
        return Err(Error::Usage(format!("{shown} holds the input {}, so it is not replaced", input.display())));
    }
    if fs::read_dir(target).map_err(Error::io(target))?.next().is_none() {
        return Ok(());
    }
    let Some(manifest) = manifest(target) else {
        let message = format!("{shown} holds something else than a dataset of tracequet, so it is not replaced");
        return Err(Error::Usage(message));
    };
    match foreign(target, &files(target, &manifest, MAX_PARTS))? {
        Some(path) => {
            let path = path.strip_prefix(target).unwrap_or(&path).display();
            Err(Error::Usage(format!("{shown} holds {path}, which tracequet did not write, so it is not replaced")))
        }
        None => Ok(()),
    }
}

/// The manifest, if it says that tracequet wrote it: `"tool": "tracequet…"`, or an object with such a `"name"`.
fn manifest(folder: &Path) -> Option<Value> {
    let bytes = read_manifest(&folder.join(MANIFEST)).ok()?;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    let tool = manifest.get("tool")?;
    let name = tool.get("name").unwrap_or(tool).as_str()?;
    (name.split([' ', '/']).next() == Some("tracequet")).then_some(manifest)
}

/// Tables times recordings that are looked for by the manifest alone; of more, by the entries of the recordings.
const MAX_PARTS: usize = 4 << 20;

/// The files that a dataset with this manifest may have, relative to its directory. Not every recording has every table.
fn files(root: &Path, manifest: &Value, max_parts: usize) -> HashSet<PathBuf> {
    let mut files: HashSet<PathBuf> = BESIDE_TABLES.iter().map(PathBuf::from).collect();
    for table in texts(manifest, "tables", "name") {
        for format in [Format::Parquet, Format::Arrow] {
            files.insert(super::table_path(&table, None, format).into());
        }
    }
    let entries = entries(root).unwrap_or_default();
    if !entries.is_empty() || root.join(FOLDER).is_dir() {
        files.insert(Path::new(FOLDER).join(LOCK));
    }
    // What a killed run was writing when it ended. The next one that adds a recording removes it.
    let halves = names(&root.join(FOLDER)).unwrap_or_default().into_iter().filter(|name| name.ends_with(".half"));
    files.extend(halves.map(|name| Path::new(FOLDER).join(name)));
    for (key, entry) in entries {
        files.insert(entry_path(&key));
        let entry: Value = entry.ok().and_then(|entry| serde_json::from_slice(&entry).ok()).unwrap_or_default();
        add_parts(&mut files, &texts(&entry, "tables", "name"), &key);
    }
    let tables = texts(manifest, "tables", "name");
    add_parts(&mut files, &tables, NO_RECORDING);
    let keys = texts(manifest, "inputs", "trace_id");
    // Each recording may have each table. Where the product has no bound nothing is known, and nothing is replaced.
    if tables.len().saturating_mul(keys.len()) <= max_parts {
        keys.iter().for_each(|key| add_parts(&mut files, &tables, key));
    }
    files
}

/// The files of one recording of several.
fn add_parts(files: &mut HashSet<PathBuf>, tables: &[String], key: &str) {
    for table in tables {
        for format in [Format::Parquet, Format::Arrow] {
            files.insert(super::table_path(table, Some(&format!("trace={key}")), format).into());
        }
    }
}

/// The file of which this one is a later part: a recording that is published while it is made has several.
fn first_part(name: &Path) -> PathBuf {
    let file = name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = file.strip_prefix("part-").and_then(|rest| rest.split_once('.'));
    match number {
        Some((digits, extension)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            name.with_file_name(format!("{FIRST_PART}.{extension}"))
        }
        _ => name.to_owned(),
    }
}

/// The first thing below `folder` that is not in `known` and no folder on the way to one of them.
fn foreign(folder: &Path, known: &HashSet<PathBuf>) -> Result<Option<PathBuf>> {
    let folders: HashSet<&Path> = known.iter().flat_map(|file| file.ancestors().skip(1)).collect();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        let path = folder.join(&inner);
        let entries = fs::read_dir(&path).and_then(Iterator::collect);
        let mut entries: Vec<fs::DirEntry> = entries.map_err(Error::io(&path))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = inner.join(entry.file_name());
            let kind = entry.file_type().map_err(Error::io(entry.path()))?;
            // Nothing that we write is a link.
            let is_ours = match kind.is_dir() {
                true => folders.contains(name.as_path()),
                false => kind.is_file() && (known.contains(&name) || known.contains(&first_part(&name))),
            };
            if !is_ours {
                return Ok(Some(entry.path()));
            }
            if kind.is_dir() {
                open.push(name);
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dataset of several recordings, of an older release: its recordings have no entries.
    const MANIFEST: &str = r#"{ "tool": "tracequet 0.1", "tables": [{ "name": "gc" }, { "name": "event/P/E" }],
        "inputs": [{ "trace_id": "a" }, { "trace_id": "b" }, { "trace_id": "c" }] }"#;

    #[test]
    fn tables_times_recordings_are_looked_for_up_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        let part = Path::new("event/P/E/trace=c/part-0.parquet");
        let within = files(root, &manifest, 6);
        assert!(within.contains(part) && within.contains(Path::new("gc/trace=a/part-0.arrow")));
        // Where the manifest names more, its parts are not known: such a directory is not replaced.
        let beyond = files(root, &manifest, 5);
        assert!(!beyond.contains(part) && beyond.contains(Path::new("gc.parquet")));
        fs::create_dir_all(root.join(part).parent().unwrap()).unwrap();
        fs::write(root.join(part), "rows").unwrap();
        assert_eq!(foreign(root, &within).unwrap(), None);
        // Its table's folder is: a table without rows has a file there.
        assert_eq!(foreign(root, &beyond).unwrap(), Some(root.join("event/P/E/trace=c")));
        // The recordings that have an entry are known by it, whatever the manifest names.
        fs::create_dir(root.join(FOLDER)).unwrap();
        fs::write(root.join(entry_path("c")), r#"{ "tables": [{ "name": "event/P/E" }] }"#).unwrap();
        assert_eq!(foreign(root, &files(root, &manifest, 5)).unwrap(), None);
    }
}
