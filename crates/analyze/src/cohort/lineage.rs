//! Follows memory from collection to collection: when the bytes were allocated that are still alive.
//!
//! The state is a set of pieces of the address space, each with the collection before which its bytes came into being.
//! A collection keeps what it lists where it stays, takes what it lists elsewhere along, and drops the rest of the
//! generations that it collected. Each step takes out the pieces that the collection may change, passes over them as
//! sorted lists, and puts back what is left of them.
//!
//! Collections come in the order of their starts, as objects are followed for lifetimes. A collection in the background
//! decides at its start: what it does not list of generation 2, large and pinned objects is dead from then on, because
//! others that run meanwhile may give that memory out again. What it lists is there at its end at the latest: a part
//! came into being, or was promoted, while it ran. So its cohorts are counted when it ends.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tracequet_facts::fact::NON_GC_HEAP;

use super::pieces::{Pieces, UNKNOWN_BIRTH};
use crate::collection::spans::{Span, Walk, disjoint, join};
use crate::collection::{Collection, Effect, LARGE, NO_GENERATION, Numbers, Place, as_span, bounds, shadows};

/// Pieces of memory that are distinguished, of all runtimes: some 40 bytes each.
pub(super) const MAX_PIECES: usize = 32 << 20;

/// Cohorts that are distinguished at a time. Beyond that the oldest two are merged, named after the later.
const MAX_COHORTS: usize = 256;

/// Bytes of one cohort after one collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CohortRow {
    /// The collection before which they came into being, after the one before it that collected their generation;
    /// [`UNKNOWN_BIRTH`] when that is not known.
    pub born_gc_id: u32,
    /// The collection after which they are counted.
    pub gc_id: u32,
    /// Their generation then; of unknown bytes the last one that is known. `None` when it is not known.
    pub generation: Option<u8>,
    /// Bytes that survived, or whose generation was not collected.
    pub alive_bytes: u64,
    /// Bytes that may be alive: the collection of their generation was not recorded completely.
    pub unknown_bytes: u64,
}

/// The memory of one runtime, from collection to collection.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    /// Bytes that are known to be alive, by the collection before which they came into being.
    alive: Pieces,
    /// Bytes of `alive` by that and by their generation, as the last collection left them.
    sums: BTreeMap<(u32, u8), u64>,
    /// Memory of the generations at the end of the last collection.
    after: Vec<Span<u8>>,
    /// Bytes that may be alive, by that and by their last generation.
    unknown: BTreeMap<(u32, u8), Unknown>,
    /// Whether a collection has listed all large and pinned objects.
    knows_large: bool,
    /// Where objects may be that a collection found alive and did not list: behind ranges whose length is only a lower
    /// bound. One that is listed there later is not new.
    hidden: Vec<Span<()>>,
    /// The collection in the background that has not ended.
    open: Option<Open>,
    numbers: Numbers,
}

/// Bytes that may be alive, and which collections would decide that.
#[derive(Clone, Copy, Debug, Default)]
struct Unknown {
    /// In any generation: one of generation 1, and then one of generation 2.
    anywhere: u64,
    /// One of generation 2. They are dead, in generation 2, large or pinned.
    old: u64,
    /// The one in the background that runs.
    decided: u64,
}

impl Unknown {
    fn sum(self) -> u64 {
        self.anywhere.saturating_add(self.old).saturating_add(self.decided)
    }

    fn add(&mut self, generation: u8, bytes: u64) {
        let place = if is_large(generation) { &mut self.old } else { &mut self.anywhere };
        *place = place.saturating_add(bytes);
    }

    fn add_all(&mut self, other: Unknown) {
        self.anywhere = self.anywhere.saturating_add(other.anywhere);
        self.old = self.old.saturating_add(other.old);
        self.decided = self.decided.saturating_add(other.decided);
    }
}

