//! Compares the files of a dataset with its manifest and its entries.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::error::{Error, Result};

use super::described::{Described, described};
use super::open::Dataset;
use super::table::Table;
use crate::format::paths::{self, NO_RECORDING};
use crate::format::{Entry, Head, Layout, Lists, Pack, PackedTable, Recorded, Status, TableInfo, VERSION};
use crate::table::views;
use crate::write::{read_manifest, read_small};

/// The file of a table, as the dataset says it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TableFile {
    /// The name below the dataset, with `/`.
    pub name: String,
    /// The table.
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// Size in bytes, if the dataset says it.
    pub bytes: Option<u64>,
}

/// Something that lies below a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name below the dataset, with `/`.
    pub name: String,
    /// The kind of node.
    pub what: What,
}

/// A kind of node below a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file of this size.
    File(u64),
    /// A link. What it leads to is not looked at.
    Link,
    /// A pipe, a device or a socket.
    Special,
    /// A folder with nothing in it.
    EmptyFolder,
}

/// The files that a dataset should have.
#[derive(Debug)]
pub struct Files {
    /// By the keys of recordings.
    recordings: BTreeMap<String, Vec<TableFile>>,
    /// Recordings whose files are not known: those that are still written, and those whose entry is damaged.
    unlisted: HashSet<String>,
    /// Files that are no tables.
    others: BTreeSet<String>,
    /// Contradictions between the manifest and the entries.
    wrong: Vec<(String, String)>,
}

/// The summary of the recordings that a manifest should have.
#[derive(Default)]
struct Summary {
    /// The entries without their tables, by their keys.
    recordings: BTreeMap<String, Recorded>,
    /// Rows and bytes of all tables.
    tables: BTreeMap<String, (u64, u64)>,
    /// Keys of entries that are damaged. A manifest may have them, from before.
    damaged: BTreeSet<String>,
    /// Recordings of each pack.
    packs: BTreeMap<String, usize>,
}

impl Summary {
    fn add(&mut self, entry: Entry) {
        for table in entry.tables {
            let (rows, bytes) = self.tables.entry(table.name).or_default();
            *rows = rows.saturating_add(table.rows);
            *bytes = bytes.saturating_add(table.bytes);
        }
        self.recordings.insert(entry.recorded.trace_id.clone(), entry.recorded);
    }

    fn add_pack(&mut self, name: String, tables: &[PackedTable], recordings: usize) {
        for table in tables {
            let (rows, bytes) = self.tables.entry(table.name.clone()).or_default();
            *rows = rows.saturating_add(table.rows());
            *bytes = bytes.saturating_add(table.bytes());
        }
        self.packs.insert(name, recordings);
    }

    /// The difference from a manifest, as a sentence.
    fn differs_from(&self, lists: &Lists) -> Option<String> {
        let all = lists.inputs.iter().chain(&lists.failed);
        let summed: Vec<&Recorded> = all.filter(|recorded| !self.damaged.contains(&recorded.trace_id)).collect();
        let keys: BTreeSet<&String> = summed.iter().map(|recorded| &recorded.trace_id).collect();
        if keys.len() != summed.len() || !keys.into_iter().eq(self.recordings.keys()) {
            return Some("does not match the entries".into());
        }
        if let Some(other) = summed.iter().find(|summed| self.recordings.get(&summed.trace_id) != Some(summed)) {
            return Some(format!("differs from the entry of {}", other.trace_id));
        }
        if !self.damaged.is_empty() {
            return None;
        }
        // One that another pack has replaced may be named, too.
        let living = lists.packs.iter().filter(|pack| pack.recordings > 0);
        if !living.map(|pack| (&pack.name, &pack.recordings)).eq(self.packs.iter()) {
            return Some("does not match the packs".into());
        }
        let tables: BTreeMap<&str, (u64, u64)> =
            lists.tables.iter().map(|table| (table.name.as_str(), (table.rows, table.bytes))).collect();
        let names: BTreeSet<&str> = tables.keys().copied().chain(self.tables.keys().map(String::as_str)).collect();
        // A table that no recording has is there without rows.
        let own = |name: &str| self.tables.get(name).copied().unwrap_or_default();
        let other = names.into_iter().find(|name| tables.get(name) != Some(&own(name)))?;
        let (rows, bytes) = own(other);
        let (said, said_bytes) = tables.get(other).copied().unwrap_or_default();
        Some(format!("says that {other} has {said} rows and {said_bytes} bytes, expected {rows} and {bytes}"))
    }
}

