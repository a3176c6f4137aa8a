//! Whether the files of a dataset are those that its manifest and its entries name.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::manifest::{Layout, NAME, TableInfo, stays_inside};
use super::open::Dataset;
use super::table::Table;
use crate::error::{Error, Result};
use crate::sink::{NO_RECORDING, UNFINISHED, entries, entry_path, read_small};

/// The file with the views, beside the manifest.
const VIEWS: &str = "views.sql";
/// End of the names of files by which a run notes what it has half done.
const HALF: &str = ".half";

/// The file of a table, as the dataset says it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TableFile {
    /// Its name below the dataset, with `/`.
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
    /// Its name below the dataset, with `/`.
    pub name: String,
    /// What it is.
    pub what: What,
}

/// What lies below a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file of so many bytes.
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
    /// Recordings that are still written: their parts change.
    unfinished: HashSet<String>,
    /// Files that are no tables.
    others: BTreeSet<String>,
    /// What the manifest and the entries say against each other.
    wrong: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Entry {
    trace_id: String,
    #[serde(default)]
    status: String,
    tables: Vec<TableInfo>,
}

/// The summary of all recordings.
#[derive(Deserialize)]
struct Summary {
    inputs: Vec<Key>,
    #[serde(default)]
    failed: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    trace_id: String,
}

impl Dataset {
    /// The files that there should be, by the entries of the recordings, those of failed ones among them. Of a dataset of one
    /// recording, by its manifest.
    pub fn files(&self) -> Result<Files> {
        let others = [NAME, VIEWS].map(str::to_owned).into();
        let mut files = Files { recordings: BTreeMap::new(), unfinished: HashSet::new(), others, wrong: Vec::new() };
        let extension = self.format().name();
        if self.layout() == Layout::Flat {
            let name = |table: &str| format!("{table}.{extension}");
            let tables = self.tables().iter().map(|table| TableFile::new(name(&table.name), table)).collect();
            let key = self.recordings().first().map_or_else(String::new, |recording| recording.trace_id.clone());
            files.recordings.insert(key, tables);
            return Ok(files);
        }
        let mut without_rows = BTreeSet::new();
        for (key, bytes) in entries(self.path())? {
            let place = entry_path(&key);
            let wrong = |what: String| Error::Dataset {
                path: self.path().join(&place),
                what,
                expected: "the entry of a recording".into(),
            };
            let entry: Entry = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
            if let Some(table) = entry.tables.iter().find(|table| !stays_inside(&table.name)) {
                return Err(wrong(format!("the name {:?}", table.name)));
            }
            let name = slashed(&place);
            if entry.trace_id != key {
                files.wrong.push((name.clone(), format!("says that it is of {:?}", entry.trace_id)));
            }
            files.others.insert(name);
            if entry.status == UNFINISHED {
                files.unfinished.insert(key);
                continue;
            }
            let name = |table: &str, key: &str| format!("{table}/trace={key}/part-0.{extension}");
            let mut tables = Vec::new();
            for table in &entry.tables {
                // Of tables without rows there may be one file for all recordings.
                if table.rows == 0 && table.bytes == 0 {
                    without_rows
                        .insert(TableFile { bytes: None, ..TableFile::new(name(&table.name, NO_RECORDING), table) });
                } else {
                    tables.push(TableFile::new(name(&table.name, &key), table));
                }
            }
            files.recordings.insert(key, tables);
        }
        let summary = self.path().join(NAME);
        let bytes = read_small(&summary).map_err(Error::io(&summary))?;
        let summary: Option<Summary> = serde_json::from_slice(&bytes).ok();
        let summed = summary.map(|summary| {
            summary.inputs.into_iter().chain(summary.failed).map(|key| key.trace_id).collect::<BTreeSet<_>>()
        });
        let all: BTreeSet<String> = files.recordings.keys().chain(&files.unfinished).cloned().collect();
        if !without_rows.is_empty() {
            files.recordings.insert(NO_RECORDING.to_owned(), without_rows.into_iter().collect());
        }
        if summed.is_none_or(|summed| summed != all) {
            let what = "sums up other recordings than there are; the next convert --append writes it anew";
            files.wrong.push((NAME.to_owned(), what.to_owned()));
        }
        Ok(files)
    }

    /// What lies below the directory. Links are not followed, and hidden names are left out: a run works in a hidden directory,
    /// and what a killed one left there the next one removes.
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
        Table::new(&file.table, self.path().join(&file.name), self.format())
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

    /// What is not as it should be, in the order of names, each with what is wrong: files that are missing, have another size or are
    /// no files, and what belongs to nothing.
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
        let trace = name.split('/').find_map(|part| part.strip_prefix("trace="));
        match (trace, what) {
            (Some(trace), What::File(_) | What::EmptyFolder) if self.unfinished.contains(trace) => None,
            (Some(NO_RECORDING), What::File(_)) => None,
            (Some(trace), What::EmptyFolder) if self.recordings.contains_key(trace) => None,
            (Some(trace), _) if self.recordings.contains_key(trace) => Some("is no file that its recording has"),
            (Some(_), _) => Some("belongs to no recording"),
            (None, What::EmptyFolder) => None,
            (None, _) if name.ends_with(HALF) => {
                Some("is half done by a run that goes on or was killed; the next one goes on")
            }
            (None, _) => Some("is no part of the dataset"),
        }
    }
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
