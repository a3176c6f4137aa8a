//! A dataset in a store, of which the parts that are needed are copied to this machine.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::folder::Folder;
use crate::error::{Error, Result};
use crate::sink::NO_RECORDING;
use crate::source::store::{Address, Failure, Object, Store, each, open, read};

/// The file that says that there is a dataset.
pub(super) const MANIFEST: &str = "manifest.json";
/// The folder of the entries.
pub(super) const ENTRIES: &str = "manifest";
/// Larger manifests and entries are not read.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// A dataset in a store. Its manifest and its entries are in a folder of this machine, which goes when this is dropped; tables
/// are copied there when they are asked for.
#[derive(Debug)]
pub struct StoredDataset {
    store: Arc<dyn Store>,
    address: Address,
    /// All objects below the address, by their names in the dataset.
    objects: Vec<Object>,
    folder: Folder,
}

/// Opens the dataset at an address. Nothing if the name is no address, or if there is no dataset.
pub fn fetch_dataset(name: &Path) -> Result<Option<StoredDataset>> {
    let Some(address) = Address::parse(name) else { return Ok(None) };
    let address = address?;
    let store = open(&address)?;
    StoredDataset::open(store, address)
}

impl StoredDataset {
    fn open(store: Arc<dyn Store>, address: Address) -> Result<Option<StoredDataset>> {
        let shown = address.shown();
        let of_store = |failure: Failure| failure.at(&shown);
        let Some((manifest, _)) = read(store.as_ref(), &address.below(MANIFEST), MOST_BYTES).map_err(of_store)? else {
            return Ok(None);
        };
        let mut objects = store.list(address.prefix()).map_err(of_store)?;
        let prefix = address.below("");
        for object in &mut objects {
            object.key = object.key.strip_prefix(&prefix).unwrap_or(&object.key).to_owned();
        }
        // A name that leads out of the folder is none of ours.
        objects.retain(|object| stays_inside(&object.key));
        let folder = Folder::new()?;
        let path = folder.path().join(MANIFEST);
        std::fs::write(&path, manifest).map_err(Error::io(path))?;
        let dataset = StoredDataset { store, address, objects, folder };
        dataset.copy(|name| key_of_entry(name).is_some())?;
        Ok(Some(dataset))
    }

    /// The folder on this machine.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The address.
    pub fn address(&self) -> PathBuf {
        self.address.shown()
    }

    /// Copies these tables of all recordings; without names all tables.
    pub fn copy_tables(&self, tables: &[&str]) -> Result<()> {
        self.copy(|name| tables.is_empty() || table_of(name).is_some_and(|table| tables.contains(&table)))
    }

    /// Copies all tables of one recording.
    pub fn copy_recording(&self, trace_id: &str) -> Result<()> {
        // In a dataset of one recording its name is in no path.
        let is_wanted = |trace: &str| trace == trace_id || trace == NO_RECORDING;
        self.copy(|name| trace_of(name).is_none_or(is_wanted) && table_of(name).is_some())
    }

    /// Removes the copies of the tables of one recording.
    pub fn forget_recording(&self, trace_id: &str) {
        let end = format!("/trace={trace_id}");
        for file in files_below(self.path(), |folder| folder.ends_with(&end)).unwrap_or_default() {
            // What cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.path().join(file));
        }
    }

