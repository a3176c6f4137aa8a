//! Gives recordings of a dataset of several other labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use tracequet_dataset::format::{AddressType, Entry, Status, paths};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::{DatasetWriter, Encoders, Lake};
use tracequet_trace::error::{Error, Result};
use tracequet_trace::time::Clock;

use super::described;
use super::head::head_of;
use super::located::at;
use crate::one::{TableOutput, options};
use crate::request::Convert;

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

/// Gives recordings other labels, each in one step: its entry, and then the file of its labels. Returns the keys of those whose labels
/// are others than before. Fails when a key is that of no recording. When it fails, those before it have their new labels.
pub(crate) fn relabel(dataset: &Path, wanted: &Relabel) -> Result<Vec<String>> {
    relabel_in(&at(dataset)?, wanted)
}

fn relabel_in(lake: &Lake, wanted: &Relabel) -> Result<Vec<String>> {
    if wanted.set.is_empty() && wanted.unset.is_empty() {
        return Err(Error::Usage("no label is set or removed".into()));
    }
    let (format, address_type) = head_of(lake)?;
    if !wanted.dry_run {
        lake.storage().open()?;
    }
    let change = |labels: &mut BTreeMap<String, String>| {
        labels.retain(|name, _| !wanted.unset.contains(name));
        labels.extend(wanted.set.clone());
    };
    let request = Convert { format, address_type, ..Convert::default() };
    let encoders = Encoders::start(1).map_err(Error::io("starting a thread"))?;
    let mut changed = Vec::new();
    let chosen = chosen(lake, wanted)?;
    for (key, labels) in &chosen {
        let mut other = labels.clone();
        change(&mut other);
        if other != *labels && lake.pack_of(key)?.is_some() {
            let what =
                format!("{key} is in a pack, and labels of compacted recordings do not change, so nothing is changed");
            return Err(Error::Usage(what));
        }
    }
    for (key, labels) in chosen {
        let mut other = labels.clone();
        change(&mut other);
        // A store that a killed run left has the entry, and not the file.
        let is_done = other == labels && lake.storage().puts_together();
        if wanted.dry_run || is_done {
            changed.extend((other != labels).then_some(key));
        } else if lake.relabel(&key, change, |entry| write(&request, lake, entry, &encoders))? == Some(true) {
            changed.push(key);
        }
    }
    if !wanted.dry_run {
        // Also when nothing changed: a killed run may have stopped before this.
        described::write(&request, lake)?;
    }
    Ok(changed)
}

/// The recordings that are meant, with their labels.
fn chosen(lake: &Lake, wanted: &Relabel) -> Result<Vec<(String, BTreeMap<String, String>)>> {
    let summed = lake.summed(false)?;
    let all = summed.recordings().iter().chain(summed.failed()).filter_map(|line| line.recorded());
    let mut found: BTreeMap<String, _> = all.map(|one| (one.trace_id, (one.status, one.labels))).collect();
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

/// Writes the labels of an entry as the table that the recording gets.
fn write(request: &Convert, lake: &Lake, entry: &Entry, encoders: &Arc<Encoders>) -> Result<DatasetWriter> {
    let key = &entry.recorded.trace_id;
    let shape = Shape { trace_id: Some(key.clone()), signed: request.address_type == AddressType::Int64 };
    // Neither matters for a table without times and addresses.
    let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
    let tables = Tables::new(Selection::least(), clock, 8, shape)?;
    let mut options = options(request, &[]);
    options.partition = Some(paths::partition(key));
    options.elsewhere = Arc::new(tables.specs().iter().map(|spec| spec.name.clone()).collect());
    let mut part = DatasetWriter::part_of(lake.storage().folder(), encoders.clone(), options)?;
    let request = Convert { labels: entry.recorded.labels.clone().into_iter().collect(), ..request.clone() };
    TableOutput::new(tables, &request).close_labels(&entry.recorded, &mut part)?;
    Ok(part)
}

#[cfg(test)]
mod tests;
