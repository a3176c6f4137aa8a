//! Lets old recordings of a dataset of several go: whole, or but for the tables that are to stay.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tracequet_dataset::format::{Recorded, Status};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::Lake;
use tracequet_trace::error::{Error, Result};
use tracequet_trace::time::format_utc;

use super::described;
use super::head::head_of;
use super::located::at;
use crate::request::Convert;

/// Which recordings go, and what stays of them. A recording goes when it is older than `older_than` and not one of the newest
/// `keep_last`; of the two at least one has to be given. The age of a recording is that of its begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expire {
    /// Only recordings that began longer ago than this.
    pub older_than: Option<Duration>,
    /// Only recordings that are not among this many, the newest of those with the `labels`.
    pub keep_last: Option<usize>,
    /// Only recordings that have all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Tables that stay, by the names that `--tables` takes. `trace`, `trace_label` and `diagnostic` stay with them. Without
    /// any, nothing stays.
    pub keep_tables: Vec<String>,
    /// Changes nothing.
    pub dry_run: bool,
}

/// A recording that went, or that would go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Its key.
    pub trace_id: String,
    /// When it began, as `2026-11-22T05:19:21.000Z`.
    pub start: String,
    /// Bytes of the files that are gone.
    pub bytes: u64,
}

/// Lets recordings go, and returns them, the oldest first. Recordings that could not be read, and those that are still written, have
/// no age and stay. When it fails, those that went before are gone.
pub(crate) fn expire(dataset: &Path, wanted: &Expire) -> Result<Vec<Expired>> {
    expire_at(&at(dataset)?, wanted, SystemTime::now())
}

fn expire_at(lake: &Lake, wanted: &Expire, now: SystemTime) -> Result<Vec<Expired>> {
    if wanted.older_than.is_none() && wanted.keep_last.is_none() {
        return Err(Error::Usage(
            "nothing says which recordings go: give an age, or how many of the newest stay".into(),
        ));
    }
    let kept = Selection::new(&wanted.keep_tables)?;
    let is_whole = wanted.keep_tables.is_empty();
    let keeps = |table: &str| match table.strip_prefix("event/").and_then(|event| event.split_once('/')) {
        // A selection of no tables stands for all.
        _ if is_whole => false,
        Some((provider, event)) => kept.wants_event(provider, event),
        None => kept.asks_for(table),
    };
    let (format, address_type) = head_of(lake)?;
    let mut gone = Vec::new();
    for recorded in chosen(lake, wanted, now)? {
        let (key, start) = (recorded.trace_id, recorded.start.unwrap_or_default());
        let bytes = if is_whole || wanted.dry_run { lake.bytes_of(&key, keeps)? } else { lake.shrink(&key, keeps)? };
        if is_whole && !wanted.dry_run && !lake.remove(&key)? {
            // Another program has removed it meanwhile.
            continue;
        }
        // A recording that an earlier run reduced has nothing more to lose.
        let is_new = |bytes: &u64| *bytes > 0 || is_whole;
        gone.extend(bytes.filter(is_new).map(|bytes| Expired { trace_id: key, start, bytes }));
    }
    if !wanted.dry_run {
        // Also when nothing went: a killed run may have stopped before this.
        described::write(&Convert { format, address_type, ..Convert::default() }, lake)?;
    }
    Ok(gone)
}

/// The recordings that go, the oldest first.
fn chosen(lake: &Lake, wanted: &Expire, now: SystemTime) -> Result<Vec<Recorded>> {
    if !wanted.dry_run {
        lake.storage().open()?;
    }
    let summed = lake.summed(false)?;
    let has_labels = |recorded: &Recorded| {
        wanted.labels.iter().all(|(name, value)| recorded.labels.get(name).is_some_and(|own| own == value))
    };
    let mut all: Vec<Recorded> = summed.recordings().iter().filter_map(|line| line.recorded()).collect();
    all.retain(|recorded| recorded.status != Status::Unfinished && recorded.start.is_some() && has_labels(recorded));
    all.sort_by(|a, b| (&a.start, &a.trace_id).cmp(&(&b.start, &b.trace_id)));
    all.truncate(all.len().saturating_sub(wanted.keep_last.unwrap_or_default()));
    if let Some(age) = wanted.older_than {
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // An age from before 1970 is that of no recording.
        let limit = since_1970.checked_sub(age).and_then(|limit| i64::try_from(limit.as_nanos()).ok());
        let limit = limit.map(format_utc);
        all.retain(|recorded| limit.is_some() && recorded.start < limit);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
