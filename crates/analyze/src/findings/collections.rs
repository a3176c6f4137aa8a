//! The collections of a recording, as rules look at them.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

/// Collections and pauses that are kept, the first ones.
const MOST: usize = 1 << 17;

/// A collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gc {
    pub(super) id: u32,
    pub(super) process: u64,
    pub(super) generation: Option<u8>,
    /// Number of the text.
    pub(super) reason: u32,
    pub(super) is_background: bool,
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

/// A pause for a collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    pub(super) process: u64,
    pub(super) start_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) suspend_ns: i64,
    pub(super) gc_id: u32,
}

/// A generation over all heaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generation {
    pub(super) size_before: u64,
    pub(super) free_before: u64,
    pub(super) pinned: u64,
    pub(super) survived: u64,
    /// Objects at the start, without what is free.
    pub(super) objects_before: u64,
}

/// What marking kept alive: from objects of older generations, and in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marked {
    pub(super) from_older: u64,
    pub(super) all: u64,
}

/// Size after a collection, and what was found alive, of each generation.
pub(super) type Stats = [(u64, u64); 5];

/// The collections.
#[derive(Debug, Default)]
pub(super) struct Collections {
    pub(super) all: Vec<Gc>,
    pub(super) pauses: Vec<Pause>,
    stats: HashMap<u32, Stats, RandomState>,
    generations: HashMap<u32, [Generation; 5], RandomState>,
    marked: HashMap<u32, Marked, RandomState>,
}

impl Collections {
    pub(super) const GC: &'static [&'static str] = &[
        "gc_id",
        "process_id",
        "generation",
        "start_ts_ns",
        "reason",
        "kind",
        "memory_load_percent",
        "finalization_promoted_count",
        "trigger_callsite_id",
        "complete",
        "heap_object_count",
        "handle_count",
        "promoted_bytes",
        "allocated_bytes",
    ];
    pub(super) const PAUSE: &'static [&'static str] =
        &["process_id", "start_ts_ns", "duration_ns", "suspend_ns", "gc_id", "kind"];
    pub(super) const STATS: &'static [&'static str] = &["gc_id", "generation", "size_bytes", "promoted_bytes"];
    pub(super) const GENERATION: &'static [&'static str] = &[
        "gc_id",
        "generation",
        "size_before_bytes",
        "free_list_before_bytes",
        "free_object_before_bytes",
        "pinned_survived_bytes",
        "other_survived_bytes",
        "object_before_bytes",
    ];
    pub(super) const MARK: &'static [&'static str] = &["gc_id", "promoted_bytes", "root_kind"];

    pub(super) fn gc(&mut self, number: impl Fn(usize) -> Option<u64>, reason: u32, is_background: bool) {
        if self.all.len() >= MOST {
            return;
        }
        self.all.push(Gc {
            id: number(0).unwrap_or_default() as u32,
            process: number(1).unwrap_or_default(),
            generation: number(2).and_then(|n| u8::try_from(n).ok()),
            reason,
            is_background,
            start_ns: number(3).unwrap_or_default().cast_signed(),
            memory_load: number(6),
            finalized: number(7),
            handles: number(11),
            promoted: number(12),
            allocated: number(13),
            trigger_site: number(8).unwrap_or_default() as u32,
            is_complete: number(9) == Some(1),
            is_dump: number(10).is_some_and(|objects| objects > 0),
        });
    }

    pub(super) fn pause(&mut self, pause: Pause) {
        if self.pauses.len() < MOST {
            self.pauses.push(pause);
        }
    }

    pub(super) fn stats(&mut self, number: impl Fn(usize) -> u64) {
        let id = number(0) as u32;
        if self.stats.len() < MOST || self.stats.contains_key(&id) {
            let all = self.stats.entry(id).or_default();
            if let Some(one) = all.get_mut(number(1) as usize) {
                *one = (number(2), number(3));
            }
        }
    }

    pub(super) fn generation(&mut self, number: impl Fn(usize) -> u64) {
        let id = number(0) as u32;
        if self.generations.len() < MOST || self.generations.contains_key(&id) {
            let all = self.generations.entry(id).or_default();
            if let Some(one) = all.get_mut(number(1) as usize) {
                one.size_before = one.size_before.saturating_add(number(2));
                one.free_before = one.free_before.saturating_add(number(3)).saturating_add(number(4));
                one.pinned = one.pinned.saturating_add(number(5));
                one.survived = one.survived.saturating_add(number(5)).saturating_add(number(6));
                one.objects_before = one.objects_before.saturating_add(number(7));
            }
        }
    }

    pub(super) fn mark(&mut self, id: u32, bytes: u64, is_from_older: bool) {
        if self.marked.len() < MOST || self.marked.contains_key(&id) {
            let marked = self.marked.entry(id).or_default();
            marked.all = marked.all.saturating_add(bytes);
            marked.from_older = marked.from_older.saturating_add(if is_from_older { bytes } else { 0 });
        }
    }

    pub(super) fn processes(&self) -> BTreeSet<u64> {
        self.all.iter().map(|gc| gc.process).chain(self.pauses.iter().map(|pause| pause.process)).collect()
    }

    pub(super) fn finish(&mut self) {
        self.all.sort_by_key(|gc| (gc.start_ns, gc.id));
        self.pauses.sort_by_key(|pause| pause.start_ns);
    }

    /// Collections of a process whose generation is known.
    pub(super) fn of(&self, process: u64) -> impl Iterator<Item = &Gc> {
        self.all.iter().filter(move |gc| gc.process == process && gc.generation.is_some())
    }

    /// Pauses of a process.
    pub(super) fn pauses_of(&self, process: u64) -> impl Iterator<Item = &Pause> {
        self.pauses.iter().filter(move |pause| pause.process == process)
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
    pub(super) fn generations_of(&self, gc: &Gc) -> Option<&[Generation; 5]> {
        self.generations.get(&gc.id)
    }
}