/// A collection in the background that has not ended.
#[derive(Clone, Debug)]
struct Open {
    gc_id: u32,
    end_ns: Option<i64>,
    /// Spans that the collection lists outside of generations 0 and 1, as they were at its start and at those of others
    /// meanwhile.
    listed: Vec<Span<()>>,
    /// Memory of the generations at its end.
    after: Vec<Span<u8>>,
    /// Whether all large and pinned objects from before it were known, but for those in `hidden`.
    knows_large: bool,
    hidden: Vec<Span<()>>,
}

/// Of large or pinned objects, which no collection takes to another generation.
fn is_large(generation: u8) -> bool {
    (LARGE..NON_GC_HEAP).contains(&generation)
}

impl Lineage {
    /// Nothing is known of any memory yet.
    pub fn new() -> Lineage {
        Lineage::default()
    }

    /// Pieces of memory that are distinguished: some 40 bytes each.
    pub fn pieces(&self) -> usize {
        self.alive.len() + self.open.as_ref().map_or(0, |open| open.listed.len())
    }

    /// The cohort of the byte at an address.
    #[cfg(test)]
    pub(super) fn born(&self, address: u64) -> Option<u32> {
        let mut found = None;
        self.alive.each_in(address, address + 1, |_, _, born| found = Some(born));
        found
    }

    /// Takes the next collection, by the order of their starts, and calls `each` with the cohorts after each that has
    /// ended, the oldest first.
    ///
    /// That costs what the collection lists or collects, not what is alive: pieces that it leaves alone stay as they
    /// are.
    pub fn collect(&mut self, gc: &Collection, each: &mut dyn FnMut(&[CohortRow])) {
        // No other one collects generation 2 while one runs in the background.
        let ends_open =
            |open: &Open| open.end_ns.is_some_and(|end| end <= gc.start_ns) || gc.effect(2) != Effect::Leaves;
        let is_missing = self.numbers.is_behind_missing(gc);
        if self.open.as_ref().is_some_and(ends_open) {
            // The missing one ran before its end, or after it.
            if is_missing {
                self.lose_all();
            }
            self.finish(each);
        }
        if is_missing {
            self.lose_all();
        }
        let before = bounds(&gc.before);
        let ranges = disjoint(gc.ranges.iter().map(as_span).collect());
        let touched = self.touched(gc, &before, &ranges);
        add(&mut self.sums, &touched, &self.after, Sign::Minus);
        self.decide_unknown(gc);
        let survivors = self.survivors(gc, &before, &ranges, &touched);
        let hidden = self.hide(gc, &before, &ranges);
        let mut next = self.rest(gc, &before, &ranges, &touched, &survivors);
        next.extend(survivors);
        let mut next = disjoint(next);
        join(&mut next);
        let after = bounds(&gc.after);
        let is_stopped = gc.stops_threads();
        if is_stopped {
            if let Some(open) = &mut self.open {
                open.listed = outside_young(&open.listed, &before);
            }
            self.rename(after);
        } else {
            let listed = disjoint(ranges.iter().filter_map(destination).collect());
            let mut listed = outside_young(&listed, &before);
            join(&mut listed);
            let Collection { gc_id, end_ns, .. } = *gc;
            self.open = Some(Open { gc_id, end_ns, listed, after, knows_large: self.knows_large, hidden });
        }
        match gc.effect(LARGE) {
            Effect::Collects => self.knows_large = true,
            Effect::Unknown(_) => self.knows_large = false,
            Effect::Leaves => {}
        }
        add(&mut self.sums, &next, &self.after, Sign::Plus);
        self.alive.put(next);
        if is_stopped {
            each(&self.rows(gc.gc_id));
        }
        self.merge_oldest();
    }

