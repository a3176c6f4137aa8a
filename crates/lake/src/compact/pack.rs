//! Compacts a dataset: makes one pack after the other until all is well.

use super::job::{Job, NotMade, all};
use super::plan::{Group, Known, Limits, Single, next};
use crate::files::Lake;
use crate::prelude::*;
use tracequet_dataset::format::{Entry, Pack, PackHead, Status};

/// The number of times that a pack is made again because its recordings were removed or converted again meanwhile.
const ATTEMPTS: usize = 10;

/// The outcome of a compaction.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Compacted {
    /// Recordings that had files of their own.
    pub recordings: u64,
    /// Packs that were made, and that others took the place of.
    pub made: u64,
    /// See `made`.
    pub replaced: u64,
    /// Files of tables before and after, and their bytes.
    pub files: (u64, u64),
    /// See `files`.
    pub bytes: (u64, u64),
    /// Recordings that cannot be read, which stay as they are.
    pub left_out: Vec<LeftOut>,
}

/// A recording or a pack that stays as it is.
#[derive(Debug)]
pub struct LeftOut {
    /// The key.
    pub key: String,
    /// Why.
    pub error: Error,
}

/// Puts recordings together that have files of their own, and small packs with them.
pub fn compact(lake: &Lake, schema_version: u32, limits: &Limits) -> Result<Compacted> {
    let _turn = lake.storage().turn_to_pack()?;
    let mut done = Compacted::default();
    let mut failures = 0;
    loop {
        let (singles, packs) = candidates(lake, schema_version, &done.left_out)?;
        let Some(group) = next(singles, packs, limits) else { return Ok(done) };
        let Some((job, tags)) = job_of(lake, &group)? else { continue };
        if !job.packs.is_empty() {
            lake.settled()?;
        }
        let made = match job.make(lake, schema_version, limits.threads, &all) {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(done),
            Err(NotMade::Other(error)) => return Err(error),
            // The recording may just have been removed.
            Err(NotMade::Source(key, error)) => {
                if lake.storage().entry(&key)?.is_some() {
                    done.left_out.push(LeftOut { key, error });
                }
                continue;
            }
        };
        if !lake.put_pack(&made.pack, &tags, &made.files)? {
            failures += 1;
            if failures == ATTEMPTS {
                let source = std::io::Error::other("other programs keep changing the recordings");
                return Err(Error::Io { path: lake.storage().shown(), source });
            }
            continue;
        }
        failures = 0;
        add_up(&mut done, &job, &made.pack);
    }
}

fn add_up(done: &mut Compacted, job: &Job, pack: &Pack) {
    let of_packs = |packs: &[Pack]| {
        let tables = packs.iter().flat_map(|pack| &pack.tables);
        tables.fold((0, 0), |(files, bytes), table| (files + table.files.len() as u64, bytes + table.bytes()))
    };
    let singles = job.singles.iter().flat_map(|entry| &entry.tables).filter(|table| table.rows > 0);
    let before = singles.fold(of_packs(&job.packs), |(files, bytes), table| (files + 1, bytes + table.bytes));
    let after = of_packs(std::slice::from_ref(pack));
    done.recordings += job.singles.len() as u64;
    done.made += 1;
    done.replaced += job.packs.len() as u64;
    done.files = (done.files.0 + before.0, done.files.1 + after.0);
    done.bytes = (done.bytes.0 + before.1, done.bytes.1 + after.1);
}

/// The candidates for compaction: recordings of this version that were read to their end, and packs.
fn candidates(lake: &Lake, schema_version: u32, left_out: &[LeftOut]) -> Result<(Vec<Single>, Vec<Known>)> {
    let is_left_out = |key: &str| left_out.iter().any(|one| one.key == key);
    let summed = lake.summed(false)?;
    let mut singles = Vec::new();
    for line in summed.recordings().iter().filter(|line| !is_left_out(line.key())) {
        let Some(entry) = entry_of(lake, line.key(), schema_version)?.map(|(entry, _)| entry) else { continue };
        singles.push(Single {
            start: entry.recorded.start.unwrap_or_default(),
            key: entry.recorded.trace_id,
            bytes: entry.tables.iter().map(|table| table.bytes).sum(),
        });
    }
    let of_now = summed.packs().iter().filter(|head| head.schema_version == schema_version && !is_left_out(&head.pack));
    let known = |head: &Arc<PackHead>| Known {
        bytes: head.files().1,
        name: head.pack.clone(),
        recordings: head.index.recordings,
    };
    Ok((singles, of_now.map(known).collect()))
}

/// The entry of a recording that can be compacted, and its tag.
fn entry_of(lake: &Lake, key: &str, schema_version: u32) -> Result<Option<(Entry, String)>> {
    let Some(Ok((tag, text))) = lake.storage().entry(key)? else { return Ok(None) };
    let Ok(entry) = Entry::parse(key, &text) else { return Ok(None) };
    let is_whole = matches!(entry.recorded.status, Status::Ok | Status::Losses);
    Ok((is_whole && entry.recorded.schema_version == Some(schema_version)).then_some((entry, tag)))
}

/// Keys of recordings, and the tags of their entries.
type Tags = Vec<(String, String)>;

/// A job with the entries and packs of a group, and the tags of the entries. Nothing if one is gone.
fn job_of(lake: &Lake, group: &Group) -> Result<Option<(Job, Tags)>> {
    let mut job = Job::default();
    let mut tags = Tags::new();
    for key in &group.singles {
        let Some(Ok((tag, text))) = lake.storage().entry(key)? else { return Ok(None) };
        let Ok(entry) = Entry::parse(key, &text) else { return Ok(None) };
        job.singles.push(entry);
        tags.push((key.clone(), tag));
    }
    for name in &group.packs {
        match lake.pack(name)? {
            Some(Ok(pack)) => job.packs.push(pack),
            Some(Err(damaged)) => return Err(damaged.at(&lake.storage().shown())),
            None => return Ok(None),
        }
    }
    Ok(Some((job, tags)))
}
