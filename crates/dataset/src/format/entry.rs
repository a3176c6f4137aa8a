//! The entry of a recording in a dataset of several, `manifest/<key>.json`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;
use serde::{Deserialize, Serialize};
use tracequet_trace::source::identifying;

use super::options::{self, Options};
use super::paths;

/// Larger entries are not read: 64 bytes for each of a million tables.
pub const MOST_ENTRY_BYTES: u64 = 64 << 20;

/// Labels of a recording: names and values.
pub type Labels = BTreeMap<String, String>;

tracequet_trace::worded! {
    /// The outcome of a recording.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum Status {
        /// The recording was read as a whole.
        #[default]
        Ok = "ok",
        /// Something of it was lost, damaged or not decoded.
        Losses = "losses",
        /// The recording is still written, or its recorder was killed: it has parts, and no end.
        Unfinished = "unfinished",
        /// The recording could not be read. It has its row in `trace`, and nothing else.
        Failed = "failed",
    }
    /// The word in `manifest.json`.
    pub fn name;
}

/// The rows of `diagnostic` of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemCount {
    /// The kind.
    pub code: String,
    /// `info`, `loss` and so on.
    pub severity: String,
    /// Rows.
    pub rows: u64,
    /// Sum of their counts.
    pub count: u64,
}

/// A table: of a recording, or of all recordings of a dataset together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableInfo {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of its files together.
    pub bytes: u64,
}

impl TableInfo {
    /// A table of this name.
    pub fn new(name: impl Into<String>, rows: u64, bytes: u64) -> TableInfo {
        TableInfo { name: name.into(), rows, bytes }
    }

    /// Whether it has the payloads of one kind of event, and not columns that `tracequet schema` lists.
    pub fn is_payload(&self) -> bool {
        self.name.split_once('/').is_some_and(|(folder, _)| folder == paths::EVENTS)
    }
}

/// The entry of a recording in a dataset, but for its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The key.
    pub trace_id: String,
    /// BLAKE3 of the file in hexadecimal; empty when it was no regular file, or could not be read, and in a dataset
    /// whose recordings are known by their SHA-256.
    #[serde(default)]
    pub blake3: String,
    /// SHA-256 of the file in hexadecimal; empty where it was not asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The file that was converted; `-` was standard input.
    #[serde(default)]
    pub path: String,
    /// Size of that file in bytes.
    #[serde(default)]
    pub size_bytes: u64,
    /// When it began, as `2026-11-22T05:19:21.000Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The outcome.
    #[serde(default)]
    pub status: Status,
    /// Events that were read. Of one that could not be read there is no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Events that are known to be lost, a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_events: Option<u64>,
    /// Whether the recording reached its end mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Byte offset in the (unpacked) recording of what could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Losses, damage, and what was not understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ProblemCount>,
    /// The labels.
    #[serde(default)]
    pub labels: Labels,
    /// The options of its conversion, if they are known to this version.
    #[serde(default, deserialize_with = "options::known", skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
    /// The entity tag of the object that it was read from, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The version of tracequet that wrote its tables. Not where the manifest says it of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The version of the tables, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u32>,
}

impl Recorded {
    /// The hash that identifies the recording.
    pub fn hash(&self) -> &str {
        identifying(&self.blake3, &self.sha256)
    }

    /// Whether its key and its hash can be written into a manifest as they are.
    pub(super) fn has_plain_names(&self) -> bool {
        has_plain_names(&self.trace_id, self.hash())
    }

    /// The fault of an entry that lacks what a recording of its status has.
    pub(super) fn lacks(&self) -> Option<&'static str> {
        let of_converted = [
            (self.events.is_some(), "it has no events"),
            (self.dropped_events.is_some(), "it has no dropped_events"),
            (self.complete.is_some(), "it has no complete"),
        ];
        let of_failed = [(self.error.is_some(), "it has no error")];
        let wanted = if self.status == Status::Failed { &of_failed[..] } else { &of_converted[..] };
        wanted.iter().find(|(is_there, _)| !is_there).map(|(_, what)| *what)
    }
}

/// An entry: what it says of a recording, and its tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The recording.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// The tables of which it has rows, or could have had some.
    pub tables: Vec<TableInfo>,
}

impl Entry {
    /// Reads the entry of the recording `key`. Files are found and removed by the names in it, so none may lead
    /// anywhere else.
    pub fn parse(key: &str, bytes: &[u8]) -> Result<Entry, DamagedEntry> {
        #[derive(Deserialize)]
        struct Tables {
            tables: Vec<TableInfo>,
        }
        let wrong = |what: String| DamagedEntry::new(key, what);
        if bytes.len() as u64 > MOST_ENTRY_BYTES {
            return Err(DamagedEntry::too_large(key));
        }
        // Twice over the bytes: to collect unknown names for a nested struct costs more.
        let recorded: Recorded = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        let Tables { tables } = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        if recorded.trace_id != key {
            return Err(wrong(format!("it says that it is of {:?}", recorded.trace_id)));
        }
        if !recorded.has_plain_names() {
            return Err(wrong("invalid key or hash".into()));
        }
        if recorded.schema_version.is_none() {
            return Err(wrong("it has no schema_version".into()));
        }
        if let Some(what) = recorded.lacks() {
            return Err(wrong(what.into()));
        }
        match tables.iter().find(|table| !paths::is_table(&table.name)) {
            Some(table) => Err(wrong(format!("{:?} is not the name of a table", table.name))),
            None => Ok(Entry { recorded, tables }),
        }
    }

    /// The text of the file.
    pub fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Whether a key and a hash can be written into a manifest as they are.
pub fn has_plain_names(key: &str, hash: &str) -> bool {
    let is_plain = |text: &str| !text.contains(|c: char| matches!(c, '"' | '\\') || c.is_control());
    paths::is_key(key) && is_plain(key) && is_plain(hash)
}

/// The hash of the recording that an entry is of, whatever else is in it.
pub fn hash_of(entry: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Hashes {
        #[serde(default)]
        blake3: String,
        #[serde(default)]
        sha256: String,
    }
    let Hashes { blake3, sha256 } = serde_json::from_slice(entry).ok()?;
    Some(identifying(&blake3, &sha256).to_owned())
}

/// An entry that cannot be read, or is not an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedEntry {
    /// The key of the recording, by the name of the file.
    pub key: String,
    /// The damage, as a sentence.
    pub what: String,
}

impl DamagedEntry {
    /// Of the recording `key`.
    pub fn new(key: &str, what: impl Into<String>) -> DamagedEntry {
        DamagedEntry { key: key.to_owned(), what: what.into() }
    }

    /// Of one that is too large to be read.
    pub fn too_large(key: &str) -> DamagedEntry {
        DamagedEntry::new(key, format!("is not a file of at most {} MB", MOST_ENTRY_BYTES >> 20))
    }

    /// As the error of the dataset at `root`.
    pub fn at(&self, root: &Path) -> Error {
        let expected = match paths::is_pack(&self.key) {
            true => "the entry of a pack: restore the file from a copy",
            false => "the entry of a recording: convert that again, or remove it from the dataset",
        };
        let expected = expected.to_owned();
        Error::Dataset { path: root.join(paths::entry(&self.key)), what: self.what.clone(), expected }
    }
}
