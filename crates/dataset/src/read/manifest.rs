//! What a dataset holds, by its `manifest.json` and the entries of its recordings.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracequet_trace::error::{Error, Result};

use super::described::{Described, described};
use super::packed_rows::PackedRows;
use crate::format::{
    DamagedEntry, Format, Head, Labels, Layout, Lists, MOST_MANIFEST_BYTES, Recorded, Status, TableInfo, paths,
};
use crate::table::schema::SCHEMA_VERSION;

/// A recording, as the dataset has it.
#[derive(Clone, Debug)]
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
    pub start: String,
    /// `ok`, or `losses` when something of it was lost, damaged or not decoded. `unfinished` while it is being written
    /// (`collect --follow`), and when its recorder was killed.
    pub status: String,
    /// What it was labelled with.
    pub labels: Labels,
}

/// A recording of several that could not be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedRecording {
    /// Its key.
    pub trace_id: String,
    /// The file.
    pub path: PathBuf,
    /// What was wrong, where, and what was expected.
    pub error: String,
    /// What it was labelled with.
    pub labels: Labels,
}

/// What [`Recorded`] says of a recording that was read, and of one that was not.
enum Outcome {
    Converted(RecordingInfo),
    Failed(FailedRecording),
}

impl From<Recorded> for Outcome {
    fn from(recorded: Recorded) -> Outcome {
        let Recorded { trace_id, sha256, path, size_bytes, labels, .. } = recorded;
        let path = PathBuf::from(path);
        if recorded.status == Status::Failed {
            return Outcome::Failed(FailedRecording {
                trace_id,
                path,
                error: recorded.error.unwrap_or_default(),
                labels,
            });
        }
        Outcome::Converted(RecordingInfo {
            trace_id,
            path,
            size_bytes,
            sha256,
            events: recorded.events.unwrap_or_default(),
            dropped_events: recorded.dropped_events.unwrap_or_default(),
            complete: recorded.complete.unwrap_or_default(),
            start: recorded.start.unwrap_or_default(),
            status: recorded.status.name().to_owned(),
            labels,
        })
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
    /// The packs, and of each recording in one, which it is and its place there.
    packs: Arc<Vec<PackedRows>>,
    packed: HashMap<String, (usize, u32)>,
}

impl Manifest {
    /// Reads the manifest of the dataset in a directory.
    pub fn read(root: &Path) -> Result<Manifest> {
        let path = root.join(paths::MANIFEST);
        let wrong =
            |what: String, expected: &str| Error::Dataset { path: path.clone(), what, expected: expected.into() };
        let a_dataset = "the directory of a dataset, as tracequet convert makes it";
        let size = match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(wrong("is no file".into(), a_dataset)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let is_half = root.join(paths::ENTRIES).is_dir();
                let mend = "the summary of a dataset: dataset repair makes it of the entries";
                return Err(wrong("is not there".into(), if is_half { mend } else { a_dataset }));
            }
            Err(e) => return Err(Error::io(&path)(e)),
        };
        if size > MOST_MANIFEST_BYTES {
            let expected = format!("a manifest of at most {} MB", MOST_MANIFEST_BYTES >> 20);
            return Err(wrong(format!("has {size} bytes"), &expected));
        }
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let Head { layout, format, .. } = Head::parse(&path, &bytes, Some(SCHEMA_VERSION))?;
        let lists = Lists::parse(&path, &bytes)?;
        if layout == Layout::Flat && lists.inputs.len() != 1 {
            return Err(wrong(format!("a flat layout with {} recordings", lists.inputs.len()), "one recording"));
        }
        let (recordings, failed) = outcomes(lists.inputs.into_iter().chain(lists.failed));
        let tables = lists.tables;
        let mut manifest = Manifest {
            format,
            layout,
            recordings,
            failed,
            tables,
            damaged: Vec::new(),
            own: HashMap::new(),
            packs: Arc::default(),
            packed: HashMap::new(),
        };
        if layout == Layout::Hive {
            manifest.take_entries(root)?;
        }
        let keys = manifest.recordings.iter().map(|recording| &recording.trace_id);
        let keys = keys.filter(|key| !paths::is_key(key));
        let tables = manifest.tables.iter().map(|table| &table.name).filter(|name| !paths::is_table(name));
        if let Some(name) = keys.chain(tables).next() {
            return Err(wrong(format!("the name {name:?}"), "names that stay inside the dataset"));
        }
        Ok(manifest)
    }