    /// Ends the collection that runs in the background, as at the end of the recording.
    pub fn finish(&mut self, each: &mut dyn FnMut(&[CohortRow])) {
        let Some(Open { gc_id, listed, after, knows_large, hidden, .. }) = self.open.take() else { return };
        self.unknown.retain(|_, unknown| {
            unknown.decided = 0;
            unknown.sum() > 0
        });
        let (mut memory, mut unseen) = (Walk::along(&after), Walk::along(&hidden));
        let mut found = Vec::new();
        let mut new = |start, end| {
            memory.cut(start, end, |start, end, generation| {
                // The collection has not decided about memory that is free by now, or of younger generations.
                if !after.is_empty() && generation.is_none_or(|generation| generation < 2) {
                    return;
                }
                unseen.cut(start, end, |start, end, is_hidden| {
                    let is_new = generation.is_some_and(is_large) && knows_large && is_hidden.is_none();
                    let born = if is_new { self.alive.named(gc_id) } else { UNKNOWN_BIRTH };
                    found.push(Span { start, end, value: born });
                });
            });
        };
        for span in &listed {
            let mut from = span.start;
            self.alive.each_in(span.start, span.end, |start, end, _| {
                if from < start {
                    new(from, start);
                }
                from = end;
            });
            if from < span.end {
                new(from, span.end);
            }
        }
        self.rename(after);
        add(&mut self.sums, &found, &self.after, Sign::Plus);
        self.alive.put(found);
        each(&self.rows(gc_id));
        self.merge_oldest();
    }

    /// Renames the generations of memory that was left alone: it may be of another one now.
    fn rename(&mut self, after: Vec<Span<u8>>) {
        for (start, end, was, is) in differences(&self.after, &after) {
            self.alive.each_in(start, end, |start, end, born| {
                move_bytes(&mut self.sums, (born, was), (born, is), end - start);
            });
        }
        self.after = after;
    }

    /// A collection is missing: of no bytes it is known where they are.
    fn lose_all(&mut self) {
        for ((_, generation), unknown) in &mut self.unknown {
            let bytes = unknown.sum();
            *unknown = Unknown::default();
            unknown.add(*generation, bytes);
        }
        for ((born, generation), bytes) in std::mem::take(&mut self.sums) {
            self.unknown.entry((born, generation)).or_default().add(generation, bytes);
        }
        self.alive = self.alive.emptied();
        self.knows_large = false;
        // Younger memory, of which nothing is known, may be that of generation 2 by now.
        if let Some(open) = &mut self.open {
            open.listed.clear();
        }
    }

    /// A complete collection decides the fate of what an earlier one left open: it is dead, or it is listed, and its
    /// birth is not known any more.
    fn decide_unknown(&mut self, gc: &Collection) {
        let lists_all = gc.ranges.iter().all(|range| !range.clamped);
        let collects = |generation| lists_all && gc.effect(generation) == Effect::Collects;
        let is_stopped = gc.stops_threads();
        self.unknown.retain(|(_, generation), unknown| {
            // A span of generation 2 that the collection does not list may be demoted.
            if gc.effect(2) != Effect::Leaves && !collects(2) && !is_large(*generation) {
                unknown.anywhere = unknown.anywhere.saturating_add(std::mem::take(&mut unknown.old));
            }
            if collects(1) {
                unknown.old = unknown.old.saturating_add(std::mem::take(&mut unknown.anywhere));
            }
            if collects(2) {
                let decided = std::mem::take(&mut unknown.old);
                // A span that is listed is counted at the end.
                unknown.decided = if is_stopped { 0 } else { unknown.decided.saturating_add(decided) };
            }
            unknown.sum() > 0
        });
    }

    /// Takes out the pieces that the collection may change: what it lists and where that goes, and what lies outside of
    /// the generations that it leaves alone.
    fn touched(&mut self, gc: &Collection, before: &[Span<u8>], ranges: &[Span<Place>]) -> Vec<Span<u32>> {
        let mut touched = Vec::new();
        let mut from = 0;
        for left in before.iter().filter(|bound| gc.effect(bound.value) == Effect::Leaves) {
            self.alive.take(from, left.start, &mut touched);
            from = left.end;
        }
        self.alive.take(from, u64::MAX, &mut touched);
        for range in ranges {
            self.alive.take(range.start, range.end, &mut touched);
            if range.value.delta != 0 {
                let new_start = range.start.wrapping_add(range.value.delta);
                match new_start.checked_add(range.end - range.start) {
                    Some(new_end) => self.alive.take(new_start, new_end, &mut touched),
                    // Damage: a part of it may lie at the end of the address space.
                    None => self.alive.take(new_start, u64::MAX, &mut touched),
                }
                let new_end = range.end.wrapping_add(range.value.delta);
                if new_end < new_start {
                    self.alive.take(0, new_end, &mut touched);
                }
            }
        }
        if !touched.is_sorted_by_key(|span| span.start) {
            touched.sort_unstable_by_key(|span| span.start);
        }
        touched
    }