/// The views of the tables of a manifest, if this version wrote it.
fn views_of(head: &Head, lists: &Lists) -> Option<String> {
    let names: Vec<&str> = lists.tables.iter().map(|table| table.name.as_str()).collect();
    let files = views::Files { only_trace: None, read_by: head.format.into() };
    (head.version == VERSION).then(|| views::sql(&names, files))
}

impl Dataset {
    /// The files that there should be, by the entries of the recordings, those of failed ones among them. Of a dataset
    /// of one recording, by its manifest.
    pub fn files(&self) -> Result<Files> {
        let others = [paths::MANIFEST, paths::VIEWS].map(str::to_owned).into();
        let mut files = Files { recordings: BTreeMap::new(), unlisted: HashSet::new(), others, wrong: Vec::new() };
        if self.layout() == Layout::Flat {
            let name = |table: &str| paths::flat(table, self.format());
            let tables = self.tables().iter().map(|table| TableFile::new(name(&table.name), table)).collect();
            let key = self.recordings().first().map_or_else(String::new, |recording| recording.trace_id.clone());
            files.recordings.insert(key, tables);
            return Ok(files);
        }
        let mut without_rows = BTreeSet::new();
        let mut all = Summary::default();
        let Described { packs, entries, damaged } =
            described(self.path(), |pack: Pack| (pack.name, pack.tables, pack.members.len()))?;
        for damaged in damaged {
            let name = paths::entry(&damaged.key);
            let mends = match paths::is_pack(&damaged.key) {
                true => "; restore it from a copy",
                false => "; convert its recording again, or remove it from the dataset",
            };
            files.wrong.push((name.clone(), format!("is damaged: {}{mends}", damaged.what)));
            files.others.insert(name);
            all.damaged.insert(damaged.key.clone());
            files.unlisted.insert(damaged.key);
        }
        for (name, packed, recordings) in packs {
            files.others.insert(paths::entry(&name));
            let mut tables = Vec::new();
            for table in &packed {
                for (number, file) in (0u32..).zip(&table.files) {
                    let info = TableInfo::new(table.name.clone(), file.rows, file.bytes);
                    tables.push(TableFile::new(paths::packed(&table.name, &name, number), &info));
                }
            }
            files.recordings.insert(name.clone(), tables);
            all.add_pack(name, &packed, recordings);
        }
        for entry in entries {
            let key = entry.recorded.trace_id.clone();
            files.others.insert(paths::entry(&key));
            let is_unfinished = entry.recorded.status == Status::Unfinished;
            let name = |table: &str, key: &str| paths::file(table, key, self.format());
            let mut tables = Vec::new();
            for table in entry.tables.iter().filter(|_| !is_unfinished) {
                // Of tables without rows there may be one file for all recordings.
                if table.rows == 0 && table.bytes == 0 {
                    without_rows
                        .insert(TableFile { bytes: None, ..TableFile::new(name(&table.name, NO_RECORDING), table) });
                } else {
                    tables.push(TableFile::new(name(&table.name, &key), table));
                }
            }
            all.add(entry);
            match is_unfinished {
                true => drop(files.unlisted.insert(key)),
                false => drop(files.recordings.insert(key, tables)),
            }
        }
        if !without_rows.is_empty() {
            files.recordings.insert(NO_RECORDING.to_owned(), without_rows.into_iter().collect());
        }
        let path = self.path().join(paths::MANIFEST);
        let manifest = read_manifest(&path).map_err(Error::io(&path))?;
        let (head, lists) = (Head::parse(&path, &manifest, None)?, Lists::parse(&path, &manifest)?);
        let anew = |what: String| format!("{what}; dataset repair rewrites it");
        if let Some(what) = all.differs_from(&lists) {
            files.wrong.push((paths::MANIFEST.to_owned(), anew(what)));
        } else if let Ok(views) = read_small(&self.path().join(paths::VIEWS))
            && views_of(&head, &lists).is_some_and(|own| own.as_bytes() != views)
        {
            files.wrong.push((paths::VIEWS.to_owned(), anew("does not match the tables".to_owned())));
        }
        Ok(files)
    }

