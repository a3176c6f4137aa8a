//! A dataset of several recordings that grows in a store: each recording appears by one object, its entry, which is written
//! when all its files are there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::dataset::{ENTRIES, MANIFEST, MOST_BYTES, files_below, key_of_entry, table_of, trace_of};
use crate::error::{Error, Result};
use crate::pipeline::describe;
use crate::pipeline::empty::{Empty, is_of_now};
use crate::pipeline::known::head_of;
use crate::pipeline::request::Convert;
use crate::sink::{Encoders, Lake, Put, entry_path};
use crate::source::store::{Address, Failure, FailureKind, Store, Version, When, each, open, read};

/// So often a summary is made anew when somebody else has written one meanwhile.
const ATTEMPTS: u32 = 30;

type Stored<T> = std::result::Result<T, Failure>;

/// A dataset in a store, and the folder on this machine where recordings are made for it. The folder has the entries of all
/// recordings, and files only of those that are being written.
#[derive(Debug)]
pub(crate) struct StoreLake {
    store: Arc<dyn Store>,
    address: Address,
    folder: PathBuf,
    /// Entries that were read, by their key, each with its tag.
    seen: Mutex<HashMap<String, Entry>>,
    /// Tables of which this run has seen to it that there is a file without rows.
    empty: Mutex<Vec<String>>,
    /// Whether the store was found to have no conditions.
    unconditional: AtomicBool,
}

/// The tag and the text of an entry.
type Entry = (Option<String>, Vec<u8>);

/// Removes recordings of a dataset in a store.
pub(crate) fn remove(address: &Address, keys: &[String]) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::io("temporary directory"))?;
    let lake = StoreLake::open(open(address)?, address.clone(), folder.path())?;
    let shown = address.shown();
    if !folder.path().join(MANIFEST).is_file() {
        return Err(Error::Usage(format!("{} is no dataset of several recordings", shown.display())));
    }
    let (format, address_type) = head_of(folder.path())?;
    for key in keys {
        if !lake.remove(key).map_err(|failure| failure.at(&shown))? {
            return Err(Error::Usage(format!("{}: there is no recording {key}", shown.display())));
        }
    }
    lake.describe(&Convert { format, address_type, ..Convert::default() })
}

impl StoreLake {
    /// Opens the dataset at an address, which may be nothing yet. Its manifest and its entries are copied into the folder.
    pub(crate) fn open(store: Arc<dyn Store>, address: Address, folder: &Path) -> Result<StoreLake> {
        let lake = StoreLake {
            store,
            address,
            folder: folder.to_owned(),
            seen: Mutex::default(),
            empty: Mutex::default(),
            unconditional: AtomicBool::new(false),
        };
        let entries_folder = folder.join(ENTRIES);
        std::fs::create_dir_all(&entries_folder).map_err(Error::io(&entries_folder))?;
        let shown = lake.address.shown();
        let manifest = read(lake.store.as_ref(), &lake.key(MANIFEST), MOST_BYTES).map_err(|f| f.at(&shown))?;
        let entries = lake.entries().map_err(|failure| failure.at(&shown))?;
        let is_new = manifest.is_none() && entries.is_empty();
        if is_new && lake.has_something_else().map_err(|failure| failure.at(&shown))? {
            let message =
                format!("{} holds something else than a dataset of tracequet, so nothing is added", shown.display());
            return Err(Error::Usage(message));
        }
        if let Some((bytes, _)) = manifest {
            write(&folder.join(MANIFEST), &bytes)?;
        }
        for (key, bytes) in entries {
            write(&folder.join(entry_path(&key)), &bytes)?;
        }
        Ok(lake)
    }

