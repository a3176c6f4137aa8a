//! Collections with their ranges, held in memory while a recording is converted, for the survival over time.

use std::collections::{BTreeMap, HashMap};

use super::lineage::{Bound, Collection, Lineage, MAX_PIECES, Range};
use crate::analyze::allowance::Allowance;
use crate::error::Result;
use crate::normalize::fact::{Fact, GcCohort};

/// Memory of a range or a bound, in a list that doubles when it grows.
const ROW_STORED: u64 = 2 * size_of::<Range>() as u64;

/// Memory of a collection.
const COLLECTION_STORED: u64 = 512;

/// The collections of a recording.
#[derive(Debug)]
pub struct StoredRanges {
    allowance: Allowance,
    collections: BTreeMap<u32, Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    runtime: (u64, u16),
    end_ns: i64,
    collection: Collection,
}

impl StoredRanges {
    /// For ranges that take at most so many bytes.
    pub fn new(memory: u64) -> StoredRanges {
        StoredRanges { allowance: Allowance::new(memory), collections: BTreeMap::new() }
    }

    fn collection(&mut self, gc_id: u32, bytes: u64) -> &mut Stored {
        self.allowance.take(bytes);
        self.collections.entry(gc_id).or_insert_with(|| {
            self.allowance.take(COLLECTION_STORED);
            Stored { collection: Collection { gc_id, ..Collection::default() }, ..Stored::default() }
        })
    }

    /// Takes what is told of collections and their ranges. Beyond the memory, all are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent() {
            return;
        }
        match fact {
            Fact::Gc(rows) => {
                for row in rows.iter() {
                    let stored = self.collection(row.gc_id, 0);
                    stored.runtime = (row.process_id, row.clr_instance_id);
                    stored.end_ns = row.end_ts_ns.unwrap_or(row.start_ts_ns);
                    stored.collection.generation = row.generation;
                    stored.collection.background = row.kind.map(|kind| kind == "background");
                    stored.collection.complete = row.complete;
                }
            }
            Fact::GcGenerationRange(rows) => {
                for row in rows.iter() {
                    let Collection { before, after, .. } = &mut self.collection(row.gc_id, ROW_STORED).collection;
                    let bounds = if row.phase == "end" { after } else { before };
                    let (generation, start, length) = (row.generation, row.range_start, row.range_length);
                    bounds.push(Bound { generation, start, length });
                }
            }
            Fact::GcSurvivingRange(rows) => {
                for row in rows.iter() {
                    let (start, length, clamped) = (row.range_start, row.range_length, row.length_kind == "clamped");
                    let ranges = &mut self.collection(row.gc_id, ROW_STORED).collection.ranges;
                    ranges.push(Range { start, new_start: start, length, clamped });
                }
            }
            Fact::GcMovedRange(rows) => {
                for row in rows.iter() {
                    let (start, new_start) = (row.old_range_start, row.new_range_start);
                    let (length, clamped) = (row.range_length, row.length_kind == "clamped");
                    let ranges = &mut self.collection(row.gc_id, ROW_STORED).collection.ranges;
                    ranges.push(Range { start, new_start, length, clamped });
                }
            }
            _ => {}
        }
        if self.allowance.is_exceeded() {
            self.collections.clear();
        }
    }

    /// What is to be said when the ranges, or what came of them, were too many.
    pub fn refused(&self) -> Option<String> {
        self.allowance.refused("gc_cohort is not whole", "--lineage")
    }

    /// Calls `each` with the rows of `gc_cohort`; with none when no collection lists what survived.
    pub fn finish(&mut self, mut each: impl FnMut(&GcCohort) -> Result<()>) -> Result<()> {
        let mut collections: Vec<Stored> = std::mem::take(&mut self.collections).into_values().collect();
        if collections.iter().all(|stored| stored.collection.ranges.is_empty()) {
            return Ok(());
        }
        collections.sort_by_key(|stored| (stored.end_ns, stored.collection.gc_id));
        let mut runtimes: HashMap<(u64, u16), Lineage> = HashMap::new();
        for Stored { runtime, collection, .. } in collections {
            for row in runtimes.entry(runtime).or_default().collect(&collection) {
                each(&GcCohort {
                    gc_id: row.gc_id,
                    born_gc_id: row.born_gc_id,
                    generation: row.generation,
                    alive_bytes: row.alive_bytes,
                    unknown_bytes: row.unknown_bytes,
                })?;
            }
            if runtimes.values().map(Lineage::pieces).sum::<usize>() > MAX_PIECES {
                self.allowance.end();
                return Ok(());
            }
        }
        Ok(())
    }
}