    /// The nodes below the directory. Links are not followed, and hidden names are left out: a run works in a hidden
    /// directory, and what a killed one left there the next one removes.
    pub fn found(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let path = self.path().join(&folder);
            let mut is_empty = true;
            for entry in std::fs::read_dir(&path).map_err(Error::io(&path))? {
                let entry = entry.map_err(Error::io(&path))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                is_empty = false;
                if name.starts_with('.') {
                    continue;
                }
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let metadata = match entry.metadata() {
                    Ok(metadata) => metadata,
                    // Removed meanwhile.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(Error::io(entry.path())(e)),
                };
                let what = match metadata.file_type() {
                    kind if kind.is_dir() => {
                        folders.push(name);
                        continue;
                    }
                    kind if kind.is_symlink() => What::Link,
                    kind if kind.is_file() => What::File(metadata.len()),
                    _ => What::Special,
                };
                found.push(Found { name, what });
            }
            if is_empty && !folder.is_empty() {
                found.push(Found { name: folder, what: What::EmptyFolder });
            }
        }
        Ok(found)
    }

    /// The table in a file, to be read.
    pub fn table_in(&self, file: &TableFile) -> Table {
        Table::of_file(&file.table, self.path().join(&file.name), self.format())
    }
}

impl TableFile {
    fn new(name: String, table: &TableInfo) -> TableFile {
        TableFile { name, table: table.name.clone(), rows: table.rows, bytes: Some(table.bytes) }
    }
}

impl Files {
    /// The recordings, by their keys, with the files of their tables. Those that are still written are left out.
    pub fn by_recording(&self) -> impl Iterator<Item = (&str, &[TableFile])> {
        self.recordings.iter().map(|(key, files)| (key.as_str(), files.as_slice()))
    }

    /// The faults in the order of names, each with its reason: files that are missing, have
    /// another size or are no files, and what belongs to nothing.
    pub fn wrong(&self, found: &[Found]) -> Vec<(String, String)> {
        let mut wrong = self.wrong.clone();
        let there: BTreeMap<&str, What> = found.iter().map(|found| (found.name.as_str(), found.what)).collect();
        let mut known: HashSet<&str> = HashSet::new();
        let tables = self.recordings.values().flatten().map(|file| (&file.name, file.bytes));
        for (name, bytes) in tables.chain(self.others.iter().map(|name| (name, None))) {
            known.insert(name);
            let what = match (there.get(name.as_str()), bytes) {
                (None, _) => "is not there".to_owned(),
                (Some(What::File(own)), Some(bytes)) if *own != bytes => format!("has {own} bytes, expected {bytes}"),
                (Some(What::File(_)), _) => continue,
                (Some(What::Link), _) => "is a link, expected a file".to_owned(),
                (Some(What::Special | What::EmptyFolder), _) => "is no file".to_owned(),
            };
            wrong.push((name.clone(), what));
        }
        for Found { name, what } in found {
            if !known.contains(name.as_str())
                && let Some(why) = self.stray(name, *what)
            {
                wrong.push((name.clone(), why.to_owned()));
            }
        }
        wrong.sort();
        wrong
    }

    /// Why something that no entry names is wrong there.
    fn stray(&self, name: &str, what: What) -> Option<&'static str> {
        let trace = paths::key_of(name);
        match (trace, what) {
            (Some(trace), What::File(_) | What::EmptyFolder) if self.unlisted.contains(trace) => None,
            (Some(NO_RECORDING), What::File(_)) => None,
            (Some(trace), What::EmptyFolder) if self.recordings.contains_key(trace) => None,
            (Some(trace), _) if paths::is_pack(trace) && !self.recordings.contains_key(trace) => {
                Some("is of a pack that another one has replaced; the next run cleans up")
            }
            (Some(trace), _) if self.recordings.contains_key(trace) => Some("is not listed in its recording's entry"),
            (Some(_), _) => Some("belongs to no recording"),
            (None, What::EmptyFolder) => None,
            (None, _) if name.ends_with(paths::HALF) => Some("is unfinished; the next run cleans up"),
            (None, _) if name.starts_with(&format!("{}/", paths::ENTRIES)) && name.ends_with(".json") => {
                Some("is of a recording or a pack that is in another pack; the next run cleans up")
            }
            (None, _) => Some("is not part of the dataset"),
        }
    }
}