    /// The survivors that the collection lists, where they are afterwards. Of one in the background only what was known
    /// before: see [`Self::finish`].
    fn survivors(
        &self,
        gc: &Collection,
        before: &[Span<u8>],
        ranges: &[Span<Place>],
        touched: &[Span<u32>],
    ) -> Vec<Span<u32>> {
        let mut next = Vec::with_capacity(touched.len().max(ranges.len()));
        let (mut known, mut bounds, mut hidden) =
            (Walk::along(touched), Walk::along(before), Walk::along(&self.hidden));
        let is_stopped = gc.stops_threads();
        for range in ranges {
            known.cut(range.start, range.end, |start, end, born| {
                let mut add = |start: u64, end: u64, born: u32| {
                    let new_start = start.wrapping_add(range.value.delta);
                    // A range that wraps around the address space is damage.
                    if let Some(new_end) = new_start.checked_add(end - start) {
                        next.push(Span { start: new_start, end: new_end, value: born });
                    }
                };
                match born {
                    Some(born) => add(start, end, born),
                    None if !is_stopped => {}
                    None => bounds.cut(start, end, |start, end, generation| {
                        let is_new = match generation {
                            Some(0) => true,
                            Some(generation) => is_large(generation) && self.knows_large,
                            None => false,
                        };
                        hidden.cut(start, end, |start, end, is_hidden| {
                            let is_new = is_new && is_hidden.is_none();
                            add(start, end, if is_new { gc.gc_id } else { UNKNOWN_BIRTH });
                        });
                    }),
                }
            });
        }
        disjoint(next)
    }

    /// Finds where objects may be that the collection does not list, though they are alive. Returns where they might be
    /// before it.
    fn hide(&mut self, gc: &Collection, before: &[Span<u8>], ranges: &[Span<Place>]) -> Vec<Span<()>> {
        let known = std::mem::take(&mut self.hidden);
        let shadows = shadows(before, ranges);
        let (mut bounds, mut cast) = (Walk::along(before), shadows.iter());
        let mut hidden = Vec::new();
        for span in &known {
            bounds.cut(span.start, span.end, |start, end, generation| {
                if gc.effect(generation.unwrap_or(NO_GENERATION)) != Effect::Collects {
                    hidden.push(Span { start, end, value: () });
                }
            });
        }
        for range in ranges.iter().filter(|range| range.value.clamped) {
            // Memory behind the known part goes where that goes.
            let Some(shadow) = cast.as_slice().first().filter(|shadow| shadow.start == range.end) else { continue };
            cast.next();
            let start = shadow.start.wrapping_add(range.value.delta);
            hidden.push(Span { start, end: start.saturating_add(shadow.end - shadow.start), value: () });
        }
        hidden = disjoint(hidden);
        join(&mut hidden);
        self.hidden = hidden;
        known
    }

