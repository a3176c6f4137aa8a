//! Lets old recordings of a dataset of several go: whole, or but for the tables that are to stay.

use std::time::{Duration, SystemTime};

use crate::compact::{reduce, remove_recordings};
use crate::files::Lake;
use crate::prelude::*;
use tracequet_dataset::format::{Recorded, Status};
use tracequet_dataset::table::select::{Selection, without_groups};
use tracequet_trace::time::format_utc;

use super::compact::threads;
use super::described::describe;
use super::head::head_of;
use super::located::at;

/// Which recordings go, and what stays of them. A recording goes when it is older than `older_than` and not one of the
/// newest `keep_last`; of the two at least one has to be given. The age of a recording is that of its begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expire {
    /// Only recordings that began longer ago than this.
    pub older_than: Option<Duration>,
    /// Only recordings that are not among this many, the newest of those with the `labels`.
    pub keep_last: Option<usize>,
    /// Only recordings that have all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Tables that stay, by the names that `--tables` takes. `trace`, `trace_label` and `diagnostic` stay with them.
    /// Without any, nothing stays.
    pub keep_tables: Vec<String>,
    /// Changes nothing.
    pub dry_run: bool,
}

/// A recording that went, or that would go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// The key.
    pub trace_id: String,
    /// When it began, as `2026-11-22T05:19:21.000Z`.
    pub start: String,
    /// Bytes of the files that are gone.
    pub bytes: u64,
}

/// Lets old recordings of a dataset of several go, whole or but for the tables that are to stay. Returns those that
/// went, the oldest first. Recordings that could not be read, and those that are still written, have no age and stay.
/// When it fails, those that went before are gone.
pub fn expire(dataset: &Path, wanted: &Expire) -> Result<Vec<Expired>> {
    expire_at(&at(dataset)?, wanted, SystemTime::now())
}

fn expire_at(lake: &Lake, wanted: &Expire, now: SystemTime) -> Result<Vec<Expired>> {
    if wanted.older_than.is_none() && wanted.keep_last.is_none() {
        return Err(Error::Usage(
            "nothing says which recordings go: give an age, or how many of the newest stay".into(),
        ));
    }
    let kept = Selection::new(&without_groups(wanted.keep_tables.iter().cloned()))?;
    let is_whole = wanted.keep_tables.is_empty();
    let keeps = |table: &str| match table.strip_prefix("event/").and_then(|event| event.split_once('/')) {
        // A selection of no tables stands for all.
        _ if is_whole => false,
        Some((provider, event)) => kept.wants_event(provider, event),
        None => kept.asks_for(table),
    };
    let written = head_of(lake)?;
    let mut gone = Vec::new();
    let chosen = chosen(lake, wanted, now)?;
    let keys: Vec<String> = chosen.iter().map(|old| old.key.clone()).collect();
    let packed = bytes_in_packs(lake, &keys, keeps)?;
    let went = match (wanted.dry_run, is_whole) {
        (true, _) => None,
        (false, true) => Some(remove_all_after(lake, &keys, keeps, packed.clone())?),
        (false, false) => {
            reduce(lake, &keys, threads(), &keeps)?;
            None
        }
    };
    for Old { start, key } in chosen {
        let bytes = match (packed.get(&key), &went) {
            // Another program may have removed it meanwhile.
            (_, Some(went)) => went.get(&key).copied(),
            (Some(bytes), None) => Some(*bytes),
            (None, None) if wanted.dry_run => lake.bytes_of(&key, keeps)?,
            (None, None) => lake.shrink(&key, keeps)?,
        };
        // A recording that an earlier run reduced has nothing more to lose.
        let is_new = |bytes: &u64| *bytes > 0 || is_whole;
        gone.extend(bytes.filter(is_new).map(|bytes| Expired { trace_id: key, start, bytes }));
    }
    if !wanted.dry_run {
        // Also when nothing went: a killed run may have stopped before this.
        describe(lake, written, false)?;
    }
    Ok(gone)
}

/// Of the recordings that are in packs, the part of each in the bytes of the tables that `keeps` is not true of.
fn bytes_in_packs(lake: &Lake, keys: &[String], keeps: impl Fn(&str) -> bool) -> Result<HashMap<String, u64>> {
    let mut bytes = HashMap::new();
    let mut packs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (key, name) in lake.packs_of(keys)? {
        packs.entry(name).or_default().push(key);
    }
    for (name, keys) in packs {
        let Some(Ok(pack)) = lake.pack(&name)? else { continue };
        for key in keys {
            if let Some((_, member)) = pack.member(key) {
                bytes.insert(key.to_owned(), pack.share(member, |table| !keeps(table)));
            }
        }
    }
    Ok(bytes)
}

/// Removes recordings. Returns for each that was there the bytes of its files; `bytes` has those of recordings in packs.
fn remove_all_after(
    lake: &Lake,
    keys: &[String],
    keeps: impl Fn(&str) -> bool + Copy,
    mut bytes: HashMap<String, u64>,
) -> Result<HashMap<String, u64>> {
    for key in keys {
        if !bytes.contains_key(key)
            && let Some(own) = lake.bytes_of(key, keeps)?
        {
            bytes.insert(key.clone(), own);
        }
    }
    let gone = remove_recordings(lake, keys, threads())?;
    bytes.retain(|key, _| gone.contains(key));
    Ok(bytes)
}

/// A recording that goes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Old {
    start: String,
    key: String,
}

/// The recordings that go, the oldest first.
fn chosen(lake: &Lake, wanted: &Expire, now: SystemTime) -> Result<Vec<Old>> {
    if !wanted.dry_run {
        lake.storage().open()?;
    }
    let summed = lake.summed(false)?;
    let has_labels = |recorded: &Recorded| {
        wanted.labels.iter().all(|(name, value)| recorded.labels.get(name).is_some_and(|own| own == value))
    };
    let mut all = Vec::new();
    let mut add = |recorded: &Recorded| {
        if let (true, Some(start)) = (recorded.status != Status::Unfinished && has_labels(recorded), &recorded.start) {
            all.push(Old { start: start.clone(), key: recorded.trace_id.clone() });
        }
    };
    summed.recordings().iter().filter_map(|line| line.recorded()).for_each(|recorded| add(&recorded));
    lake.each_pack(summed.packs(), |pack| pack.members.iter().for_each(|member| add(&member.recorded)))?;
    all.sort();
    all.truncate(all.len().saturating_sub(wanted.keep_last.unwrap_or_default()));
    if let Some(age) = wanted.older_than {
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // An age from before 1970 is that of no recording.
        let limit = since_1970.checked_sub(age).and_then(|limit| i64::try_from(limit.as_nanos()).ok());
        let limit = limit.map(format_utc);
        all.retain(|old| limit.as_ref().is_some_and(|limit| old.start < *limit));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
