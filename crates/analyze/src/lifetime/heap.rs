//! Follows the objects of a recording from collection to collection.
//!
//! Objects that are followed lie in lists by address. Each collection takes out those that it may change: what it
//! lists, and what lies outside of the generations that it leaves alone. They come sorted, and one pass along the
//! sorted ranges and bounds says what became of each.

use std::collections::HashMap;

use tracequet_facts::fact::NON_GC_HEAP;

use super::by_address::{ByAddress, Row};
use super::life::{Fate, Life};
use super::sample::SampleList;
use crate::collection::spans::{Span, Walk, disjoint, make_disjoint};
use crate::collection::{Collection, Doubt, Effect, Numbers, Place, agreed, as_span, bounds, shadows};
use crate::pieces::Pieces;

/// The objects of all processes of a recording.
#[derive(Debug)]
pub(super) struct Heaps {
    lives: Pieces<Life>,
    processes: HashMap<u64, Process>,
    /// Ranges of the collection, in memory that is used again for the next one.
    ranges: Vec<Span<Place>>,
}

/// The objects of a process.
#[derive(Debug, Default)]
struct Process {
    /// The samples by time, the last first.
    waiting: Vec<u32>,
    /// Samples whose objects are followed, by address.
    followed: ByAddress,
    /// Times at which it is not known which collections came before.
    doubts: Vec<Span<Doubt>>,
    /// The runtime whose collections they are.
    runtime: Option<(u64, u64)>,
    /// Whether it has others.
    several: bool,
    /// The runtime's own numbers of its collections.
    numbers: Numbers,
    /// Memory of the generations at the end of the last collection that did not run in the background.
    after: Vec<Span<Option<u8>>>,
    /// Times as the collections state them, until all are known.
    times: Times,
}

/// Times as collections state them.
#[derive(Debug, Default)]
struct Times {
    /// The latest start so far.
    last_start: Option<i64>,
    doubts: Vec<Span<Doubt>>,
}

/// Times in the order of addresses.
fn key(ns: i64) -> u64 {
    ns.cast_unsigned() ^ (1 << 63)
}

impl Heaps {
    /// For these samples. `headers` are the collections in the order of their numbers, without bounds and ranges.
    pub fn new(samples: &SampleList, headers: &mut dyn Iterator<Item = &Collection>) -> Heaps {
        let mut heaps = Heaps { lives: Pieces::default(), processes: HashMap::new(), ranges: Vec::new() };
        for (sample, index) in samples.iter().zip(0..) {
            heaps.lives.push(Life::of(&sample));
            heaps.processes.entry(sample.process_id).or_default().waiting.push(index);
        }
        for gc in headers {
            if let Some(process) = heaps.processes.get_mut(&gc.runtime.0) {
                process.foresee(gc);
            }
        }
        for process in heaps.processes.values_mut() {
            process
                .waiting
                .sort_by_key(|index| (heaps.lives.get(*index as usize).map(|life| life.last_alive_ns), *index));
            process.waiting.reverse();
            process.doubts = disjoint(std::mem::take(&mut process.times.doubts));
        }
        heaps
    }

    /// Takes the next collection by the order of their numbers, which is that of their starts.
    pub fn collect(&mut self, gc: &Collection) {
        let Some(process) = self.processes.get_mut(&gc.runtime.0) else { return };
        if process.several {
            return;
        }
        process.begin(gc, &mut self.lives);
        self.ranges.clear();
        self.ranges.extend(gc.ranges.iter().map(as_span));
        make_disjoint(&mut self.ranges);
        process.collect(gc, &self.ranges, &mut self.lives);
    }

    /// The life of each sample.
    pub fn finish(mut self) -> Pieces<Life> {
        for process in self.processes.values_mut() {
            process.finish(&mut self.lives);
        }
        self.lives
    }
}

