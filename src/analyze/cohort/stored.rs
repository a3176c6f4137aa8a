//! Collections with their ranges, held in memory while a recording is converted, for the survival over time.

use std::collections::{BTreeMap, HashMap};

use super::lineage::{Bound, Collection, Lineage, MAX_PIECES, Range};
use crate::error::Result;
use crate::normalize::fact::{Fact, GcCohort};

/// Memory of a range or a bound, in a list that doubles when it grows.
const ROW_STORED: u64 = 2 * size_of::<Range>() as u64;

/// Memory of a collection.
const COLLECTION_STORED: u64 = 512;

/// The collections of a recording.
#[derive(Debug)]
pub struct StoredRanges {
    memory: u64,
    used: u64,
    collections: BTreeMap<u32, Stored>,
    is_too_much: bool,
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
        StoredRanges { memory, used: 0, collections: BTreeMap::new(), is_too_much: false }
    }

    fn collection(&mut self, gc_id: u32, bytes: u64) -> &mut Stored {
        self.used = self.used.saturating_add(bytes);
        self.collections.entry(gc_id).or_insert_with(|| {
            self.used = self.used.saturating_add(COLLECTION_STORED);
            Stored { collection: Collection { gc_id, ..Collection::default() }, ..Stored::default() }
        })
    }

    /// Takes what is told of collections and their ranges. Beyond the memory, all are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.is_too_much {
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
        if self.used > self.memory {
            self.drop_all();
        }
    }

    fn drop_all(&mut self) {
        self.is_too_much = true;
        self.collections.clear();
    }

    /// What is to be said when the ranges, or what came of them, were too many.
    pub fn refused(&self) -> Option<String> {
        let megabytes = self.memory.div_ceil(1_000_000);
        self.is_too_much.then(|| {
            format!("gc_cohort is not whole: it takes more memory than the {megabytes} MB that --lineage allows")
        })
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
                self.drop_all();
                return Ok(());
            }
        }
        Ok(())
    }
}
