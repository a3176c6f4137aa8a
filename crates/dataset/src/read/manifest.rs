//! `manifest.json`: what a dataset holds, as a conversion wrote it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use tracequet_trace::error::{Error, Result};

use crate::table::schema::SCHEMA_VERSION;
use crate::write::{DamagedEntry, Format, MANIFEST_BYTES};

pub(super) const NAME: &str = "manifest.json";

/// How the files of a dataset lie in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// `<table>.parquet`: the dataset has one recording.
    Flat,
    /// `<table>/trace=<key>/part-0.parquet`, with the key also in the column `trace_id`.
    Hive,
}

/// A recording, as the manifest has it.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct RecordingInfo {
    /// Its key: the column `trace_id` of a dataset of several.
    pub trace_id: String,
    /// The file that was converted; `-` was standard input.
    pub path: PathBuf,
    /// Size of that file in bytes.
    pub size_bytes: u64,
    /// SHA-256 of that file in hexadecimal; empty when it was no regular file.
    pub sha256: String,
    /// Events that were read.
    pub events: u64,
    /// Events that are known to be lost, a lower bound.
    pub dropped_events: u64,
    /// Whether the recording reached its end mark.
    pub complete: bool,
    /// When it began, as `2026-11-22T05:19:21.000Z`.
    #[serde(default)]
    pub start: String,
    /// `ok`, or `losses` when something of it was lost, damaged or not decoded. `unfinished` while it is being written
    /// (`collect --follow`), and when its recorder was killed.
    #[serde(default)]
    pub status: String,
    /// What it was labelled with.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A recording of several that could not be read.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct FailedRecording {
    /// Its key.
    pub trace_id: String,
    /// The file.
    pub path: PathBuf,
    /// What was wrong, where, and what was expected.
    pub error: String,
    /// What it was labelled with.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A table, as the manifest has it.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct TableInfo {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub name: String,
    /// Rows, of all recordings together.
    pub rows: u64,
    /// Bytes of its files together.
    pub bytes: u64,
}

