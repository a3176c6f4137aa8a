//! A dataset in a store, of which the parts that are needed are copied to this machine.

use crate::prelude::*;
use std::path::Component;

use tracequet_dataset::format::paths::{self, ENTRIES, MANIFEST, NO_RECORDING, key_of, table_of};
use tracequet_dataset::format::{MOST_ENTRY_BYTES, MOST_MANIFEST_BYTES, PackHead};
use tracequet_dataset::write::pack_head;
use tracequet_trace::source::store::{Address, Failure, Object, Store, each, open, read};

use super::folder::Folder;

/// Files of packs on their way to their places: `<this>/<pack>/<name>`. Globs do not look into hidden folders.
pub(super) const ON_THEIR_WAY: &str = ".packs";

/// Where a file of a pack is before it is in its place.
pub(super) fn on_its_way(pack: &str, name: &str) -> String {
    format!("{ON_THEIR_WAY}/{pack}/{name}")
}

/// A dataset in a store. Its manifest and its entries are in a folder of this machine, which goes when this is dropped;
/// tables are copied there when they are asked for.
#[derive(Debug)]
pub struct StoredDataset {
    store: Arc<dyn Store>,
    address: Address,
    /// All objects below the address, by their names in the dataset.
    objects: Vec<Object>,
    /// Where files of packs are that are not in their places yet.
    waiting: HashMap<String, String>,
    /// The packs.
    packs: Vec<PackHead>,
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
    pub(super) fn open(store: Arc<dyn Store>, address: Address) -> Result<Option<StoredDataset>> {
        let shown = address.shown();
        let of_store = |failure: Failure| failure.at(&shown);
        let Some((manifest, _)) =
            read(store.as_ref(), &address.below(MANIFEST), MOST_MANIFEST_BYTES).map_err(of_store)?
        else {
            return Ok(None);
        };
        let mut objects = store.list(address.prefix()).map_err(of_store)?;
        let prefix = address.below("");
        for object in &mut objects {
            object.key = object.key.strip_prefix(&prefix).unwrap_or(&object.key).to_owned();
        }
        // A name that leads out of the folder is not ours.
        objects.retain(|object| stays_inside(&object.key));
        let waiting = placed(&mut objects);
        let folder = Folder::new()?;
        let path = folder.path().join(MANIFEST);
        std::fs::write(&path, manifest).map_err(Error::io(path))?;
        let packs = Vec::new();
        let mut dataset = StoredDataset { store, address, objects, waiting, packs, folder };
        dataset.copy(|name| key_of_entry(name).is_some() || pack_of_entry(name).is_some())?;
        for name in dataset.objects.iter().filter_map(|object| pack_of_entry(&object.key)) {
            // One that is damaged is named when the dataset is opened.
            let head = pack_head(dataset.path(), name).and_then(|line| PackHead::parse(name, &line.ok()?).ok());
            dataset.packs.extend(head);
        }
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

    /// Copies these tables of the recordings that do not have the table `without`.
    pub fn copy_tables_without(&self, without: &str, tables: &[&str]) -> Result<()> {
        let of_table = self.objects.iter().filter(|object| table_of(&object.key) == Some(without));
        let with: HashSet<Option<&str>> = of_table.map(|object| key_of(&object.key)).collect();
        let keys =
            self.objects.iter().filter_map(|object| key_of_entry(&object.key).or_else(|| pack_of_entry(&object.key)));
        // A dataset of one recording has no entries, and no names of recordings in its paths.
        let missing: HashSet<Option<&str>> = keys.map(Some).chain([None]).filter(|key| !with.contains(key)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.copy(|name| {
            let trace = key_of(name);
            (trace == Some(NO_RECORDING) || missing.contains(&trace))
                && table_of(name).is_some_and(|table| tables.contains(&table))
        })
    }

    /// Copies all tables of one recording.
    pub fn copy_recording(&self, trace_id: &str) -> Result<()> {
        // In a dataset of one recording its name is in no path.
        let pack = self.packs.iter().find(|head| head.index.has_key(trace_id)).map(|head| head.pack.as_str());
        let is_wanted = |trace: &str| trace == trace_id || trace == NO_RECORDING || Some(trace) == pack;
        self.copy(|name| key_of(name).is_none_or(is_wanted) && table_of(name).is_some())
    }

    /// Removes the copies of the tables of one recording.
    pub fn forget_recording(&self, trace_id: &str) {
        let end = format!("/{}", paths::partition(trace_id));
        for file in files_below(self.path(), |folder| folder.ends_with(&end)).unwrap_or_default() {
            // A file that cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.path().join(file));
        }
    }

    /// The objects below the address, each with its size in bytes; without hidden names.
    pub fn objects(&self) -> impl Iterator<Item = (&str, u64)> {
        let is_hidden = |object: &&Object| object.key.split('/').any(|part| part.starts_with('.'));
        self.objects.iter().filter(move |object| !is_hidden(object)).map(|object| (object.key.as_str(), object.size))
    }

    /// An object below the address, as it is shown.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.address.with_key(self.address.below(name)).shown()
    }

    /// Copies objects that are not here yet. What would take more than half of the free space is an error beforehand.
    fn copy(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let is_here = |name: &str| self.path().join(name).exists();
        let wanted: Vec<&Object> = self.objects.iter().filter(|o| wanted(&o.key) && !is_here(&o.key)).collect();
        let comes = |object: &&&Object| key_of_entry(&object.key).is_none() || object.size <= MOST_ENTRY_BYTES;
        let bytes: u64 = wanted.iter().filter(comes).map(|object| object.size).sum();
        let shown = self.address.shown();
        let room = tracequet_trace::source::store::room(self.path()) / 2;
        if bytes > room {
            let what = format!("{bytes} bytes are wanted of it, expected {room} at most: half of the free space here");
            return Err(Failure::other(what).at(shown).into());
        }
        let copied = each(&wanted, |object| {
            let path = self.path().join(&object.key);
            let failed = |e: std::io::Error| Failure::other(format!("{} cannot be written: {e}", path.display()));
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
            let mut file = std::fs::File::create(&path).map_err(failed)?;
            if key_of_entry(&object.key).is_some() && object.size > MOST_ENTRY_BYTES {
                // Too large for an entry. A file of the same size, without its bytes, is reported as it would be.
                return file.set_len(object.size).map_err(failed);
            }
            let key = self.address.below(self.waiting.get(&object.key).unwrap_or(&object.key));
            // Twice as large as it was listed is another object.
            let limit = object.size.saturating_mul(2).max(MOST_ENTRY_BYTES);
            let got = self.store.get(&key, None, limit, &mut file).map(drop);
            got.map_err(|failure| Failure { what: format!("{}: {}", object.key, failure.what), ..failure })
        });
        copied.map(drop).map_err(|failure| failure.at(shown).into())
    }
}

/// Gives files of packs that are not in their places the names of these. Returns where they are.
fn placed(objects: &mut [Object]) -> HashMap<String, String> {
    let there: HashSet<String> = objects.iter().map(|object| object.key.clone()).collect();
    let mut waiting = HashMap::new();
    for object in objects.iter_mut() {
        let name = key_of(&object.key).filter(|pack| there.contains(&paths::entry(pack)));
        let name = name.and_then(|pack| object.key.strip_prefix(&on_its_way(pack, ""))).map(str::to_owned);
        if let Some(name) = name.filter(|name| !there.contains(name)) {
            waiting.insert(name.clone(), std::mem::replace(&mut object.key, name));
        }
    }
    objects.sort_by(|a, b| a.key.cmp(&b.key));
    waiting
}

/// The pack of which `name` is the entry.
fn pack_of_entry(name: &str) -> Option<&str> {
    paths::pack_of_entry(name.rsplit('/').next()?).filter(|pack| paths::entry(pack) == name)
}

/// The recording of which `name` is the entry.
pub(super) fn key_of_entry(name: &str) -> Option<&str> {
    let (folder, file) = name.rsplit_once('/')?;
    let is_entry = folder == ENTRIES || folder.ends_with(&format!("/{ENTRIES}"));
    paths::key_of_entry(file).filter(|_| is_entry)
}

fn stays_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The files below a folder, by their names with `/`, of folders that are wanted: their names begin with `/`. Hidden
/// ones are left out.
pub fn files_below(root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
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
