//! Takes recordings out of packs, or some of their tables: the pack is written again without them.

use super::job::{Job, NewLabels, whole};
use crate::files::Lake;
use crate::prelude::*;
use tracequet_dataset::format::{DamagedEntry, Labels, Pack, Recorded, paths};
use tracequet_dataset::write::DatasetWriter;

/// The number of times that recordings and packs are looked for again that others have changed.
const ATTEMPTS: usize = 30;

/// The fate of a recording: see [`Job::make`].
type Change<'c> = &'c dyn Fn(&Pack, &Recorded) -> Option<(Recorded, Option<BTreeSet<String>>)>;

/// Adds to a job what it needs for the recordings of its pack that are changed. Returns whether there is something to
/// do.
type Prepare<'c> = &'c mut dyn FnMut(&mut Job, &[&str]) -> Result<bool>;

/// Removes recordings of packs. Those that are in none are left as they are. Returns the keys of those that were there.
pub fn take_out(lake: &Lake, keys: &[String], threads: usize) -> Result<BTreeSet<String>> {
    let gone: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let change =
        |_: &Pack, recorded: &Recorded| (!gone.contains(recorded.trace_id.as_str())).then(|| (recorded.clone(), None));
    rewrite(lake, keys, threads, &change, &mut |_, _| Ok(true))
}

/// Removes recordings, with files of their own or in packs. Returns the keys of those that were there.
pub fn remove_recordings(lake: &Lake, keys: &[String], threads: usize) -> Result<BTreeSet<String>> {
    let mut gone = BTreeSet::new();
    let mut left = keys.to_vec();
    // One that comes into a pack meanwhile has no entry of its own any more.
    for _ in 0..ATTEMPTS {
        gone.extend(take_out(lake, &left, threads)?);
        for key in &left {
            if !gone.contains(key) && lake.remove(key)? {
                gone.insert(key.clone());
            }
        }
        left.retain(|key| !gone.contains(key));
        left = lake.packs_of(&left)?.into_keys().map(str::to_owned).collect();
        if left.is_empty() {
            break;
        }
    }
    Ok(gone)
}

/// Gives recordings of packs other labels. Those that are in none are left as they are. `change` gets the labels that
/// one has. `write` gets what its entry says from then on, and writes the table of its labels. A pack whose recordings
/// get other labels is made again, with all other files as they are. Returns the keys of those that were there, each
/// with whether its labels are others than before.
pub fn relabel(
    lake: &Lake,
    keys: &[String],
    threads: usize,
    change: &dyn Fn(&mut Labels),
    write: &mut dyn FnMut(&Recorded) -> Result<DatasetWriter>,
) -> Result<BTreeMap<String, bool>> {
    let wanted: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let changed = |recorded: &Recorded| {
        let mut recorded = recorded.clone();
        if wanted.contains(recorded.trace_id.as_str()) {
            change(&mut recorded.labels);
        }
        recorded
    };
    let mut others = BTreeMap::new();
    let mut prepare = |job: &mut Job, here: &[&str]| {
        job.labels.clear();
        let Some(pack) = job.packs.first() else { return Ok(false) };
        for key in here {
            let Some((_, member)) = pack.member(key) else { continue };
            let recorded = changed(&member.recorded);
            let is_other = recorded.labels != member.recorded.labels;
            others.insert((*key).to_owned(), is_other);
            if !is_other {
                continue;
            }
            let rows = recorded.labels.len() as u64;
            let (mut file, mut bytes) = (None, 0);
            if rows > 0 {
                let (path, staging) = write(&recorded)?.only_file(paths::LABELS)?;
                bytes = std::fs::metadata(&path).map_err(Error::io(&path))?.len();
                file = Some((path, staging));
            }
            job.labels.insert((*key).to_owned(), NewLabels { file, rows, bytes });
        }
        Ok(!job.labels.is_empty())
    };
    let there = rewrite(lake, keys, threads, &|_, recorded| Some((changed(recorded), None)), &mut prepare)?;
    others.retain(|key, _| there.contains(key));
    Ok(others)
}

/// Removes all tables of recordings of packs but those that `keeps` is true of, as if they had been converted with
/// these alone. Returns for each recording that lost some what it had in the bytes of the files.
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
    rewrite(lake, &reduced, threads, &change, &mut |_, _| Ok(true))?;
    Ok(lost)
}

/// The pack that has a recording.
fn pack_with(lake: &Lake, key: &str) -> Result<Option<Pack>> {
    let Some(name) = lake.packs_of(&[key.to_owned()])?.remove(key) else { return Ok(None) };
    match lake.pack(&name)? {
        Some(Ok(pack)) => Ok(Some(pack)),
        Some(Err(damaged)) => Err(damaged.at(&lake.storage().shown())),
        None => Ok(None),
    }
}

/// Writes the packs again that have recordings with these keys, each once.
fn rewrite(
    lake: &Lake,
    keys: &[String],
    threads: usize,
    change: Change<'_>,
    prepare: Prepare<'_>,
) -> Result<BTreeSet<String>> {
    let mut done = BTreeSet::new();
    let mut left: BTreeSet<&str> = lake.packs_of(keys)?.into_keys().collect();
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
        if here.is_empty() {
            // The pack's index has a key that the pack does not have.
            return Err(DamagedEntry::new(&pack.name, "its index is of other recordings").at(&lake.storage().shown()));
        }
        let (name, schema_version) = (pack.name.clone(), pack.schema_version);
        let mut job = Job { packs: vec![pack], ..Job::default() };
        let is_wanted = prepare(&mut job, &here)?;
        lake.settled()?;
        let change = |recorded: &Recorded| change(job.packs.first()?, recorded);
        let is_done = match is_wanted {
            false => true,
            true => match whole(job.make(lake, schema_version, threads, &change))? {
                Some(made) => lake.put_pack(&made.pack, &[], &made.files)?,
                None => lake.remove_pack(&name)?,
            },
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
