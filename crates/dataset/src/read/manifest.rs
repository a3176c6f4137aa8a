//! The content of a dataset, by its `manifest.json` and the entries of its recordings.

use std::collections::HashMap;
use std::ops::Range;

use super::brief::{Brief, FailedRecording, RecordingInfo, SharedLabels};
use super::described::{Described, described};
use super::packed_rows::PackedRows;
use crate::format::{DamagedEntry, Format, Head, Layout, Lists, MOST_MANIFEST_BYTES, Pack, Status, TableInfo, paths};
use crate::prelude::*;
use crate::table::schema::SCHEMA_VERSION;

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
    /// The packs, and of each of the `recordings` the pack that it is in and its place there, if it is in one.
    packs: Arc<Vec<PackedRows>>,
    packed: Arc<Vec<Option<(u32, u32)>>>,
}

/// A pack as the reader takes it: its recordings, and where their rows lie.
struct TakenPack {
    name: String,
    schema_version: u32,
    tables: Vec<TableInfo>,
    rows: PackedRows,
    recordings: Vec<RecordingInfo>,
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
        let mut labels = SharedLabels::default();
        let (recordings, failed) = outcomes(lists.inputs.into_iter().chain(lists.failed).map(Brief::from), &mut labels);
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
            packed: Arc::default(),
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
        let mut labels = SharedLabels::default();
        let take = |pack: Pack<Brief>| TakenPack {
            rows: PackedRows::of(&pack),
            tables: pack.tables.iter().map(|t| TableInfo::new(t.name.clone(), t.rows(), t.bytes())).collect(),
            name: pack.name,
            schema_version: pack.schema_version,
            recordings: pack.members.into_iter().map(|member| member.recorded.converted(&mut labels)).collect(),
        };
        let Described { packs, entries, mut damaged } = described(root, take)?;
        if entries.is_empty() && packs.is_empty() && damaged.is_empty() {
            return Ok(());
        }
        let mut briefs = Vec::new();
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
        let mut all = Vec::new();
        for (number, pack) in (0u32..).zip(packs) {
            check_version(root, &pack.name, pack.schema_version)?;
            for table in pack.tables {
                add(table);
            }
            all.extend((0u32..).zip(pack.recordings).map(|(place, info)| (info, Some((number, place)))));
            found.push(pack.rows);
        }
        self.packs = Arc::new(found);
        for entry in entries {
            check_version(root, &entry.recorded.trace_id, entry.recorded.schema_version.unwrap_or_default())?;
            let own = entry.tables.into_iter().map(|table| {
                let has_rows = table.rows > 0;
                (add(table), has_rows)
            });
            self.own.insert(entry.recorded.trace_id.clone(), own.collect());
            briefs.push(Brief::from(entry.recorded));
        }
        let (own, failed) = outcomes(briefs.into_iter(), &mut labels);
        self.failed = failed;
        all.extend(own.into_iter().map(|info| (info, None)));
        if !self.packs.is_empty() {
            all.sort_by(|(a, _), (b, _)| a.trace_id.cmp(&b.trace_id));
        }
        let packed: Vec<Option<(u32, u32)>> = all.iter().map(|(_, place)| *place).collect();
        self.packed = Arc::new(packed);
        self.recordings = all.into_iter().map(|(info, _)| info).collect();
        self.tables = tables;
        self.damaged.append(&mut damaged);
        Ok(())
    }

    /// The pack that a recording is in, and its place there.
    fn packed(&self, trace_id: &str) -> Option<(&PackedRows, u32)> {
        if self.packs.is_empty() {
            return None;
        }
        let place = self.recordings.binary_search_by(|info| info.trace_id.as_str().cmp(trace_id)).ok()?;
        let (pack, member) = self.packed.get(place).copied().flatten()?;
        Some((self.packs.get(usize::try_from(pack).ok()?)?, member))
    }

    /// The pack that a recording is in.
    pub fn pack_of(&self, trace_id: &str) -> Option<&PackedRows> {
        Some(self.packed(trace_id)?.0)
    }

    /// The rows of a recording in a table of the pack that it is in, if it has some.
    pub fn rows_in_pack(&self, trace_id: &str, table: &str) -> Option<(&PackedRows, Range<u64>)> {
        let (pack, member) = self.packed(trace_id)?;
        Some((pack, pack.rows(member, table).filter(|rows| !rows.is_empty())?))
    }

    /// Whether a recording has rows of a table, by its entry. `None` if it has no entry, or if that does not name the
    /// table.
    pub fn has_rows(&self, trace_id: &str, table: &str) -> Option<bool> {
        if let Some((pack, member)) = self.packed(trace_id) {
            return pack.rows(member, table).map(|rows| !rows.is_empty());
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
fn outcomes(all: impl Iterator<Item = Brief>, labels: &mut SharedLabels) -> (Vec<RecordingInfo>, Vec<FailedRecording>) {
    let (mut recordings, mut failed) = (Vec::new(), Vec::new());
    for brief in all {
        match brief.status {
            Status::Failed => failed.push(brief.failed(labels)),
            _ => recordings.push(brief.converted(labels)),
        }
    }
    (recordings, failed)
}
