//! The collections of a recording, as rules look at them.

use std::collections::BTreeSet;

use tracequet_trace::map::Map;

use crate::subjects::collections::Collection;
use crate::subjects::heap::{Bytes, GENERATIONS, HeapGeneration, Mark, Size};
use crate::subjects::pauses::{Pause, Pauses, Stop};

/// Collections and pauses that are kept, the first ones.
const MOST: usize = 1 << 17;

/// A collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gc {
    pub(super) id: u32,
    /// The runtime's number; 0 where it is not known.
    pub(super) number: u32,
    pub(super) process: u64,
    pub(super) generation: Option<u8>,
    /// Number of the text.
    pub(super) reason: u32,
    pub(super) is_induced: bool,
    pub(super) is_background: bool,
    /// Whether the collector may work in the background; `None` where the pause mode was not recorded.
    pub(super) may_be_background: Option<bool>,
    pub(super) start_ns: i64,
    pub(super) memory_load: Option<u64>,
    pub(super) finalized: Option<u64>,
    pub(super) handles: Option<u64>,
    pub(super) promoted: Option<u64>,
    pub(super) allocated: Option<u64>,
    pub(super) trigger_site: u32,
    pub(super) is_complete: bool,
    /// It was made to list the heap.
    pub(super) is_dump: bool,
}

/// What marking kept alive: from objects of older generations, and in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marked {
    pub(super) from_older: u64,
    pub(super) all: u64,
}

/// Size after a collection, and what was found alive, of each generation.
pub(super) type Stats = [(u64, u64); GENERATIONS];

/// The collections.
#[derive(Debug, Default)]
pub(super) struct Collections {
    pub(super) all: Vec<Gc>,
    pub(super) pauses: Pauses,
    stats: Map<u32, Stats>,
    generations: Map<u32, [Bytes; GENERATIONS]>,
    marked: Map<u32, Marked>,
}

impl Collections {
    /// Adds a collection, the reason of which has a number.
    pub(super) fn gc(&mut self, row: &Collection<'_>, reason: u32) {
        if self.all.len() >= MOST {
            return;
        }
        self.all.push(Gc {
            id: row.gc_id,
            number: row.gc_number,
            process: row.process_id,
            generation: row.generation,
            reason,
            is_induced: row.is_induced(),
            is_background: row.is_background(),
            may_be_background: row.pause_mode.map(|mode| mode != "Batch"),
            start_ns: row.start_ts_ns,
            memory_load: row.memory_load_percent.map(u64::from),
            finalized: row.finalization_promoted_count,
            handles: row.handle_count.map(u64::from),
            promoted: row.promoted_bytes,
            allocated: row.allocated_bytes,
            trigger_site: row.trigger_callsite_id,
            is_complete: row.complete,
            is_dump: row.is_dump(),
        });
    }

    pub(super) fn stop(&mut self, row: &Stop<'_>) {
        if self.pauses.count() < MOST {
            self.pauses.add(row);
        }
    }

    pub(super) fn sizes(&mut self, row: &Size<'_>) {
        if self.stats.len() < MOST || self.stats.contains_key(&row.gc_id) {
            let all = self.stats.entry(row.gc_id).or_default();
            if let Some(one) = all.get_mut(usize::from(row.generation)) {
                *one = (row.size_bytes, row.promoted_bytes);
            }
        }
    }

    pub(super) fn generation(&mut self, row: &HeapGeneration<'_>) {
        if self.generations.len() < MOST || self.generations.contains_key(&row.gc_id) {
            let all = self.generations.entry(row.gc_id).or_default();
            if let Some(one) = all.get_mut(usize::from(row.generation)) {
                one.add(row);
            }
        }
    }

    pub(super) fn mark(&mut self, row: &Mark<'_>) {
        if self.marked.len() < MOST || self.marked.contains_key(&row.gc_id) {
            let marked = self.marked.entry(row.gc_id).or_default();
            marked.all = marked.all.saturating_add(row.promoted_bytes);
            if row.root_kind == "older_generation" {
                marked.from_older = marked.from_older.saturating_add(row.promoted_bytes);
            }
        }
    }

    pub(super) fn processes(&self) -> BTreeSet<u64> {
        self.all.iter().map(|gc| gc.process).chain(self.pauses.processes()).collect()
    }

    pub(super) fn finish(&mut self) {
        self.all.sort_by_key(|gc| (gc.start_ns, gc.id));
        self.pauses.finish();
    }

    /// Collections of a process whose generation is known.
    pub(super) fn of(&self, process: u64) -> impl Iterator<Item = &Gc> {
        self.all.iter().filter(move |gc| gc.process == process && gc.generation.is_some())
    }

    /// Pauses of a process.
    pub(super) fn pauses_of(&self, process: u64) -> impl Iterator<Item = &Pause> {
        self.pauses.of(process).iter()
    }

    /// Sizes after a collection.
    pub(super) fn stats_of(&self, gc: &Gc) -> Option<&Stats> {
        self.stats.get(&gc.id)
    }

    /// What the marking of a collection kept alive.
    pub(super) fn marked_by(&self, gc: &Gc) -> Option<Marked> {
        self.marked.get(&gc.id).copied()
    }

    /// The generations of a collection.
    pub(super) fn generations_of(&self, gc: &Gc) -> Option<&[Bytes; GENERATIONS]> {
        self.generations.get(&gc.id)
    }
}