    /// Settles memory that the collection does not list: dead, or not known. Returns what it leaves alone, without what
    /// it has put there: of the memory that is given out again, one that began in the background did not say that it is
    /// dead.
    fn rest(
        &mut self,
        gc: &Collection,
        before: &[Span<u8>],
        ranges: &[Span<Place>],
        touched: &[Span<u32>],
        survivors: &[Span<u32>],
    ) -> Vec<Span<u32>> {
        let mut left = Vec::new();
        let shadows = shadows(before, ranges);
        let (mut listed, mut hidden, mut bounds) = (Walk::along(ranges), Walk::along(&shadows), Walk::along(before));
        let (unknown, mut taken) = (&mut self.unknown, Walk::along(survivors));
        for span in touched {
            listed.cut(span.start, span.end, |start, end, range| {
                if range.is_some() {
                    return;
                }
                hidden.cut(start, end, |start, end, shadow| {
                    bounds.cut(start, end, |start, end, generation| {
                        let generation = generation.unwrap_or(NO_GENERATION);
                        match gc.effect(generation) {
                            Effect::Leaves => taken.cut(start, end, |start, end, other| {
                                if other.is_none() {
                                    left.push(Span { start, end, value: span.value });
                                }
                            }),
                            Effect::Collects if shadow.is_none() => {}
                            Effect::Collects | Effect::Unknown(_) => {
                                unknown.entry((span.value, generation)).or_default().add(generation, end - start);
                            }
                        }
                    });
                });
            });
        }
        left
    }

    fn rows(&self, gc_id: u32) -> Vec<CohortRow> {
        let mut sums: BTreeMap<(u32, u8), (u64, u64)> = BTreeMap::new();
        for (key, bytes) in &self.sums {
            sums.entry(*key).or_default().0 = *bytes;
        }
        for (key, unknown) in &self.unknown {
            sums.entry(*key).or_default().1 = unknown.sum();
        }
        let row = |((born_gc_id, generation), (alive_bytes, unknown_bytes))| CohortRow {
            born_gc_id,
            gc_id,
            generation: (generation != NO_GENERATION).then_some(generation),
            alive_bytes,
            unknown_bytes,
        };
        sums.into_iter().map(row).collect()
    }

    /// Keeps the number of cohorts within its bound.
    fn merge_oldest(&mut self) {
        // All that is alive is in the sums.
        let keys = self.sums.keys().chain(self.unknown.keys());
        let mut cohorts: Vec<u32> = keys.map(|(born, _)| *born).filter(|born| *born != UNKNOWN_BIRTH).collect();
        cohorts.sort_unstable();
        cohorts.dedup();
        let Some(&oldest) = cohorts.len().checked_sub(MAX_COHORTS).and_then(|place| cohorts.get(place)) else { return };
        self.alive.merge_before(oldest);
        for ((born, generation), bytes) in std::mem::take(&mut self.sums) {
            let sum = self.sums.entry((self.alive.named(born), generation)).or_default();
            *sum = sum.saturating_add(bytes);
        }
        for ((born, generation), bytes) in std::mem::take(&mut self.unknown) {
            self.unknown.entry((self.alive.named(born), generation)).or_default().add_all(bytes);
        }
    }
}

/// Where a range goes. One that wraps around the address space is damage.
fn destination(range: &Span<Place>) -> Option<Span<()>> {
    let start = range.start.wrapping_add(range.value.delta);
    let end = start.checked_add(range.end - range.start)?;
    Some(Span { start, end, value: () })
}

