//! The brief of a recording: the part of its entry that questions need. Of a hundred thousand recordings the rest would
//! be most of the work.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use tracequet_trace::source::identifying;

use crate::format::{Labels, OfPack, Recorded, Status, has_plain_names};

/// A recording, as the dataset has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordingInfo {
    /// The key: the column `trace_id` of a dataset of several.
    pub trace_id: String,
    /// The file that was converted; `-` was standard input.
    pub path: PathBuf,
    /// Size of that file in bytes.
    pub size_bytes: u64,
    /// BLAKE3 of that file in hexadecimal, or its SHA-256 in a dataset that knows its recordings by that; empty when it
    /// was no regular file.
    pub hash: String,
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
    /// The labels. Recordings with the same labels share them.
    pub labels: Arc<Labels>,
}

/// A recording of several that could not be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedRecording {
    /// The key.
    pub trace_id: String,
    /// The file.
    pub path: PathBuf,
    /// The failure: what was wrong, where, and what was expected.
    pub error: String,
    /// The labels.
    pub labels: Arc<Labels>,
}

/// A part of [`Recorded`].
#[derive(Debug, Deserialize)]
pub(super) struct Brief {
    trace_id: String,
    #[serde(default)]
    blake3: String,
    #[serde(default)]
    sha256: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    size_bytes: u64,
    start: Option<String>,
    #[serde(default)]
    pub(super) status: Status,
    events: Option<u64>,
    dropped_events: Option<u64>,
    complete: Option<bool>,
    error: Option<String>,
    #[serde(default)]
    labels: Labels,
    schema_version: Option<u32>,
}

/// Labels that several recordings have.
#[derive(Debug, Default)]
pub(super) struct SharedLabels(HashSet<Arc<Labels>>);

impl SharedLabels {
    fn shared(&mut self, labels: Labels) -> Arc<Labels> {
        if let Some(known) = self.0.get(&labels) {
            return known.clone();
        }
        let labels = Arc::new(labels);
        self.0.insert(labels.clone());
        labels
    }
}

impl From<Recorded> for Brief {
    fn from(recorded: Recorded) -> Brief {
        let Recorded { trace_id, blake3, sha256, path, size_bytes, start, status, .. } = recorded;
        let Recorded { events, dropped_events, complete, error, labels, schema_version, .. } = recorded;
        Brief {
            trace_id,
            blake3,
            sha256,
            path,
            size_bytes,
            start,
            status,
            events,
            dropped_events,
            complete,
            error,
            labels,
            schema_version,
        }
    }
}

impl Brief {
    /// Of a recording that was read.
    pub(super) fn converted(self, labels: &mut SharedLabels) -> RecordingInfo {
        RecordingInfo {
            trace_id: self.trace_id,
            path: PathBuf::from(self.path),
            size_bytes: self.size_bytes,
            hash: identifying(&self.blake3, &self.sha256).to_owned(),
            events: self.events.unwrap_or_default(),
            dropped_events: self.dropped_events.unwrap_or_default(),
            complete: self.complete.unwrap_or_default(),
            start: self.start.unwrap_or_default(),
            status: self.status.name().to_owned(),
            labels: labels.shared(self.labels),
        }
    }

    /// Of one that could not be read.
    pub(super) fn failed(self, labels: &mut SharedLabels) -> FailedRecording {
        FailedRecording {
            trace_id: self.trace_id,
            path: PathBuf::from(self.path),
            error: self.error.unwrap_or_default(),
            labels: labels.shared(self.labels),
        }
    }
}

impl OfPack for Brief {
    fn key(&self) -> &str {
        &self.trace_id
    }

    fn wrong_in_pack(&self, schema_version: u32) -> Option<&'static str> {
        let is_whole = self.events.is_some() && self.dropped_events.is_some() && self.complete.is_some();
        match self {
            _ if !has_plain_names(&self.trace_id, identifying(&self.blake3, &self.sha256)) => {
                Some("invalid key or hash")
            }
            _ if self.schema_version != Some(schema_version) => Some("it has another schema_version"),
            _ if matches!(self.status, Status::Failed | Status::Unfinished) => Some("it is not a whole recording"),
            _ if !is_whole => Some("it has no events, dropped_events or complete"),
            _ => None,
        }
    }
}