    /// Writes the files of tables without rows that the store does not have. They are made in `lake`, which is the folder; `version`
    /// is that of the tables of the dataset, if it says one.
    pub(crate) fn put_empty(
        &self,
        empty: &Empty<'_>,
        lake: &Lake,
        encoders: &Arc<Encoders>,
        version: Option<u32>,
    ) -> Result<()> {
        let names: Vec<&str> = empty.names().collect();
        let is_lacking = |name: &&str| Ok(!is_of_now(version) || !self.store.is_there(&self.key(&empty.path(name)))?);
        let shown = self.address.shown();
        let lacking = each(&names, is_lacking).map_err(|failure| failure.at(&shown))?;
        let lacking: Vec<&str> = names.iter().zip(lacking).filter(|(_, lacks)| *lacks).map(|(name, _)| *name).collect();
        empty.put_those(lake, encoders, |name| lacking.contains(&name))?;
        let uploaded = each(&lacking, |name| {
            let path = empty.path(name);
            self.store.upload(&self.key(&path), &self.folder.join(&path))
        });
        uploaded.map_err(|failure| failure.at(&shown))?;
        *self.empty.lock().unwrap_or_else(PoisonError::into_inner) = names.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// Writes a recording whose files lie in the folder: its files, then its entry. `replaced` are removed before. A
    /// recording that is there already stays, unless it is replaced. The files in the folder are removed.
    pub(crate) fn put(&self, key: &str, entry: &[u8], replaced: &[String]) -> Result<Put> {
        let files = files_below(&self.folder, |path| path.ends_with(&format!("/trace={key}")))?;
        let result = self.put_files(key, entry, replaced, &files).map_err(|failure| failure.at(self.address.shown()));
        for file in &files {
            // What cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        result
    }

    fn put_files(&self, key: &str, entry: &[u8], replaced: &[String], files: &[String]) -> Stored<Put> {
        for old in replaced {
            self.remove(old)?;
        }
        let entry_key = self.key(&format!("{ENTRIES}/{key}.json"));
        if self.store.is_there(&entry_key)? {
            return Ok(Put::WasThere);
        }
        each(files, |file| self.store.upload(&self.key(file), &self.folder.join(file)))?;
        match self.store.put(&entry_key, entry, When::Absent) {
            Err(failure) if failure.kind == FailureKind::Unsupported => {
                self.unconditional.store(true, Ordering::Release);
                self.store.put(&entry_key, entry, When::Always)?;
            }
            Err(failure) if failure.kind == FailureKind::Changed => {
                // It may be our own, written by a request whose answer was lost.
                let there = read(self.store.as_ref(), &entry_key, MOST_BYTES)?;
                if there.is_none_or(|(bytes, _)| bytes != entry) {
                    return Ok(Put::WasThere);
                }
            }
            result => result?,
        }
        Ok(Put::Done)
    }

    /// Removes a recording: first its entry, since what has none is not in the dataset. Returns whether it was there.
    pub(crate) fn remove(&self, key: &str) -> Stored<bool> {
        let entry_key = self.key(&format!("{ENTRIES}/{key}.json"));
        let Some((entry, _)) = read(self.store.as_ref(), &entry_key, MOST_BYTES)? else { return Ok(false) };
        self.store.delete(&entry_key)?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let entry: serde_json::Value = serde_json::from_slice(&entry).unwrap_or_default();
        let tables = entry.get("tables").and_then(serde_json::Value::as_array).into_iter().flatten();
        let names: Vec<&str> = tables.filter_map(|table| table.get("name")?.as_str()).collect();
        if names.is_empty() {
            // The entry is damaged, and does not say where the files are.
            let objects = self.store.list(self.address.prefix())?;
            let own: Vec<_> = objects.iter().filter(|object| trace_of(&object.key) == Some(key)).collect();
            return each(&own, |object| self.store.delete(&object.key)).map(|_| true);
        }
        each(&names, |table| {
            for object in self.store.list(&self.key(&format!("{table}/trace={key}")))? {
                self.store.delete(&object.key)?;
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Writes the files that sum up all recordings that there are now, whoever wrote them. When somebody else does so at the
    /// same time, one of both makes it anew, so that the last one has all.
    pub(crate) fn describe(&self, request: &Convert) -> Result<()> {
        let shown = self.address.shown();
        for attempt in 0..ATTEMPTS {
            let before = read(self.store.as_ref(), &self.key(MANIFEST), MOST_BYTES).map_err(|f| f.at(&shown))?;
            let entries = self.entries().map_err(|failure| failure.at(&shown))?;
            let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let files = describe::files(request, &entries, &empty)?;
            match self.put_summary(&files, before).map_err(|failure| failure.at(&shown))? {
                Put::Done => return Ok(()),
                Put::WasThere => std::thread::sleep(Duration::from_millis(u64::from(attempt + 1) * 20)),
            }
        }
        let message = "others write the manifest all the time; the recordings are there, and the next run sums them up";
        Err(Failure::other(message).at(shown))
    }

    fn put_summary(&self, files: &[(&'static str, String)], before: Option<(Vec<u8>, Version)>) -> Stored<Put> {
        for (name, text) in files {
            let key = self.key(name);
            if *name != MANIFEST {
                self.store.put(&key, text.as_bytes(), When::Always)?;
                continue;
            }
            let when = match &before {
                Some((bytes, _)) if bytes == text.as_bytes() => continue,
                Some((_, version)) if version.etag.is_some() => When::Unchanged(version),
                Some(_) => When::Always,
                None => When::Absent,
            };
            match self.store.put(&key, text.as_bytes(), when) {
                Err(failure) if failure.kind == FailureKind::Changed => return Ok(Put::WasThere),
                Err(failure) if failure.kind == FailureKind::Unsupported => {
                    self.unconditional.store(true, Ordering::Release);
                    self.store.put(&key, text.as_bytes(), When::Always)?;
                }
                result => result?,
            }
        }
        Ok(Put::Done)
    }

    /// Whether something lies at the address that is no file of a table of several recordings. Such files are what a run that was
    /// killed left, or what one that goes on has put there before its first entry.
    fn has_something_else(&self) -> Stored<bool> {
        let objects = self.store.list(self.address.prefix())?;
        Ok(objects.iter().any(|object| trace_of(&object.key).is_none() || table_of(&object.key).is_none()))
    }

    /// What whoever started the run has to know.
    pub(crate) fn note(&self) -> Option<String> {
        let is_unconditional = self.unconditional.load(Ordering::Acquire);
        is_unconditional.then(|| {
            format!(
                "{}: this store cannot write under a condition, so let one run at a time write to it",
                self.address.shown().display()
            )
        })
    }

    /// The recordings that there are now: key and entry, in the order of keys. Only those that have changed are read.
    fn entries(&self) -> Stored<Vec<(String, Vec<u8>)>> {
        let listed = self.store.list(&self.key(ENTRIES))?;
        let listed: Vec<_> = listed.iter().filter_map(|object| Some((key_of_entry(&object.key)?, object))).collect();
        let read = each(&listed, |(key, object)| {
            let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(*key).cloned();
            if let Some((tag, bytes)) = known
                && tag.is_some()
                && tag == object.etag
            {
                return Ok(Some(((*key).to_owned(), tag, bytes)));
            }
            let found = read(self.store.as_ref(), &object.key, MOST_BYTES)?;
            // Removed meanwhile.
            Ok(found.map(|(bytes, version)| ((*key).to_owned(), version.etag, bytes)))
        })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clear();
        let mut entries = Vec::new();
        for (key, tag, bytes) in read.into_iter().flatten() {
            seen.insert(key.clone(), (tag, bytes.clone()));
            entries.push((key, bytes));
        }
        entries.sort();
        Ok(entries)
    }

    fn key(&self, name: &str) -> String {
        self.address.below(name)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::source::store::memory::Memory;
    use crate::table::schema::SCHEMA_VERSION;

    const TABLES: [&str; 2] = ["gc", "event/P/E"];

    fn entry(key: &str) -> Vec<u8> {
        let tables = TABLES.map(|name| serde_json::json!({ "name": name, "rows": 1, "bytes": 4 }));
        let entry = serde_json::json!({
            "trace_id": key, "path": key, "sha256": key, "status": "ok", "schema_version": SCHEMA_VERSION, "tables": tables,
        });
        entry.to_string().into_bytes()
    }

    fn lake(store: &Arc<Memory>, folder: &Path) -> StoreLake {
        let address = Address::parse(Path::new("s3://bucket/lake")).unwrap().unwrap();
        StoreLake::open(store.clone(), address, folder).unwrap()
    }

    /// Makes the files of a recording in the folder of a lake, and puts it.
    fn put(lake: &StoreLake, key: &str, replaced: &[&str]) -> Result<Put> {
        for table in TABLES {
            let folder = lake.folder.join(table).join(format!("trace={key}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("part-0.parquet"), "rows").unwrap();
        }
        let replaced: Vec<String> = replaced.iter().map(|key| (*key).to_owned()).collect();
        lake.put(key, &entry(key), &replaced)
    }

    /// The recordings that the summary has.
    fn summed(store: &Memory) -> Vec<String> {
        let (bytes, _) = read(store, "lake/manifest.json", u64::MAX).unwrap().unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let inputs = manifest["inputs"].as_array().unwrap().iter();
        inputs.map(|input| input["trace_id"].as_str().unwrap().to_owned()).collect()
    }

    fn on_write(
        store: &Memory,
        at: impl Fn(&Memory, &str) -> std::result::Result<(), Failure> + Send + Sync + 'static,
    ) {
        *store.before.lock().unwrap() = Some(Arc::new(at));
    }

    #[test]
    fn an_entry_comes_when_all_files_are_there() {
        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let lake = lake(&store, folder.path());
        on_write(&store, |store, key| {
            let count = store.keys().len();
            if key == "lake/manifest/a.json" && count != 2 {
                return Err(Failure::other(format!("{count} files are there")));
            }
            Ok(())
        });
        assert_eq!(put(&lake, "a", &[]).unwrap(), Put::Done);
        assert!(!folder.path().join("gc/trace=a/part-0.parquet").exists(), "its files are needed no more");
        on_write(&store, |_, key| match key.contains("event/") {
            true => Err(Failure::other("the network is down")),
            false => Ok(()),
        });
        let failed = put(&lake, "b", &[]).unwrap_err().to_string();
        assert!(failed.contains("s3://bucket/lake: the network is down"), "{failed}");
        assert!(!store.keys().contains(&"lake/manifest/b.json".to_owned()));
    }

    #[test]
    fn files_of_tables_without_rows_are_uploaded_once() {
        use crate::table::select::Selection;

        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let here = folder.path().to_owned();
        let stored = lake(&store, &here);
        let request = Convert { output: here.clone(), append: true, ..Convert::default() };
        let encoders = Encoders::start(1).unwrap();
        let put = |tables: &[&str], version| {
            let tables: Vec<String> = tables.iter().map(|name| (*name).to_owned()).collect();
            let selection = Selection::new(&tables).unwrap();
            let empty = Empty::of(&request, &selection).unwrap();
            stored.put_empty(&empty, &Lake::open(&here, false).unwrap(), &encoders, version).unwrap();
        };
        let gc = "lake/gc/trace=none/part-0.parquet";
        put(&["gc"], None);
        let keys = store.keys();
        assert!(keys.len() == 4 && keys.contains(&gc.to_owned()), "{keys:?}");
        store.set(gc, b"as it is");
        put(&["gc", "gc_pause"], Some(SCHEMA_VERSION));
        let content = |key: &str| read(store.as_ref(), key, u64::MAX).unwrap().unwrap().0;
        assert_eq!((store.keys().len(), content(gc).as_slice()), (5, &b"as it is"[..]));
        // The tables of another version may have had other columns.
        put(&["gc"], Some(SCHEMA_VERSION - 1));
        assert!(content(gc).starts_with(b"PAR1"));
        stored.describe(&request).unwrap();
        let manifest = String::from_utf8(content("lake/manifest.json")).unwrap();
        assert!(manifest.contains("\"gc\""), "{manifest}");
    }

    #[test]
    fn two_who_sum_up_at_once_lose_nothing() {
        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let lake = lake(&store, folder.path());
        put(&lake, "a", &[]).unwrap();
        let others = AtomicU32::new(0);
        on_write(&store, move |store, key| {
            // Another one comes between the reading of the entries and the writing of the summary, three times.
            if key == "lake/manifest.json" && others.load(Ordering::Acquire) < 3 {
                let other = format!("other{}", others.fetch_add(1, Ordering::AcqRel) + 1);
                store.set(&format!("lake/manifest/{other}.json"), &entry(&other));
                store.set("lake/manifest.json", b"{}");
            }
            Ok(())
        });
        lake.describe(&Convert::default()).unwrap();
        assert_eq!(summed(&store), ["a", "other1", "other2", "other3"]);
        assert!(lake.note().is_none());
    }

    #[test]
    fn a_recording_that_somebody_else_wrote_stays() {
        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let lake = lake(&store, folder.path());
        on_write(&store, |store, key| {
            if key == "lake/manifest/a.json" {
                store.set(key, b"{\"trace_id\": \"a\"}");
            }
            Ok(())
        });
        assert_eq!(put(&lake, "a", &[]).unwrap(), Put::WasThere);
        assert_eq!(put(&lake, "a", &[]).unwrap(), Put::WasThere, "without an upload");
        // The answer to our own request was lost, and it was sent again.
        on_write(&store, |store, key| {
            if key == "lake/manifest/b.json" {
                store.set(key, &entry("b"));
            }
            Ok(())
        });
        assert_eq!(put(&lake, "b", &[]).unwrap(), Put::Done);
    }

    #[test]
    fn what_is_replaced_goes_first() {
        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let lake = lake(&store, folder.path());
        put(&lake, "old", &[]).unwrap();
        assert_eq!(put(&lake, "new", &["old", "never"]).unwrap(), Put::Done);
        let keys = store.keys();
        assert!(keys.iter().all(|key| !key.contains("old")) && keys.len() == 3, "{keys:?}");
        lake.describe(&Convert::default()).unwrap();
        assert!(lake.remove("new").unwrap() && !lake.remove("new").unwrap());
        // An entry that does not say what there is.
        put(&lake, "torn", &[]).unwrap();
        store.set("lake/manifest/torn.json", b"{");
        assert!(lake.remove("torn").unwrap());
        lake.describe(&Convert::default()).unwrap();
        assert_eq!((summed(&store).len(), store.keys().len()), (0, 2));
    }

    #[test]
    fn a_store_without_conditions_is_told() {
        let store = Arc::new(Memory { unconditional: true, ..Memory::default() });
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(&store, folder.path());
        put(&lake, "a", &[]).unwrap();
        lake.describe(&Convert::default()).unwrap();
        assert_eq!(summed(&store), ["a"]);
        assert!(lake.note().unwrap().contains("one run at a time"));
    }

    #[test]
    fn something_else_is_not_added_to() {
        let (store, folder) = (Arc::new(Memory::default()), tempfile::tempdir().unwrap());
        let open = || {
            let address = Address::parse(Path::new("s3://bucket/lake")).unwrap().unwrap();
            StoreLake::open(store.clone(), address, folder.path()).map(drop)
        };
        // Another run has begun, and has no entry yet.
        store.set("lake/gc/trace=none/part-0.parquet", b"no rows");
        store.set("lake/event/P/E/trace=a-00000000/part-0.parquet", b"rows");
        open().unwrap();
        store.set("lake/cat.jpg", b"cat");
        assert!(open().unwrap_err().to_string().contains("something else"));
    }
}
