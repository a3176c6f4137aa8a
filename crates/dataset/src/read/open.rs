//! A dataset and its recordings: which tables there are, and where their files lie.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, Named, Result};

use super::brief::{FailedRecording, RecordingInfo};
use super::footers::Footers;
use super::manifest::Manifest;
use super::packed_rows::PackedRows;
use super::table::{Piece, Table};
use crate::format::paths::{self, NO_RECORDING};
use crate::format::{DamagedEntry, Format, Layout, Status, TableInfo};
use crate::write::place_of;

/// Keys of recordings that an error lists.
const MAX_LISTED: usize = 20;

/// The memory for rows that an answer needs at a time, in bytes. A file of some kilobytes can say that it has as many
/// rows as it likes.
const MAX_HELD: u64 = 2 << 30;

/// A dataset that was opened.
#[derive(Clone, Debug)]
pub struct Dataset {
    root: PathBuf,
    manifest: Manifest,
    max_held: u64,
    footers: Footers,
}

impl Dataset {
    /// Opens the dataset in a directory by its `manifest.json`. No table is opened yet.
    ///
    /// Fails when the directory has no manifest of tracequet, or one of another version of the tables: their columns
    /// may have other names or meanings. Converting the recording again makes a dataset of this version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Dataset> {
        let root = path.into();
        let manifest = Manifest::read(&root)?;
        Ok(Dataset { root, manifest, max_held: MAX_HELD, footers: Footers::default() })
    }

    /// With another bound of what rows that an answer needs at a time may take in memory, in bytes: without this 2 GiB.
    pub fn holding(self, max_held: u64) -> Dataset {
        Dataset { max_held, ..self }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// File format of the tables.
    pub fn format(&self) -> Format {
        self.manifest.format
    }

    /// Layout of the files in the directory.
    pub fn layout(&self) -> Layout {
        self.manifest.layout
    }

    /// The recordings that could not be read. Each has a row in `trace`, and no other rows.
    pub fn failed(&self) -> &[FailedRecording] {
        &self.manifest.failed
    }

    /// The entries that cannot be read. Nothing is known of their recordings, so that an answer may lack them.
    pub fn damaged(&self) -> &[DamagedEntry] {
        &self.manifest.damaged
    }

    /// The recordings, in the order of their keys.
    pub fn recordings(&self) -> &[RecordingInfo] {
        &self.manifest.recordings
    }

    /// The tables, with the rows and bytes that they have over all recordings. Payload tables are named
    /// `event/<provider>/<event>`; a recording without such an event has no such table.
    pub fn tables(&self) -> &[TableInfo] {
        &self.manifest.tables
    }

    /// Each recording, in the order of their keys.
    pub fn each_recording(&self) -> impl Iterator<Item = Recording<'_>> {
        self.recordings().iter().map(|info| Recording { dataset: self, info })
    }

    /// One recording by its `trace_id`, which may be left out when there is only one. The name in front of the hash
    /// (`app` of `app-47551c824a692fa9`) is enough where only one has it.
    pub fn recording(&self, trace_id: Option<&str>) -> Result<Recording<'_>> {
        let all = self.recordings();
        let is_named = |key: &str, wanted: &str| key.rsplit_once('-').is_some_and(|(name, _)| name == wanted);
        // A damaged entry may be the one that is meant.
        let mut damaged = self.damaged().iter();
        let damaged = damaged.find(|d| trace_id.is_none_or(|wanted| d.key == wanted || is_named(&d.key, wanted)));
        let found = match trace_id {
            Some(wanted) => {
                in_order(all, wanted).or_else(|| all.iter().find(|one| one.trace_id == wanted)).or_else(|| {
                    let mut named = all.iter().filter(|recording| is_named(&recording.trace_id, wanted));
                    named.next().filter(|_| named.next().is_none() && damaged.is_none())
                })
            }
            None => all.first().filter(|_| all.len() == 1 && damaged.is_none()),
        };
        if let Some(info) = found {
            return Ok(Recording { dataset: self, info });
        }
        if let Some(damaged) = damaged {
            return Err(damaged.at(&self.root));
        }
        let mut listed: Vec<_> = all.iter().map(|recording| recording.trace_id.as_str()).collect();
        listed.sort_unstable();
        listed.truncate(MAX_LISTED);
        let more = if all.len() > listed.len() { ", ..." } else { "" };
        let what = trace_id.map_or("it has several recordings".into(), |key| format!("it has no recording {key}"));
        let message = format!("{}: {what}, expected one of {}{more}", self.root.display(), listed.join(", "));
        Err(Error::NotFound { what: Named::Recording, message })
    }
}

/// The recording with a key, among those that are in the order of their keys.
fn in_order<'d>(all: &'d [RecordingInfo], key: &str) -> Option<&'d RecordingInfo> {
    let found = all.binary_search_by(|recording| recording.trace_id.as_str().cmp(key)).ok()?;
    all.get(found)
}

/// One recording of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'d> {
    dataset: &'d Dataset,
    info: &'d RecordingInfo,
}