/// The parts outside of generations 0 and 1. A collection in the background may list objects there, too: the next one
/// that collects these generations decides about them, and says when they came into being.
fn outside_young(listed: &[Span<()>], memory: &[Span<u8>]) -> Vec<Span<()>> {
    let mut walk = Walk::along(memory);
    let mut found = Vec::with_capacity(listed.len());
    for span in listed {
        walk.cut(span.start, span.end, |start, end, generation| {
            if generation.is_none_or(|generation| generation >= 2) {
                found.push(Span { start, end, value: () });
            }
        });
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

/// Adds the bytes of pieces to the sums of their generations, or takes them away.
fn add(sums: &mut BTreeMap<(u32, u8), u64>, pieces: &[Span<u32>], after: &[Span<u8>], sign: Sign) {
    let mut walk = Walk::along(after);
    for piece in pieces {
        walk.cut(piece.start, piece.end, |start, end, generation| {
            let (key, bytes) = ((piece.value, generation.unwrap_or(NO_GENERATION)), end - start);
            match sign {
                Sign::Plus => *sums.entry(key).or_default() += bytes,
                Sign::Minus => take_bytes(sums, key, bytes),
            }
        });
    }
}

fn take_bytes(sums: &mut BTreeMap<(u32, u8), u64>, key: (u32, u8), bytes: u64) {
    if let Entry::Occupied(mut sum) = sums.entry(key) {
        *sum.get_mut() = sum.get().saturating_sub(bytes);
        if *sum.get() == 0 {
            sum.remove();
        }
    }
}

fn move_bytes(sums: &mut BTreeMap<(u32, u8), u64>, from: (u32, u8), to: (u32, u8), bytes: u64) {
    take_bytes(sums, from, bytes);
    *sums.entry(to).or_default() += bytes;
}

/// Where two lists of bounds say different generations: from, to, the one and the other.
fn differences(one: &[Span<u8>], other: &[Span<u8>]) -> Vec<(u64, u64, u8, u8)> {
    let mut cuts: Vec<u64> = one.iter().chain(other).flat_map(|span| [span.start, span.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut first, mut second) = (Walk::along(one), Walk::along(other));
    let mut found = Vec::new();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        let of = |walk: &mut Walk<'_, u8>| {
            let mut value = None;
            walk.cut(*start, *end, |_, _, generation| value = generation);
            value.unwrap_or(NO_GENERATION)
        };
        let (was, is) = (of(&mut first), of(&mut second));
        if was != is {
            found.push((*start, *end, was, is));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    mod bytewise;

    use super::*;
    use crate::collection::{Bound, Range};

    fn gc(gc_id: u32, generation: u8, before: &[(u8, u64, u64)], ranges: &[(u64, u64, u64)]) -> Collection {
        let bound = |(generation, start, length): &(u8, u64, u64)| Bound {
            generation: *generation,
            start: *start,
            length: *length,
        };
        let range = |(start, new_start, length): &(u64, u64, u64)| Range {
            start: *start,
            new_start: *new_start,
            length: *length,
            clamped: false,
        };
        Collection {
            gc_id,
            generation: Some(generation),
            background: Some(false),
            complete: true,
            before: before.iter().map(bound).collect(),
            after: vec![Bound { generation: 1, start: 0, length: 1 << 40 }],
            ranges: ranges.iter().map(range).collect(),
            ..Collection::default()
        }
    }

    /// The cohorts after a collection that stops all threads.
    fn after(lineage: &mut Lineage, gc: &Collection) -> Vec<CohortRow> {
        let mut found = Vec::new();
        lineage.collect(gc, &mut |rows| found = rows.to_vec());
        found
    }

    fn sums(rows: &[CohortRow]) -> Vec<(u32, u64, u64)> {
        rows.iter().map(|row| (row.born_gc_id, row.alive_bytes, row.unknown_bytes)).collect()
    }

    /// Else a long recording of a heap in many pieces takes time with the square of its length.
    #[test]
    fn a_collection_costs_what_it_may_change() {
        let mut lineage = Lineage::new();
        let old: Vec<(u64, u64, u64)> =
            (0..1000).map(|n| (0x10_0000 + n * 0x100, 0x10_0000 + n * 0x100, 0x10)).collect();
        let heap = [(0, 0x1000, 0x1000), (2, 0x10_0000, 0x10_0000)];
        after(&mut lineage, &gc(1, 2, &heap, &old));
        assert_eq!(lineage.pieces(), 1000);
        // Two survive in the young generation, the second behind the old ones; one old piece is listed all the same.
        let ranges = [(0x1000, 0x1000, 0x10), (0x1800, 0x1F_0000, 0x10), (0x10_0500, 0x10_0500, 0x10)];
        let young = gc(2, 0, &heap, &ranges);
        let spans = disjoint(young.ranges.iter().map(as_span).collect());
        let touched = lineage.clone().touched(&young, &bounds(&young.before), &spans);
        assert_eq!(touched.iter().map(|span| span.start).collect::<Vec<_>>(), [0x10_0500]);
        let rows = after(&mut lineage, &young);
        assert_eq!(sums(&rows), [(UNKNOWN_BIRTH, 1000 * 0x10, 0), (2, 0x20, 0)]);
        assert_eq!(lineage.pieces(), 1002);
        // A collection of all takes all.
        let whole = gc(3, 2, &heap, &old);
        let spans = disjoint(whole.ranges.iter().map(as_span).collect());
        assert_eq!(lineage.clone().touched(&whole, &bounds(&whole.before), &spans).len(), 1002);
    }

    #[test]
    fn what_may_lie_behind_a_clamped_range_is_kept_apart() {
        let mut lineage = Lineage::new();
        let heap = [(0, 0x1000, 0x1000), (1, 0x8000, 0x1000)];
        let first = after(&mut lineage, &gc(1, 1, &heap, &[(0x1000, 0x1000, 0x1000), (0x8000, 0x8000, 0x100)]));
        assert_eq!(sums(&first), [(UNKNOWN_BIRTH, 0x100, 0), (1, 0x1000, 0)]);
        let mut second =
            gc(2, 1, &[(1, 0x1000, 0x1000), (1, 0x8000, 0x1000)], &[(0x1000, 0x1000, 0x200), (0x1800, 0x1800, 0x100)]);
        second.ranges[0].clamped = true;
        // Up to the next range anything may be alive; behind that range, and in another part of the heap, nothing is.
        assert_eq!(sums(&after(&mut lineage, &second)), [(1, 0x300, 0x600)]);
    }

    #[test]
    fn damage_ends_in_pieces_that_do_not_overlap() {
        let mut lineage = Lineage::new();
        let heap = [(0, 0, u64::MAX), (2, 5, 9)];
        let same = [(0x10, 0x90, 0x10), (0x10, 0x20, 0x10), (0x18, u64::MAX - 3, 0x10), (u64::MAX - 4, 1, u64::MAX)];
        for id in 1..20 {
            let rows = after(&mut lineage, &gc(id, 2, &heap, &same));
            let alive: u64 = rows.iter().map(|row| row.alive_bytes).sum();
            assert!(alive <= 0x10 + 0x8 + 4 && lineage.pieces() <= 4, "{rows:?}");
        }
    }

    #[test]
    fn unknown_bytes_of_a_damaged_heap_are_as_many_as_fit() {
        let mut lineage = Lineage::new();
        let mut most = 0;
        for id in 1..700 {
            // All of memory is allocated, and the collection that would decide its fate is incomplete: again for each
            // cohort.
            let rows = if id % 2 == 1 {
                after(&mut lineage, &gc(id, 0, &[(0, 0, u64::MAX)], &[(0, 0, u64::MAX)]))
            } else {
                after(&mut lineage, &Collection { complete: false, ..gc(id, 2, &[(2, 0, u64::MAX)], &[]) })
            };
            assert!(rows.len() <= 2 * MAX_COHORTS, "{}", rows.len());
            most = most.max(rows.iter().map(|row| row.unknown_bytes).max().unwrap_or_default());
        }
        assert_eq!(most, u64::MAX);
    }

    #[test]
    fn the_oldest_cohorts_become_one_when_there_are_too_many() {
        let mut lineage = Lineage::new();
        for id in 1..=600 {
            let start = 0x1000 * u64::from(id);
            let rows = after(&mut lineage, &gc(id, 0, &[(1, 0, start), (0, start, 0x1000)], &[(start, start, 0x10)]));
            assert_eq!(rows.iter().map(|row| row.alive_bytes).sum::<u64>(), 0x10 * u64::from(id));
            assert!(rows.len() <= MAX_COHORTS + 1);
            assert_eq!(rows.last().map(|row| (row.born_gc_id, row.alive_bytes)), Some((id, 0x10)));
        }
    }
}