    /// What is not as the entries say: files that are missing, and files of recordings that have no entry. Sentences for a
    /// person.
    pub fn strays(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let names: std::collections::HashSet<&str> = self.objects.iter().map(|object| object.key.as_str()).collect();
        let mut traces = std::collections::HashSet::new();
        let shown = |name: &str| self.address.with_key(self.address.below(name)).shown().display().to_string();
        let extension = self.extension()?;
        for name in names.iter().filter(|name| key_of_entry(name).is_some()) {
            let path = self.path().join(name);
            let entry = std::fs::read(&path).map_err(Error::io(&path))?;
            let entry: Value = serde_json::from_slice(&entry).unwrap_or_default();
            let trace = key_of_entry(name).unwrap_or_default();
            traces.insert(trace);
            for table in entry.get("tables").and_then(Value::as_array).into_iter().flatten() {
                let rows = table.get("rows").and_then(Value::as_u64);
                let table = table.get("name").and_then(Value::as_str).unwrap_or_default();
                // Without rows a file may be there or not.
                if rows == Some(0) {
                    continue;
                }
                let file = format!("{table}/trace={trace}/part-0.{extension}");
                if !names.contains(file.as_str()) {
                    wrong.push(format!("{}: is not there", shown(&file)));
                }
            }
        }
        for object in &self.objects {
            let is_of_nobody = |trace: &str| trace != NO_RECORDING && !traces.contains(trace);
            if trace_of(&object.key).is_some_and(is_of_nobody) {
                wrong.push(format!("{}: belongs to no recording", shown(&object.key)));
            }
        }
        wrong.sort();
        Ok(wrong)
    }

    fn extension(&self) -> Result<String> {
        let path = self.path().join(MANIFEST);
        let manifest = std::fs::read(&path).map_err(Error::io(&path))?;
        let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
        Ok(manifest.get("format").and_then(Value::as_str).unwrap_or("parquet").to_owned())
    }

    /// Copies objects that are not here yet. What would take more than half of the free space is an error beforehand.
    fn copy(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let is_here = |name: &str| self.path().join(name).exists();
        let wanted: Vec<&Object> = self.objects.iter().filter(|o| wanted(&o.key) && !is_here(&o.key)).collect();
        let bytes: u64 = wanted.iter().map(|object| object.size).sum();
        let shown = self.address.shown();
        let room = crate::source::store::room(self.path()) / 2;
        if bytes > room {
            let what = format!("{bytes} bytes are wanted of it, expected {room} at most: half of the free space here");
            return Err(Failure::other(what).at(shown));
        }
        let copied = each(&wanted, |object| {
            let path = self.path().join(&object.key);
            let failed = |e: std::io::Error| Failure::other(format!("{} cannot be written: {e}", path.display()));
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
            let mut file = std::fs::File::create(&path).map_err(failed)?;
            let key = self.address.below(&object.key);
            // Twice as large as it was listed is another object.
            let limit = object.size.saturating_mul(2).max(MOST_BYTES);
            let got = self.store.get(&key, None, limit, &mut file).map(drop);
            got.map_err(|failure| Failure { what: format!("{}: {}", object.key, failure.what), ..failure })
        });
        copied.map(drop).map_err(|failure| failure.at(shown))
    }
}

/// The recording of which `name` is the entry.
pub(super) fn key_of_entry(name: &str) -> Option<&str> {
    let (folder, file) = name.rsplit_once('/')?;
    let key = file.strip_suffix(".json")?;
    let is_entry = folder == ENTRIES || folder.ends_with(&format!("/{ENTRIES}"));
    (is_entry && stays_inside(key)).then_some(key)
}

/// The recording that a file of a dataset belongs to.
fn trace_of(name: &str) -> Option<&str> {
    name.split('/').find_map(|part| part.strip_prefix("trace="))
}

/// The table that a file of a dataset holds.
fn table_of(name: &str) -> Option<&str> {
    let (path, extension) = name.rsplit_once('.')?;
    if !matches!(extension, "parquet" | "arrow") {
        return None;
    }
    Some(path.split_once("/trace=").map_or(path, |(table, _)| table))
}

fn stays_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The files below a folder, by their names with `/`, of folders that are wanted: their names begin with `/`. Hidden ones are
/// left out.
pub(super) fn files_below(root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(folder.trim_start_matches('/'));
        for entry in std::fs::read_dir(&path).map_err(Error::io(&path))? {
            let entry = entry.map_err(Error::io(&path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type().map_err(Error::io(&path))?.is_dir() {
                folders.push(format!("{folder}/{name}"));
            } else if wanted(&folder) {
                found.push(format!("{folder}/{name}").trim_start_matches('/').to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
