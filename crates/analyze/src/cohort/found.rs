//! The cohorts of a recording: from the tables of a dataset, or from what was kept while it was converted.

use tracequet_facts::fact::GcCohort;

use super::lineage::{CohortRow, Lineage, MAX_PIECES};
use crate::collection::{Collection, SpilledCollections};
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
pub fn cohorts(recording: &Recording<'_>, each: impl FnMut(&[CohortRow])) -> Result<()> {
    let mut collections = SpilledCollections::of(recording)?;
    cohorts_of(&mut collections, each)?;
    collections.whole(recording)
}

/// Calls `each` with the cohorts of collections that are kept, as [`cohorts`] does with those of a recording.
#[doc(hidden)]
pub fn cohorts_of(collections: &mut SpilledCollections, each: impl FnMut(&[CohortRow])) -> Result<()> {
    follow(collections, each)?.map_or(Ok(()), |gc_id| {
        let limit = "more than the 32 million that are followed";
        Err(Error::TooLarge(format!("after collection {gc_id} the heap is in too many pieces: {limit}")))
    })
}

/// Calls `each` with the rows of `gc_cohort`; with none when no collection lists what survived.
pub fn stored_cohorts(
    collections: &mut SpilledCollections,
    mut each: impl FnMut(&GcCohort) -> Result<()>,
) -> Result<()> {
    if !collections.lists_survivors() {
        return Ok(());
    }
    let mut hand_on = |row: &CohortRow| {
        let CohortRow { gc_id, born_gc_id, generation, alive_bytes, unknown_bytes } = *row;
        each(&GcCohort { gc_id, born_gc_id, generation, alive_bytes, unknown_bytes })
    };
    let mut done = Ok(());
    follow(collections, |rows| {
        if done.is_ok() {
            done = rows.iter().try_for_each(&mut hand_on);
        }
    })?;
    done
}

/// Follows the memory of all runtimes. Returns the collection after which it was too much.
fn follow(collections: &mut SpilledCollections, mut each: impl FnMut(&[CohortRow])) -> Result<Option<u32>> {
    let (mut runtimes, mut too_much) = (Runtimes::default(), None);
    collections.each(|collection| {
        runtimes.collect(collection, &mut each);
        too_much = runtimes.is_too_much().then_some(collection.gc_id);
        Ok(too_much.is_none())
    })?;
    runtimes.finish(&mut each);
    Ok(too_much)
}