impl<'d> Recording<'d> {
    /// The manifest's part about the recording.
    pub fn info(&self) -> &'d RecordingInfo {
        self.info
    }

    /// The memory for its rows that an answer needs at a time, in bytes.
    pub fn max_held(&self) -> u64 {
        self.dataset.max_held
    }

    /// The tables that it has, with rows or without: those of every recording, then those of its events. They are those
    /// that its entry names, and in a dataset of one recording those of which there is a file.
    pub fn tables(&self) -> impl Iterator<Item = &'d TableInfo> {
        let Recording { dataset, info } = *self;
        dataset.tables().iter().filter(move |table| {
            let named = dataset.manifest.has_rows(&info.trace_id, &table.name);
            named.is_some() || dataset.file(&info.trace_id, &table.name).is_file()
        })
    }

    /// Whether it has the table, and no rows in it, by its entry.
    pub(super) fn has_no_rows(&self, table: &str) -> bool {
        let is_finished = self.info.status != Status::Unfinished.name();
        is_finished && self.dataset.manifest.has_rows(&self.info.trace_id, table) == Some(false)
    }

    /// Finds the file of a table; it is opened by [`super::Scan::batches`]. If the recording is one of several and has
    /// no rows of the table, that is the file without rows which the dataset has for all recordings.
    pub fn table(&self, name: &str) -> Result<Table> {
        let dataset = self.dataset;
        if self.info.status == Status::Unfinished.name() {
            return Err(Error::Dataset {
                path: dataset.path().to_owned(),
                what: format!("the recording {} is still written, or its recorder was killed", self.info.trace_id),
                expected: format!("a finished one; DuckDB reads its parts: FROM '{name}/*/*.parquet'"),
            });
        }
        let is_safe = paths::is_table(name);
        if is_safe && let Some(pieces) = dataset.pieces_in_pack(&self.info.trace_id, name) {
            return Ok(dataset.table_of(name, pieces));
        }
        let path = dataset.file(&self.info.trace_id, name);
        if is_safe && dataset.is_there(&self.info.trace_id, name) {
            return Ok(dataset.table_of(name, vec![dataset.piece(&self.info.trace_id, name)]));
        }
        if is_safe && dataset.manifest.has_rows(&self.info.trace_id, name) == Some(false) {
            let empty = dataset.file(NO_RECORDING, name);
            if empty.is_file() {
                return Ok(dataset.table_of(name, vec![dataset.piece(NO_RECORDING, name)]));
            }
            // A payload table has no file without rows: any file has its columns.
            if let Some(pieces) = dataset.no_rows_of_pack(&self.info.trace_id, name) {
                return Ok(dataset.table_of(name, pieces));
            }
        }
        let what = if dataset.tables().iter().any(|table| table.name == name) {
            "the file is missing".to_owned()
        } else {
            format!("the dataset has no table {name}; it may have been left out when the dataset was made")
        };
        Err(Error::Dataset { path, what, expected: format!("the table {name}") })
    }
}

impl Dataset {
    fn name(&self, trace_id: &str, table: &str) -> String {
        match self.layout() {
            Layout::Flat => paths::flat(table, self.format()),
            Layout::Hive => paths::file(table, trace_id, self.format()),
        }
    }

    fn file(&self, trace_id: &str, table: &str) -> PathBuf {
        self.root.join(self.name(trace_id, table))
    }

    /// Whether the file is in its place, or where a pack that has taken its place has moved it.
    fn is_there(&self, trace_id: &str, table: &str) -> bool {
        let is_hive = self.layout() == Layout::Hive;
        self.file(trace_id, table).is_file() || is_hive && place_of(&self.root, &self.name(trace_id, table)).is_some()
    }

    fn piece(&self, trace_id: &str, table: &str) -> Piece {
        Piece::of_dataset(&self.root, self.name(trace_id, table))
    }

    pub(super) fn table_of(&self, name: &str, pieces: Vec<Piece>) -> Table {
        Table::new(name, pieces, self.format(), self.footers.clone())
    }

    /// Where the rows of a recording lie that is in a pack. Nothing if it is in none, or has no rows.
    fn pieces_in_pack(&self, trace_id: &str, table: &str) -> Option<Vec<Piece>> {
        let (pack, rows) = self.rows_in_pack(trace_id, table)?;
        let pieces = self.pieces_of_rows(pack, table, &rows);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// The pack that a recording is in, and its rows in a table there.
    pub(super) fn rows_in_pack(&self, trace_id: &str, table: &str) -> Option<(&PackedRows, Range<u64>)> {
        self.manifest.rows_in_pack(trace_id, table)
    }

    /// Where these rows of a table of a pack lie.
    pub(super) fn pieces_of_rows(&self, pack: &PackedRows, table: &str, rows: &Range<u64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut begin = 0u64;
        for (number, file) in (0u32..).zip(pack.files(table)) {
            let end = begin.saturating_add(file.rows);
            let (first, last) = (rows.start.clamp(begin, end), rows.end.clamp(begin, end));
            if first < last {
                pieces.push(self.packed_piece(pack, table, number).with_rows(first - begin..last - begin, file.rows));
            }
            begin = end;
        }
        pieces
    }

    fn no_rows_of_pack(&self, trace_id: &str, table: &str) -> Option<Vec<Piece>> {
        let pack = self.manifest.pack_of(trace_id)?;
        let first = pack.files(table).first()?;
        Some(vec![self.packed_piece(pack, table, 0).with_rows(0..0, first.rows)])
    }

    fn packed_piece(&self, pack: &PackedRows, table: &str, number: u32) -> Piece {
        Piece::of_dataset(&self.root, paths::packed(table, pack.name(), number))
    }
}
