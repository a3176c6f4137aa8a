//! The cohorts of a recording: from the tables of a dataset, or from what was kept while it was converted.

use tracequet_facts::fact::GcCohort;

use super::lineage::{CohortRow, Lineage, MAX_PIECES};
use crate::collection::{Collection, ReadCollections, SpilledCollections};
use crate::prelude::*;

/// The memory of all runtimes of a recording.
#[derive(Default)]
struct Runtimes(BTreeMap<(u64, u64), Lineage>);

impl Runtimes {
    fn collect(&mut self, collection: &Collection, each: &mut dyn FnMut(&[CohortRow])) {
        self.0.entry(collection.runtime).or_default().collect(collection, each);
    }

    fn is_too_much(&self) -> bool {
        self.0.values().map(Lineage::pieces).sum::<usize>() > MAX_PIECES
    }

    fn finish(&mut self, each: &mut dyn FnMut(&[CohortRow])) {
        self.0.values_mut().for_each(|lineage| lineage.finish(each));
    }
}

/// Calls `each` with the cohorts of a recording after each of its collections, those of a runtime in the order of their
/// ends. Reads the tables [`TABLES`](super::TABLES), each row once. Fails when no collection of the recording lists
/// what survived.
pub fn cohorts(recording: &Recording<'_>, mut each: impl FnMut(&[CohortRow])) -> Result<()> {
    let mut runtimes = Runtimes::default();
    ReadCollections::of(recording)?.each(|collection| {
        runtimes.collect(collection, &mut each);
        if !runtimes.is_too_much() {
            return Ok(());
        }
        let gc_id = collection.gc_id;
        let limit = "more than the 32 million that are followed";
        Err(Error::TooLarge(format!("after collection {gc_id} the heap is in too many pieces: {limit}")))
    })?;
    runtimes.finish(&mut each);
    Ok(())
}

/// Calls `each` with the rows of `gc_cohort`; with none when no collection lists what survived.
pub fn stored_cohorts(
    collections: &mut SpilledCollections,
    mut each: impl FnMut(&GcCohort) -> Result<()>,
) -> Result<()> {
    let mut runtimes = Runtimes::default();
    if !collections.lists_survivors() {
        return Ok(());
    }
    let mut hand_on = |rows: Vec<CohortRow>| {
        rows.into_iter().try_for_each(|row| {
            each(&GcCohort {
                gc_id: row.gc_id,
                born_gc_id: row.born_gc_id,
                generation: row.generation,
                alive_bytes: row.alive_bytes,
                unknown_bytes: row.unknown_bytes,
            })
        })
    };
    collections.each(|collection| {
        let mut rows = Vec::new();
        runtimes.collect(collection, &mut |of_one| rows.extend_from_slice(of_one));
        hand_on(rows)?;
        Ok(!runtimes.is_too_much())
    })?;
    let mut rows = Vec::new();
    runtimes.finish(&mut |of_one| rows.extend_from_slice(of_one));
    hand_on(rows)
}
