//! The collections of a recording, as rules look at them.

use std::collections::BTreeSet;

use tracequet_trace::map::Map;

use crate::subjects::collections::Collection;
use crate::subjects::heap::{Bytes, HeapGeneration, Mark, Size};
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

/// Bytes of generation 2, of large and of pinned objects after a collection: their size, and what was found alive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OldBytes([(u64, u64); 3]);

impl OldBytes {
    /// Bytes that were found alive.
    pub(super) fn alive(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, alive)| sum.saturating_add(*alive))
    }

    /// The size without that of pinned objects.
    pub(super) fn size(&self) -> u64 {
        let [(old, _), (large, _), _] = self.0;
        old.saturating_add(large)
    }
}

/// The sums over the generations of a collection that rules use. All that is recorded of a collection takes five times the room, and there may be
/// hundreds of thousands of collections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generations {
    /// Objects of generations 0 and 1 that survived, and the pinned ones of them.
    pub(super) young_survived: u64,
    pub(super) young_pinned: u64,
    /// Objects of generation 1 at the start, and those that survived.
    pub(super) middle_objects: u64,
    pub(super) middle_survived: u64,
    /// Generation 2 at the start, what is free in it, and pinned objects of it that survived.
    pub(super) old_before: u64,
    pub(super) old_free: u64,
    pub(super) old_pinned: u64,
    /// Large objects at the start, and what is free between them.
    pub(super) large_before: u64,
    pub(super) large_free: u64,
}

impl Generations {
    /// Adds a generation of a heap.
    fn add(&mut self, row: &HeapGeneration<'_>) {
        let mut one = Bytes::default();
        one.add(row);
        let add = |sum: &mut u64, bytes| *sum = sum.saturating_add(bytes);
        match row.generation {
            generation @ (0 | 1) => {
                add(&mut self.young_survived, one.survived);
                add(&mut self.young_pinned, one.pinned);
                if generation == 1 {
                    add(&mut self.middle_objects, one.objects_before);
                    add(&mut self.middle_survived, one.survived);
                }
            }
            2 => {
                add(&mut self.old_before, one.before);
                add(&mut self.old_free, one.free_before);
                add(&mut self.old_pinned, one.pinned);
            }
            3 => {
                add(&mut self.large_before, one.before);
                add(&mut self.large_free, one.free_before);
            }
            _ => {}
        }
    }
}

/// The collections.
#[derive(Debug, Default)]
pub(super) struct Collections {
    pub(super) all: Vec<Gc>,
    pub(super) pauses: Pauses,
    old_bytes: Map<u32, OldBytes>,
    generations: Map<u32, Generations>,
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
        if let Some(of_gc) = entry(&mut self.old_bytes, row.gc_id)
            && let Some(one) = usize::from(row.generation).checked_sub(2).and_then(|place| of_gc.0.get_mut(place))
        {
            *one = (row.size_bytes, row.promoted_bytes);
        }
    }

    pub(super) fn generation(&mut self, row: &HeapGeneration<'_>) {
        if let Some(of_gc) = entry(&mut self.generations, row.gc_id) {
            of_gc.add(row);
        }
    }

    pub(super) fn mark(&mut self, row: &Mark<'_>) {
        if let Some(marked) = entry(&mut self.marked, row.gc_id) {
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

    /// The old generations after a collection.
    pub(super) fn old_bytes_of(&self, gc: &Gc) -> Option<&OldBytes> {
        self.old_bytes.get(&gc.id)
    }

    /// What the marking of a collection kept alive.
    pub(super) fn marked_by(&self, gc: &Gc) -> Option<Marked> {
        self.marked.get(&gc.id).copied()
    }

    /// The generations of a collection.
    pub(super) fn generations_of(&self, gc: &Gc) -> Option<&Generations> {
        self.generations.get(&gc.id)
    }
}

/// The entry of a collection; `None` for a new one when there are too many.
fn entry<V: Default>(of_gcs: &mut Map<u32, V>, gc_id: u32) -> Option<&mut V> {
    (of_gcs.len() < MOST || of_gcs.contains_key(&gc_id)).then(|| of_gcs.entry(gc_id).or_default())
}
