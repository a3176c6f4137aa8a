//! The cohorts of a recording: from the tables of a dataset, or from what was kept while it was converted.

use std::collections::HashMap;

use tracequet_dataset::read::Recording;
use tracequet_facts::fact::GcCohort;
use tracequet_trace::error::{Error, Result};

use super::lineage::{CohortRow, Lineage, MAX_PIECES};
use crate::collection::{Collection, Order, ReadCollections, StoredCollections};

/// The memory of all runtimes of a recording.
#[derive(Default)]
struct Runtimes(HashMap<(u64, u64), Lineage>);

impl Runtimes {
    fn collect(&mut self, collection: &Collection) -> Vec<CohortRow> {
        self.0.entry(collection.runtime).or_default().collect(collection)
    }

    fn is_too_much(&self) -> bool {
        self.0.values().map(Lineage::pieces).sum::<usize>() > MAX_PIECES
    }
}

/// Calls `each` with the cohorts of a recording after each of its collections, in the order of their ends. Reads the tables
/// [`TABLES`](super::TABLES), each row once. Fails when no collection of the recording lists what survived.
pub fn cohorts(recording: &Recording<'_>, mut each: impl FnMut(&[CohortRow])) -> Result<()> {
    let mut runtimes = Runtimes::default();
    ReadCollections::of(recording, Order::Ends)?.each(|collection| {
        each(&runtimes.collect(collection));
        if !runtimes.is_too_much() {
            return Ok(());
        }
        let gc_id = collection.gc_id;
        let limit = "more than the 32 million that are followed";
        Err(Error::TooLarge(format!("after collection {gc_id} the heap is in too many pieces: {limit}")))
    })
}

/// Calls `each` with the rows of `gc_cohort`; with none when no collection lists what survived.
pub fn stored_cohorts(
    collections: &mut StoredCollections,
    mut each: impl FnMut(&GcCohort) -> Result<()>,
) -> Result<()> {
    let mut runtimes = Runtimes::default();
    let lists_survivors = collections.lists_survivors();
    collections.each(Order::Ends, |collection| {
        let rows = if lists_survivors { runtimes.collect(collection) } else { Vec::new() };
        for row in rows {
            each(&GcCohort {
                gc_id: row.gc_id,
                born_gc_id: row.born_gc_id,
                generation: row.generation,
                alive_bytes: row.alive_bytes,
                unknown_bytes: row.unknown_bytes,
            })?;
        }
        Ok(!runtimes.is_too_much())
    })
}