impl TableInfo {
    /// Whether it has the payloads of one kind of event, and not columns that `tracequet schema` lists.
    pub fn is_payload(&self) -> bool {
        self.name.starts_with("event/")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub format: Format,
    pub layout: Layout,
    pub recordings: Vec<RecordingInfo>,
    pub failed: Vec<FailedRecording>,
    pub tables: Vec<TableInfo>,
    /// Entries that cannot be read. Nothing else is known of their recordings.
    pub damaged: Vec<DamagedEntry>,
    /// Of each recording that has an entry: places of its tables among all, and whether it has rows of them.
    own: HashMap<String, Vec<(usize, bool)>>,
}

/// `manifest/<key>.json`, of which there is one for each of several recordings.
#[derive(Deserialize)]
pub(super) struct Entry {
    schema_version: u32,
    pub tables: Vec<TableInfo>,
    #[serde(flatten)]
    pub of: Outcome,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Outcome {
    Converted(RecordingInfo),
    Failed(FailedRecording),
}

impl Entry {
    /// Reads the entry of the recording `key`.
    pub fn parse(key: &str, bytes: &[u8]) -> std::result::Result<Entry, DamagedEntry> {
        let wrong = |what: String| DamagedEntry::new(key, what);
        let entry: Entry = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        let (Outcome::Converted(RecordingInfo { trace_id, .. }) | Outcome::Failed(FailedRecording { trace_id, .. })) =
            &entry.of;
        if trace_id != key {
            return Err(wrong(format!("it says that it is of {trace_id:?}")));
        }
        match entry.tables.iter().find(|table| !stays_inside(&table.name)) {
            Some(table) => Err(wrong(format!("the name {:?} leads out of the dataset", table.name))),
            None => Ok(entry),
        }
    }
}

#[derive(Deserialize)]
struct Head {
    tool: String,
    #[serde(default)]
    version: String,
    schema_version: u32,
}

#[derive(Deserialize)]
struct Body {
    format: String,
    layout: String,
    inputs: Vec<RecordingInfo>,
    #[serde(default)]
    failed: Vec<FailedRecording>,
    tables: Vec<TableInfo>,
}

impl Manifest {
    /// Reads the manifest of the dataset in a directory.
    pub fn read(root: &Path) -> Result<Manifest> {
        let path = root.join(NAME);
        let wrong =
            |what: String, expected: &str| Error::Dataset { path: path.clone(), what, expected: expected.into() };
        let a_dataset = "the directory of a dataset, as tracequet convert makes it";
        let size = match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(wrong("is no file".into(), a_dataset)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(wrong("is not there".into(), a_dataset)),
            Err(e) => return Err(Error::io(&path)(e)),
        };
        if size > MANIFEST_BYTES {
            let expected = format!("a manifest of at most {} MB", MANIFEST_BYTES >> 20);
            return Err(wrong(format!("has {size} bytes"), &expected));
        }
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let head: Head = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string(), "a manifest of tracequet"))?;
        if head.tool != "tracequet" {
            return Err(wrong(format!("is of {:?}", head.tool), "a manifest of tracequet"));
        }
        if head.schema_version != SCHEMA_VERSION {
            let what = format!("the tables are of version {} (tracequet {})", head.schema_version, head.version);
            let expected = format!("version {SCHEMA_VERSION}: convert the recording again");
            return Err(wrong(what, &expected));
        }
        let body: Body = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string(), "a manifest of tracequet"))?;
        let format = match body.format.as_str() {
            "parquet" => Format::Parquet,
            "arrow" => Format::Arrow,
            other => return Err(wrong(format!("format {other:?}"), "parquet or arrow")),
        };
        let layout = match body.layout.as_str() {
            "flat" => Layout::Flat,
            "hive" => Layout::Hive,
            other => return Err(wrong(format!("layout {other:?}"), "flat or hive")),
        };
        if layout == Layout::Flat && body.inputs.len() != 1 {
            return Err(wrong(format!("a flat layout with {} recordings", body.inputs.len()), "one recording"));
        }
        let mut manifest = Manifest {
            format,
            layout,
            recordings: body.inputs,
            failed: body.failed,
            tables: body.tables,
            damaged: Vec::new(),
            own: HashMap::new(),
        };
        if layout == Layout::Hive {
            manifest.take_entries(root)?;
        }
        let keys = manifest.recordings.iter().map(|recording| recording.trace_id.as_str());
        let names = manifest.tables.iter().map(|table| table.name.as_str());
        if let Some(name) = keys.chain(names).find(|name| !stays_inside(name)) {
            return Err(wrong(format!("the name {name:?}"), "names that stay inside the dataset"));
        }
        Ok(manifest)
    }

    /// The entries of the recordings are what counts: the summary is written at the end of a run, and others may add.
    fn take_entries(&mut self, root: &Path) -> Result<()> {
        let entries = crate::write::entries(root)?;
        if entries.is_empty() {
            return Ok(());
        }
        self.recordings.clear();
        self.failed.clear();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut tables: Vec<TableInfo> = Vec::new();
        for (key, bytes) in entries {
            let entry = match bytes.and_then(|bytes| Entry::parse(&key, &bytes)) {
                Ok(entry) => entry,
                Err(damaged) => {
                    self.damaged.push(damaged);
                    continue;
                }
            };
            if entry.schema_version != SCHEMA_VERSION {
                return Err(Error::Dataset {
                    path: root.join(crate::write::entry_path(&key)),
                    what: format!("its tables are of version {}", entry.schema_version),
                    expected: format!("version {SCHEMA_VERSION}: convert it again with --append --refresh"),
                });
            }
            let mut own = Vec::with_capacity(entry.tables.len());
            for table in entry.tables {
                let place = places.get(&table.name).copied().unwrap_or(tables.len());
                own.push((place, table.rows > 0));
                match tables.get_mut(place) {
                    Some(known) => {
                        known.rows = known.rows.saturating_add(table.rows);
                        known.bytes = known.bytes.saturating_add(table.bytes);
                    }
                    None => {
                        places.insert(table.name.clone(), place);
                        tables.push(table);
                    }
                }
            }
            self.own.insert(key.clone(), own);
            match entry.of {
                Outcome::Converted(recording) => self.recordings.push(recording),
                Outcome::Failed(recording) => self.failed.push(recording),
            }
        }
        self.tables = tables;
        Ok(())
    }

    /// Whether a recording has rows of a table, by its entry. `None` if it has no entry, or if that does not name the table.
    pub fn has_rows(&self, trace_id: &str, table: &str) -> Option<bool> {
        let own = self.own.get(trace_id)?;
        let place = self.tables.iter().position(|known| known.name == table)?;
        own.iter().find(|(own, _)| *own == place).map(|(_, has_rows)| *has_rows)
    }
}

/// Whether a name of the manifest leads to a place below the dataset.
pub(super) fn stays_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}
