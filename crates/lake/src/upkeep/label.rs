//! Gives recordings of a dataset of several other labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::compact::relabel as relabel_packed;
use crate::files::Lake;
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::{AddressType, PackHead, Recorded, Status, paths};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables, of_file, source_footer};
use tracequet_dataset::write::{DatasetOptions, DatasetWriter, Encoders, Shelf};
use tracequet_facts::fact::{FactSink, TraceLabel};
use tracequet_trace::source::FileIdentity;
use tracequet_trace::time::Clock;

use super::compact::threads;
use super::described::describe;
use super::head::{Written, head_of};
use super::located::at;

/// The number of times that a recording is looked for that others compact meanwhile.
const ATTEMPTS: usize = 10;

/// Which recordings get other labels, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relabel {
    /// These recordings, by their keys. Without any, all of the dataset, but for those that are still written.
    pub keys: Vec<String>,
    /// Of these only recordings that have all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Labels that they get, in place of those with the same names.
    pub set: BTreeMap<String, String>,
    /// Names of labels that go.
    pub unset: BTreeSet<String>,
    /// Changes nothing.
    pub dry_run: bool,
}

/// Gives recordings other labels, each in one step: its entry, and then the file of its labels; those of a pack
/// together. Returns the keys of those whose labels are others than before. Fails when a key is that of no recording.
/// When it fails, those before it have their new labels.
pub fn relabel(dataset: &Path, wanted: &Relabel) -> Result<Vec<String>> {
    relabel_in(&at(dataset)?, wanted)
}

fn relabel_in(lake: &Lake, wanted: &Relabel) -> Result<Vec<String>> {
    if wanted.set.is_empty() && wanted.unset.is_empty() {
        return Err(Error::Usage("no label is set or removed".into()));
    }
    let written = head_of(lake)?;
    if !wanted.dry_run {
        lake.storage().open()?;
    }
    let change = |labels: &mut BTreeMap<String, String>| {
        labels.retain(|name, _| !wanted.unset.contains(name));
        labels.extend(wanted.set.clone());
    };
    let encoders = Encoders::start(1);
    let mut changed = Vec::new();
    let chosen = chosen(lake, wanted)?;
    let mut left = Vec::new();
    for (key, labels) in chosen {
        let mut other = labels.clone();
        change(&mut other);
        // A store that a killed run left has the entry, and not the file.
        let is_done = other == labels && lake.storage().puts_together();
        match wanted.dry_run || is_done {
            true => changed.extend((other != labels).then_some(key)),
            false => left.push(key),
        }
    }
    // One that comes into a pack meanwhile has no entry of its own any more.
    for _ in 0..ATTEMPTS {
        let mut shelf = Shelf::new(lake.storage().folder());
        let mut write_packed = |recorded: &Recorded| {
            let part = |options| DatasetWriter::part_beside(&mut shelf, encoders.clone(), options);
            write(written, recorded, part)
        };
        let packed = relabel_packed(lake, &left, threads(), &change, &mut write_packed)?;
        let mut gone = Vec::new();
        for key in left {
            if let Some(is_other) = packed.get(&key) {
                changed.extend(is_other.then_some(key));
                continue;
            }
            let part = |options| DatasetWriter::part_of(lake.storage().folder(), encoders.clone(), options);
            match lake.relabel(&key, change, |entry| write(written, &entry.recorded, part))? {
                Some(is_other) => changed.extend(is_other.then_some(key)),
                None => gone.push(key),
            }
        }
        left = lake.packs_of(&gone)?.into_keys().map(str::to_owned).collect();
        if left.is_empty() {
            break;
        }
    }
    changed.sort();
    if !wanted.dry_run {
        // Also when nothing changed: a killed run may have stopped before this.
        describe(lake, written, false)?;
    }
    Ok(changed)
}

/// The recordings that are meant, with their labels.
fn chosen(lake: &Lake, wanted: &Relabel) -> Result<Vec<(String, BTreeMap<String, String>)>> {
    let summed = lake.summed(false)?;
    let all = summed.recordings().iter().chain(summed.failed()).filter_map(|line| line.recorded());
    let mut found: BTreeMap<String, _> = all.map(|one| (one.trace_id, (one.status, one.labels))).collect();
    // Of packs only those are read that can have one of them.
    let is_asked =
        |head: &&Arc<PackHead>| wanted.keys.is_empty() || wanted.keys.iter().any(|key| head.index.has_key(key));
    let packs: Vec<_> = summed.packs().iter().filter(is_asked).cloned().collect();
    lake.each_pack(&packs, |pack| {
        let all = pack.members.iter().map(|member| &member.recorded);
        found.extend(all.map(|one| (one.trace_id.clone(), (one.status, one.labels.clone()))));
    })?;
    if let Some(missing) = wanted.keys.iter().find(|key| !found.contains_key(*key)) {
        let shown = lake.storage().shown();
        return Err(Error::Usage(format!("{}: there is no recording {missing}", shown.display())));
    }
    found.retain(|key, (status, labels)| {
        let is_named = if wanted.keys.is_empty() { *status != Status::Unfinished } else { wanted.keys.contains(key) };
        is_named && wanted.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    });
    Ok(found.into_iter().map(|(key, (_, labels))| (key, labels)).collect())
}

/// Writes the labels of a recording as the table that it gets, into what `part` makes.
fn write(
    written: Written,
    recorded: &Recorded,
    part: impl FnOnce(DatasetOptions) -> Result<DatasetWriter>,
) -> Result<DatasetWriter> {
    let key = &recorded.trace_id;
    let shape = Shape { trace_id: Some(key.clone()), signed: written.address_type == AddressType::Int64 };
    // Neither matters for a table without times and addresses.
    let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
    let mut tables = Tables::new(Selection::least(), clock, 8, shape)?;
    let mut part = part(DatasetOptions {
        format: written.format,
        partition: Some(paths::partition(key)),
        elsewhere: Arc::new(tables.specs().iter().map(|spec| spec.name.clone()).collect()),
        ..DatasetOptions::default()
    })?;
    let ids: Vec<_> = tables.specs().iter().map(|spec| part.table(spec.clone())).collect::<Result<_>>()?;
    for (name, value) in &recorded.labels {
        tables.add(&TraceLabel { name, value });
    }
    tables.finish();
    for batch in tables.take_ready().1 {
        if let Some(id) = ids.get(batch.table) {
            part.write(*id, batch.rows)?;
        }
    }
    let (blake3, sha256) = (recorded.blake3.clone(), recorded.sha256.clone());
    let identity = FileIdentity { size_bytes: recorded.size_bytes, blake3, sha256 };
    part.close_tables(&source_footer(&of_file(&recorded.path, &identity)))?;
    Ok(part)
}