impl Process {
    /// Takes what a collection says of times.
    fn foresee(&mut self, gc: &Collection) {
        let runtime = *self.runtime.get_or_insert(gc.runtime);
        self.several |= runtime != gc.runtime;
        let times = &mut self.times;
        let mut doubt = |from: i64, to: i64, value| {
            if from < to {
                times.doubts.push(Span { start: key(from), end: key(to), value });
            }
        };
        match times.last_start {
            Some(last) if gc.start_ns < last => doubt(gc.start_ns, last.saturating_add(1), Doubt::Clock),
            _ => {}
        }
        // Nothing is allocated while all threads are stopped: up to and without the end.
        if let (Some(end), Some(false)) = (gc.end_ns, gc.is_in_background()) {
            doubt(gc.start_ns.saturating_add(1), end, Doubt::During);
        }
        times.last_start = times.last_start.max(Some(gc.start_ns));
    }

    /// The objects that are there when a collection begins.
    fn begin(&mut self, gc: &Collection, lives: &mut Pieces<Life>) {
        // Objects may have moved meanwhile: those from before, and those that came since.
        let is_missing = self.numbers.is_behind_missing(gc);
        if is_missing {
            for (_, index) in std::mem::take(&mut self.followed).rows() {
                lose(Some(index), Doubt::Missing, gc.gc_id, lives);
            }
        }
        let mut young = Vec::new();
        while let Some(index) = self.waiting.last().copied()
            && let Some(life) = lives.get_mut(index as usize).filter(|life| life.last_alive_ns <= gc.start_ns)
        {
            self.waiting.pop();
            // Until a collection sees an object, it was last alive when it was allocated, and lies there.
            let ts_ns = life.last_alive_ns;
            let place = self.doubts.partition_point(|span| span.end <= key(ts_ns));
            let doubt = self.doubts.get(place).filter(|span| span.start <= key(ts_ns));
            match doubt {
                Some(span) => life.fate = Fate::Unknown(span.value),
                None if is_missing => lose(Some(index), Doubt::Missing, gc.gc_id, lives),
                None => young.push((life.end_object_id, index)),
            }
        }
        // Samples of one address stay in the order of time.
        young.sort_by_key(|(address, _)| *address);
        self.followed.put(&young, |former, here| {
            // An object that was there before is not there any more, and no collection said so.
            let (last, before) = here.split_last()?;
            lose(former, Doubt::GivenAgain, 0, lives);
            before.iter().for_each(|(_, index)| lose(Some(*index), Doubt::GivenAgain, 0, lives));
            Some(last.1)
        });
    }

    /// `ranges` are what it lists, in the order of addresses.
    fn collect(&mut self, gc: &Collection, ranges: &[Span<Place>], lives: &mut Pieces<Life>) {
        let before = agreed(&gc.before);
        let touched = self.touched(gc, &before, ranges);
        let after = agreed(&gc.after);
        let hidden = shadows(&bounds(&gc.before), ranges);
        let (mut listed, mut hidden, mut memory) = (Walk::along(ranges), Walk::along(&hidden), Walk::along(&before));
        let mut next: Vec<Row> = Vec::with_capacity(touched.len());
        for (address, index) in touched {
            let Some(life) = lives.get_mut(index as usize) else { continue };
            let generation = memory.at(address).flatten();
            let effect = gc.effect_in(generation);
            let is_collected = effect != Effect::Leaves;
            life.seen_in(generation);
            if is_collected && life.first_gc_id == 0 {
                life.first_gc_id = gc.gc_id;
            }
            match (listed.at(address), effect) {
                (Some(place), _) => {
                    if is_collected {
                        life.survived_collections = life.survived_collections.saturating_add(1);
                        life.last_alive_ns = life.last_alive_ns.max(gc.start_ns);
                    }
                    match Place::of(place, address) {
                        Some(new) => {
                            life.end_object_id = new;
                            next.push((new, index));
                        }
                        None => lose(Some(index), Doubt::Address, gc.gc_id, lives),
                    }
                }
                (None, Effect::Leaves) => next.push((address, index)),
                (None, Effect::Unknown(doubt)) => lose(Some(index), doubt, gc.gc_id, lives),
                (None, Effect::Collects) if hidden.at(address).is_some() => {
                    lose(Some(index), Doubt::Clamped, gc.gc_id, lives);
                }
                (None, Effect::Collects) => {
                    life.fate = Fate::Dead;
                    life.end_gc_id = gc.gc_id;
                    // While threads run, an object can die until the end.
                    let is_stopped = gc.stops_threads();
                    life.dead_ns = if is_stopped { Some(gc.start_ns) } else { gc.end_ns.or(Some(gc.start_ns)) };
                }
            }
        }
        self.place(next, gc, &after, lives);
        // Facts of a background collection about memory at its end are later than what other collections find until
        // then.
        if gc.stops_threads() {
            self.after = after;
        }
    }

