//! The recordings that a dataset has when others are added.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::manifest::{VERSION, address_type, labels};
use super::request::{AddressType, Convert};
use super::summary::SkippedInput;
use crate::error::{Error, Result};
use crate::sink::{Format, entry_path, read_small};
use crate::source::FileIdentity;
use crate::table::schema::SCHEMA_VERSION;

/// The recordings that a dataset has.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_hash: HashMap<String, Entry>,
    /// The hashes of recordings whose store told a tag, by their address.
    tagged: HashMap<PathBuf, String>,
    failed: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    trace_id: String,
    #[serde(default)]
    path: PathBuf,
    #[serde(default)]
    sha256: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    options: String,
    #[serde(default)]
    etag: Option<String>,
    #[serde(default)]
    labels: serde_json::Value,
}

/// What is to be done with a recording.
#[derive(Debug)]
pub(super) enum Plan {
    /// It is in the dataset.
    Skip(SkippedInput),
    /// Convert it; these entries go.
    Convert(Vec<String>),
}

impl Known {
    /// By the entries of a dataset. Fails when tables of this version cannot stand among those that are there.
    pub(super) fn of(request: &Convert, entries: &[(String, Vec<u8>)]) -> Result<Known> {
        let mut known = Known::default();
        for (key, bytes) in entries {
            let path = || request.output.join(entry_path(key));
            let wrong = |what: String, expected: String| Error::Dataset { path: path(), what, expected };
            let entry: Entry =
                serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string(), "the entry of a recording".into()))?;
            // Files are removed by this name, which an entry from somewhere else could make lead anywhere.
            if entry.trace_id != *key {
                return Err(wrong(format!("it says that it is of {:?}", entry.trace_id), "its own recording".into()));
            }
            if entry.schema_version != SCHEMA_VERSION && !request.refresh {
                let what = format!("its tables are of version {} (tracequet {})", entry.schema_version, entry.version);
                let expected = format!("version {SCHEMA_VERSION}: --refresh converts it again if it is given");
                return Err(wrong(what, expected));
            }
            if entry.status == "failed" {
                known.failed.push(entry);
            } else {
                if entry.etag.is_some() {
                    known.tagged.insert(entry.path.clone(), entry.sha256.clone());
                }
                known.by_hash.insert(entry.sha256.clone(), entry);
            }
        }
        Ok(known)
    }

    /// The tag that the object at an address had when it was converted.
    pub(super) fn tag(&self, address: &Path) -> Option<String> {
        self.at(address)?.etag.clone()
    }

    /// What is to be said of an object whose tag is what it was, if it is not to be converted again.
    pub(super) fn unchanged(&self, request: &Convert, address: &Path) -> Option<SkippedInput> {
        self.at(address).and_then(|entry| entry.skipped(request, address))
    }

    fn at(&self, address: &Path) -> Option<&Entry> {
        self.by_hash.get(self.tagged.get(address)?)
    }

    /// What is to be done with a recording. One that failed before is tried again: its file may have been repaired, or
    /// was still being written.
    pub(super) fn plan(&self, request: &Convert, path: &Path, identity: &FileIdentity) -> Plan {
        let same_file =
            |entry: &&Entry| entry.path == path || !entry.sha256.is_empty() && entry.sha256 == identity.sha256;
        let mut replaced: Vec<String> = self.failed.iter().filter(same_file).map(|e| e.trace_id.clone()).collect();
        if let Some(entry) = self.by_hash.get(&identity.sha256).filter(|_| !identity.sha256.is_empty()) {
            if let Some(skipped) = entry.skipped(request, path) {
                return Plan::Skip(skipped);
            }
            replaced.push(entry.trace_id.clone());
        }
        Plan::Convert(replaced)
    }
}

impl Entry {
    /// What is said of the recording at `path`, which has this content, unless it is to be converted again.
    fn skipped(&self, request: &Convert, path: &Path) -> Option<SkippedInput> {
        let differs = self.options != request.options();
        let is_old = self.version != VERSION || self.schema_version != SCHEMA_VERSION;
        if request.refresh && (differs || is_old) {
            return None;
        }
        let other_labels = !request.labels.is_empty() && self.labels != labels(request);
        Some(SkippedInput { path: path.to_owned(), trace_id: self.trace_id.clone(), differs, other_labels })
    }
}

#[derive(Deserialize)]
struct Head {
    tool: String,
    layout: String,
    format: String,
    #[serde(default)]
    address_type: String,
    #[serde(default)]
    schema_version: Option<u32>,
}

impl Head {
    fn parse(path: &Path, bytes: &[u8]) -> Result<Head> {
        serde_json::from_slice(bytes).map_err(|e| Error::Dataset {
            path: path.to_owned(),
            what: e.to_string(),
            expected: "a manifest of tracequet".into(),
        })
    }
}

/// Refuses to add to something else than a dataset of several recordings of the same format. Nothing, and an empty
/// directory, are good. Returns the version of the tables that `manifest.json` says, if it is there.
pub(super) fn check_head(request: &Convert) -> Result<Option<u32>> {
    let out = &request.output;
    let path = out.join("manifest.json");
    let bytes = match read_small(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = match std::fs::read_dir(out) {
                Ok(entries) => entries,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(Error::Io { path: out.clone(), source }),
            };
            // A killed first run left a dataset that has no summary yet.
            if out.join("manifest").is_dir() || entries.next().is_none() {
                return Ok(None);
            }
            let message =
                format!("{} holds something else than a dataset of tracequet, so nothing is added", out.display());
            return Err(Error::Usage(message));
        }
        Err(source) => return Err(Error::Io { path, source }),
    };
    let head = Head::parse(&path, &bytes)?;
    let format = request.format.name();
    let addresses = address_type(request.address_type);
    let refuse =
        |what: String| Err::<Option<u32>, _>(Error::Usage(format!("{}: {what}, so nothing is added", out.display())));
    if head.tool != "tracequet" {
        return refuse("is no dataset of tracequet".into());
    }
    if head.layout != "hive" {
        return refuse(
            "is a dataset of one recording (expected one of several, as --append or --layout hive makes it)".into(),
        );
    }
    if head.format != format {
        return refuse(format!("its tables are {} files, expected --format {}", head.format, head.format));
    }
    if !head.address_type.is_empty() && head.address_type != addresses {
        return refuse(format!(
            "its addresses are {}, expected --address-type {}",
            head.address_type, head.address_type
        ));
    }
    Ok(head.schema_version)
}

/// How the tables of a dataset of several recordings are written.
pub(super) fn head_of(root: &Path) -> Result<(Format, AddressType)> {
    let path = root.join("manifest.json");
    let bytes = read_small(&path).map_err(Error::io(&path))?;
    let head = Head::parse(&path, &bytes)?;
    if head.tool != "tracequet" || head.layout != "hive" {
        return Err(Error::Usage(format!("{} is no dataset of several recordings", root.display())));
    }
    let format = if head.format == "arrow" { Format::Arrow } else { Format::Parquet };
    let addresses = if head.address_type == "int64" { AddressType::Int64 } else { AddressType::Uint64 };
    Ok((format, addresses))
}