    /// The entries of the recordings are what counts: the summary is written at the end of a run, and others may add.
    fn take_entries(&mut self, root: &Path) -> Result<()> {
        let Described { packs, entries, mut damaged } = described(root)?;
        if entries.is_empty() && packs.is_empty() && damaged.is_empty() {
            return Ok(());
        }
        let mut recorded = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut tables: Vec<TableInfo> = Vec::new();
        let mut add = |table: TableInfo| -> usize {
            let place = places.get(&table.name).copied().unwrap_or(tables.len());
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
            place
        };
        let mut found = Vec::with_capacity(packs.len());
        for pack in packs {
            check_version(root, &pack.name, pack.schema_version)?;
            for table in &pack.tables {
                add(TableInfo::new(table.name.clone(), table.rows(), table.bytes()));
            }
            let rows = PackedRows::of(&pack);
            for (number, member) in (0u32..).zip(pack.members) {
                self.packed.insert(member.recorded.trace_id.clone(), (found.len(), number));
                recorded.push(member.recorded);
            }
            found.push(rows);
        }
        self.packs = Arc::new(found);
        for entry in entries {
            check_version(root, &entry.recorded.trace_id, entry.recorded.schema_version.unwrap_or_default())?;
            let own = entry.tables.into_iter().map(|table| {
                let has_rows = table.rows > 0;
                (add(table), has_rows)
            });
            self.own.insert(entry.recorded.trace_id.clone(), own.collect());
            recorded.push(entry.recorded);
        }
        if !self.packs.is_empty() {
            recorded.sort_by(|a, b| a.trace_id.cmp(&b.trace_id));
        }
        (self.recordings, self.failed) = outcomes(recorded.into_iter());
        self.tables = tables;
        self.damaged.append(&mut damaged);
        Ok(())
    }

    /// The pack that a recording is in.
    pub fn pack_of(&self, trace_id: &str) -> Option<&PackedRows> {
        self.packs.get(self.packed.get(trace_id)?.0)
    }

    /// The rows of a recording in a table of the pack that it is in, if it has some.
    pub fn rows_in_pack(&self, trace_id: &str, table: &str) -> Option<(&PackedRows, Range<u64>)> {
        let (pack, member) = self.packed.get(trace_id)?;
        let pack = self.packs.get(*pack)?;
        Some((pack, pack.rows(*member, table).filter(|rows| !rows.is_empty())?))
    }

    /// Whether a recording has rows of a table, by its entry. `None` if it has no entry, or if that does not name the table.
    pub fn has_rows(&self, trace_id: &str, table: &str) -> Option<bool> {
        if let Some((pack, member)) = self.packed.get(trace_id) {
            return self.packs.get(*pack)?.rows(*member, table).map(|rows| !rows.is_empty());
        }
        let own = self.own.get(trace_id)?;
        let place = self.tables.iter().position(|known| known.name == table)?;
        own.iter().find(|(own, _)| *own == place).map(|(_, has_rows)| *has_rows)
    }
}

fn check_version(root: &Path, key: &str, schema_version: u32) -> Result<()> {
    if schema_version == SCHEMA_VERSION {
        return Ok(());
    }
    Err(Error::OtherVersion {
        path: root.join(paths::entry(key)),
        what: format!("its tables are of version {schema_version}"),
        expected: format!("version {SCHEMA_VERSION}"),
    })
}

/// The recordings that were read, and those that were not.
fn outcomes(recorded: impl Iterator<Item = Recorded>) -> (Vec<RecordingInfo>, Vec<FailedRecording>) {
    let (mut recordings, mut failed) = (Vec::new(), Vec::new());
    for recorded in recorded {
        match recorded.into() {
            Outcome::Converted(recording) => recordings.push(recording),
            Outcome::Failed(recording) => failed.push(recording),
        }
    }
    (recordings, failed)
}