    /// Takes out the objects that a collection may change, in the order of addresses.
    fn touched(&mut self, gc: &Collection, before: &[Span<Option<u8>>], ranges: &[Span<Place>]) -> Vec<Row> {
        let mut touched = Vec::new();
        let mut from = 0;
        // Parts of memory that it leaves alone, and ranges that it lists in them all the same.
        let left = before.iter().filter(|bound| gc.effect_in(bound.value) == Effect::Leaves);
        let mut rest = ranges;
        for left in left {
            self.take(from, left.start, &mut touched);
            from = left.end;
            let skipped = rest.partition_point(|range| range.end <= left.start);
            rest = rest.get(skipped..).unwrap_or_default();
            for range in rest.iter().take_while(|range| range.start < left.end) {
                self.take(range.start.max(left.start), range.end.min(left.end), &mut touched);
            }
        }
        self.take(from, u64::MAX, &mut touched);
        touched
    }

    /// Takes out the objects at `start` and up to `end`, which is left out unless it is the last address.
    fn take(&mut self, start: u64, end: u64, into: &mut Vec<Row>) {
        let last = if end == u64::MAX { Some(end) } else { end.checked_sub(1) };
        if let Some(last) = last.filter(|last| start <= *last) {
            self.followed.take(start, last, into);
        }
    }

    /// Puts objects where they are after a collection.
    fn place(&mut self, mut next: Vec<Row>, gc: &Collection, after: &[Span<Option<u8>>], lives: &mut Pieces<Life>) {
        next.sort_unstable();
        let is_stopped = gc.stops_threads();
        let mut memory = Walk::along(after);
        self.followed.put(&next, |former, here| match (former, here) {
            (None, [(address, index)]) => {
                if is_stopped && let Some(life) = lives.get_mut(*index as usize) {
                    life.seen_in(memory.at(*address).flatten());
                }
                Some(*index)
            }
            // Two objects do not lie at one address: what was recorded contradicts itself.
            _ => {
                let here = here.iter().map(|(_, index)| *index);
                former.into_iter().chain(here).for_each(|index| lose(Some(index), Doubt::GivenAgain, gc.gc_id, lives));
                None
            }
        });
    }

    /// The end of the recording.
    fn finish(&mut self, lives: &mut Pieces<Life>) {
        let mut memory = Walk::along(&self.after);
        for (address, index) in self.followed.rows() {
            let Some(life) = lives.get_mut(index as usize) else { continue };
            let generation = memory.at(address).flatten();
            if life.generation_at_end.is_none() {
                life.seen_in(generation);
            }
            let is_kept = life.generation_at_end == Some(NON_GC_HEAP);
            if life.survived_collections > 0 || is_kept {
                life.fate = Fate::Alive;
            }
        }
        if self.several {
            for index in &self.waiting {
                lose(Some(*index), Doubt::Runtimes, 0, lives);
            }
        }
    }
}

/// Notes that it is not known any more what becomes of an object.
fn lose(index: Option<u32>, doubt: Doubt, gc_id: u32, lives: &mut Pieces<Life>) {
    if let Some(life) = index.and_then(|index| lives.get_mut(index as usize)) {
        life.fate = Fate::Unknown(doubt);
        life.end_gc_id = gc_id;
    }
}
