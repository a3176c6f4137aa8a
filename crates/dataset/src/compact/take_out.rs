//! Takes recordings out of packs, or some of their tables: the pack is written again without them.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_trace::error::{Error, Result};

use super::job::{Job, whole};
use crate::format::{Pack, Recorded};
use crate::write::Lake;

/// How often a pack is looked for again that others have rewritten.
const ATTEMPTS: usize = 30;

/// What becomes of a recording: see [`Job::make`].
type Change<'c> = &'c dyn Fn(&Pack, &Recorded) -> Option<(Recorded, Option<BTreeSet<String>>)>;

/// Removes recordings of packs. Those that are in none are left as they are. Returns the keys of those that were there.
pub fn take_out(lake: &Lake, keys: &[String], threads: usize) -> Result<BTreeSet<String>> {
    let gone: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let change =
        |_: &Pack, recorded: &Recorded| (!gone.contains(recorded.trace_id.as_str())).then(|| (recorded.clone(), None));
    rewrite(lake, keys, threads, &change)
}

/// Removes all tables of recordings of packs but those that `keeps` is true of, as if they had been converted with these alone. Returns
/// for each recording that lost some what it had in the bytes of the files.
pub fn reduce(
    lake: &Lake,
    keys: &[String],
    threads: usize,
    keeps: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, u64>> {
    let mut lost = BTreeMap::new();
    let mut reduced = Vec::new();
    for key in keys {
        let Some(pack) = pack_with(lake, key)? else { continue };
        let Some((_, member)) = pack.member(key) else { continue };
        if member.tables.iter().filter_map(|table| pack.table(*table)).any(|table| !keeps(&table.name)) {
            lost.insert(key.clone(), pack.share(member, |name| !keeps(name)));
            reduced.push(key.clone());
        }
    }
    let wanted: BTreeSet<&str> = reduced.iter().map(String::as_str).collect();
    let change = |pack: &Pack, recorded: &Recorded| {
        let mut recorded = recorded.clone();
        if !wanted.contains(recorded.trace_id.as_str()) {
            return Some((recorded, None));
        }
        let (_, member) = pack.member(&recorded.trace_id)?;
        let tables = member.tables.iter().filter_map(|table| pack.table(*table)).map(|table| &table.name);
        let stay: BTreeSet<String> = tables.filter(|name| keeps(name)).cloned().collect();
        recorded.options.get_or_insert_default().tables = stay.iter().cloned().collect();
        Some((recorded, Some(stay)))
    };
    rewrite(lake, &reduced, threads, &change)?;
    Ok(lost)
}

/// The pack that has a recording.
fn pack_with(lake: &Lake, key: &str) -> Result<Option<Pack>> {
    let Some(name) = lake.pack_of(key)? else { return Ok(None) };
    match lake.pack(&name)? {
        Some(Ok(pack)) => Ok(Some(pack)),
        Some(Err(damaged)) => Err(damaged.at(&lake.storage().shown())),
        None => Ok(None),
    }
}

/// Writes the packs again that have recordings with these keys, each once.
fn rewrite(lake: &Lake, keys: &[String], threads: usize, change: Change<'_>) -> Result<BTreeSet<String>> {
    let mut done = BTreeSet::new();
    let mut left: BTreeSet<&str> = BTreeSet::new();
    for key in keys {
        if lake.pack_of(key)?.is_some() {
            left.insert(key);
        }
    }
    if left.is_empty() {
        return Ok(done);
    }
    let _turn = lake.storage().turn_to_pack()?;
    let mut attempts = 0;
    while let Some(key) = left.first().copied() {
        let Some(pack) = pack_with(lake, key)? else {
            left.remove(key);
            continue;
        };
        let here: Vec<&str> = left.iter().copied().filter(|key| pack.member(key).is_some()).collect();
        let (name, schema_version) = (pack.name.clone(), pack.schema_version);
        let job = Job { singles: Vec::new(), packs: vec![pack] };
        let change = |recorded: &Recorded| change(job.packs.first()?, recorded);
        let made = whole(job.make(lake, schema_version, threads, &change))?;
        let is_done = match made {
            Some(made) => lake.put_pack(&made.pack, &[], &made.files)?,
            None => lake.remove_pack(&name)?,
        };
        if is_done {
            for key in here {
                left.remove(key);
                done.insert(key.to_owned());
            }
            continue;
        }
        attempts += 1;
        if attempts == ATTEMPTS {
            let source = std::io::Error::other("other programs keep changing the packs");
            return Err(Error::Io { path: lake.storage().shown(), source });
        }
    }
    Ok(done)
}
