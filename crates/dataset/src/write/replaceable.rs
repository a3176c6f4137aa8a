//! Checks what `overwrite` may replace: an empty directory, or a dataset of tracequet without other files.

use std::collections::HashSet;
use std::fs;

use serde::Deserialize;

use super::entries::{entries_but, names, pack_head, read_manifest};
use super::pack_places;
use crate::format::{Format, PackHead, PackedTable, is_ours, paths};
use crate::prelude::*;

/// Refuses to replace `target` unless it is a dataset of ours, or empty, and contains no input. `shown` is its name for
/// people.
pub(super) fn check(shown: &Path, target: &Path, overwrite: bool, inputs: &[PathBuf]) -> Result<()> {
    if !overwrite {
        let replaceable = replace(shown, target, inputs).is_ok();
        return Err(Error::Exists { path: shown.to_owned(), replaceable });
    }
    replace(shown, target, inputs)
}

/// Whether it may be replaced; an error says why not.
fn replace(shown: &Path, target: &Path, inputs: &[PathBuf]) -> Result<()> {
    let shown = shown.display();
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
            let what = if path.is_symlink() { "is a link" } else { "tracequet did not write" };
            let path = path.strip_prefix(target).unwrap_or(&path).display();
            Err(Error::Usage(format!("{shown} holds {path}, which {what}, so it is not replaced")))
        }
        None => Ok(()),
    }
}

/// The names in a manifest or an entry, of whatever version.
#[derive(Default, Deserialize)]
struct Names {
    #[serde(default)]
    tables: Vec<Table>,
    #[serde(default)]
    inputs: Vec<Recording>,
}

#[derive(Deserialize)]
struct Table {
    name: String,
}

#[derive(Deserialize)]
struct Recording {
    trace_id: String,
}

/// The names in the manifest, if it says that tracequet wrote it.
fn manifest(folder: &Path) -> Option<Names> {
    let bytes = read_manifest(&folder.join(paths::MANIFEST)).ok()?;
    is_ours(&bytes).then(|| serde_json::from_slice(&bytes).ok())?
}

/// Tables times recordings that are looked for by the manifest alone; of more, by the entries of the recordings.
const MAX_PARTS: usize = 4 << 20;

/// The files that a dataset with this manifest may have, relative to its directory. Not every recording has every
/// table.
fn files(root: &Path, manifest: &Names, max_parts: usize) -> HashSet<PathBuf> {
    let mut files: HashSet<PathBuf> = [paths::MANIFEST, paths::VIEWS].iter().map(PathBuf::from).collect();
    for Table { name } in &manifest.tables {
        files.extend(Format::ALL.map(|format| paths::flat(name, format).into()));
    }
    let entries = entries_but(root, |_| false).unwrap_or_default();
    let folder = Path::new(paths::ENTRIES);
    if !entries.is_empty() || root.join(folder).is_dir() {
        files.extend([paths::LOCK, pack_places::LOCK].map(|name| folder.join(name)));
    }
    for name in pack_places::names_in(root).unwrap_or_default() {
        let pack = pack_head(root, &name).and_then(|line| PackHead::parse(&name, &line.ok()?).ok());
        files.insert(paths::entry(&name).into());
        for PackedTable { name: table, .. } in pack.into_iter().flat_map(|pack| pack.tables) {
            files.insert(paths::file(&table, &name, Format::Parquet).into());
        }
    }
    // Files that a killed run was writing when it ended. The next run that adds a recording removes them.
    let halves = names(&root.join(folder)).unwrap_or_default().into_iter().filter(|name| name.ends_with(paths::HALF));
    files.extend(halves.map(|name| folder.join(name)));
    for (key, entry) in entries {
        files.insert(paths::entry(&key).into());
        let entry: Names = entry.ok().and_then(|entry| serde_json::from_slice(&entry).ok()).unwrap_or_default();
        add_parts(&mut files, &entry.tables, &key);
    }
    let (tables, recordings) = (&manifest.tables, &manifest.inputs);
    add_parts(&mut files, tables, paths::NO_RECORDING);
    // Each recording may have each table. Where the product has no bound nothing is known, and nothing is replaced.
    if tables.len().saturating_mul(recordings.len()) <= max_parts {
        recordings.iter().for_each(|recording| add_parts(&mut files, tables, &recording.trace_id));
    }
    files
}

/// The files of one recording of several.
fn add_parts(files: &mut HashSet<PathBuf>, tables: &[Table], key: &str) {
    for Table { name } in tables {
        files.extend(Format::ALL.map(|format| paths::file(name, key, format).into()));
    }
}

/// The file of which this one is a later part: a recording that is published while it is made has several.
fn first_part(name: &Path) -> PathBuf {
    let file = name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    paths::first_part(file).map_or_else(|| name.to_owned(), |first| name.with_file_name(first))
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
            let is_hidden = inner.as_os_str().is_empty()
                && entry.file_name().to_str().is_some_and(|name| paths::pack_of_hidden(name).is_some());
            if is_hidden && kind.is_dir() {
                // A compaction has moved this away.
                continue;
            }
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
        let manifest: Names = serde_json::from_str(MANIFEST).unwrap();
        let part = Path::new("event/P/E/trace=c/part-0.parquet");
        let within = files(root, &manifest, 6);
        assert!(within.contains(part) && within.contains(Path::new("gc/trace=a/part-0.arrow")));
        // Where the manifest names more, its parts are not known: such a directory is not replaced.
        let beyond = files(root, &manifest, 5);
        assert!(!beyond.contains(part) && beyond.contains(Path::new("gc.parquet")));
        fs::create_dir_all(root.join(part).parent().unwrap()).unwrap();
        fs::write(root.join(part), "rows").unwrap();
        assert_eq!(foreign(root, &within).unwrap(), None);
        // The folder of its table is known: a table without rows has a file there.
        assert_eq!(foreign(root, &beyond).unwrap(), Some(root.join("event/P/E/trace=c")));
        // The recordings that have an entry are known by it, whatever the manifest names.
        fs::create_dir(root.join(paths::ENTRIES)).unwrap();
        fs::write(root.join(paths::entry("c")), r#"{ "tables": [{ "name": "event/P/E" }] }"#).unwrap();
        assert_eq!(foreign(root, &files(root, &manifest, 5)).unwrap(), None);
    }
}
