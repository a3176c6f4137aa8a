//! Follows memory from collection to collection: when the bytes were allocated that are still alive.
//!
//! The state is a set of pieces of the address space, each with the collection before which its bytes came into being. A
//! collection keeps what it lists where it stays, takes what it lists elsewhere along, and drops the rest of the generations
//! that it collected. Each step takes out the pieces that the collection may change, passes over them as sorted lists, and
//! puts back what is left of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tracequet_facts::fact::NON_GC_HEAP;

use super::pieces::{Pieces, UNKNOWN_BIRTH};
use crate::collection::spans::{Span, Walk, disjoint, join};
use crate::collection::{Collection, Effect, LARGE, NO_GENERATION, Place, as_span, bounds, shadows};

/// Pieces of memory that are distinguished, of all runtimes: some 40 bytes each.
pub(super) const MAX_PIECES: usize = 32 << 20;

/// Cohorts that are distinguished at a time. Beyond that the oldest two are merged, named after the later.
const MAX_COHORTS: usize = 256;

/// Bytes of one cohort after one collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    unknown: BTreeMap<(u32, u8), u64>,
    /// Whether a collection has listed all large and pinned objects.
    knows_large: bool,
}

impl Lineage {
    /// Nothing is known of any memory yet.
    pub fn new() -> Lineage {
        Lineage::default()
    }

    /// Pieces of memory that are distinguished: some 40 bytes each.
    pub fn pieces(&self) -> usize {
        self.alive.len()
    }

    /// Takes the next collection, by the order of their ends, and returns the cohorts after it, the oldest first.
    ///
    /// That costs what the collection lists or collects, not what is alive: pieces that it leaves alone stay as they are.
    pub fn collect(&mut self, gc: &Collection) -> Vec<CohortRow> {
        let before = bounds(&gc.before);
        let ranges = disjoint(gc.ranges.iter().map(as_span).collect());
        let touched = self.touched(gc, &before, &ranges);
        add(&mut self.sums, &touched, &self.after, Sign::Minus);
        let mut next = self.survivors(gc, &before, &ranges, &touched);
        self.rest(gc, &before, &ranges, &touched, &mut next);
        let mut next = disjoint(next);
        join(&mut next);
        match gc.effect(LARGE) {
            Effect::Collects => self.knows_large = true,
            Effect::Unknown(_) => self.knows_large = false,
            Effect::Leaves => {}
        }
        // What was left alone may be of another generation now.
        let after = bounds(&gc.after);
        for (start, end, was, is) in differences(&self.after, &after) {
            self.alive.each_in(start, end, |start, end, born| {
                move_bytes(&mut self.sums, (born, was), (born, is), end - start);
            });
        }
        add(&mut self.sums, &next, &after, Sign::Plus);
        self.alive.put(next);
        self.after = after;
        let rows = self.rows(gc);
        self.merge_oldest();
        rows
    }

    /// Takes out the pieces that the collection may change: what it lists and where that goes, and what lies outside of the
    /// generations that it leaves alone.
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

    /// What the collection lists, where it is afterwards.
    fn survivors(
        &self,
        gc: &Collection,
        before: &[Span<u8>],
        ranges: &[Span<Place>],
        touched: &[Span<u32>],
    ) -> Vec<Span<u32>> {
        let mut next = Vec::with_capacity(touched.len().max(ranges.len()));
        let (mut known, mut bounds) = (Walk::along(touched), Walk::along(before));
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
                    None => bounds.cut(start, end, |start, end, generation| {
                        let is_new = match generation {
                            Some(0) => true,
                            Some(LARGE..NON_GC_HEAP) => self.knows_large,
                            _ => false,
                        };
                        add(start, end, if is_new { gc.gc_id } else { UNKNOWN_BIRTH });
                    }),
                }
            });
        }
        next
    }

    /// What it does not list: dead, left alone, or not known.
    fn rest(
        &mut self,
        gc: &Collection,
        before: &[Span<u8>],
        ranges: &[Span<Place>],
        touched: &[Span<u32>],
        next: &mut Vec<Span<u32>>,
    ) {
        // A complete collection decides the fate of what an earlier one left open: it is dead, or it is listed, and its birth is
        // not known any more.
        let is_whole = [0, 2].iter().all(|generation| gc.effect(*generation) == Effect::Collects);
        self.unknown.retain(|(_, generation), _| match *generation {
            NO_GENERATION => !is_whole,
            generation => gc.effect(generation) != Effect::Collects,
        });
        let shadows = shadows(before, ranges);
        let (mut listed, mut hidden, mut bounds) = (Walk::along(ranges), Walk::along(&shadows), Walk::along(before));
        let unknown = &mut self.unknown;
        for span in touched {
            listed.cut(span.start, span.end, |start, end, range| {
                if range.is_some() {
                    return;
                }
                hidden.cut(start, end, |start, end, shadow| {
                    bounds.cut(start, end, |start, end, generation| {
                        let generation = generation.unwrap_or(NO_GENERATION);
                        match gc.effect(generation) {
                            Effect::Leaves => next.push(Span { start, end, value: span.value }),
                            Effect::Collects if shadow.is_none() => {}
                            Effect::Collects | Effect::Unknown(_) => {
                                let bytes = unknown.entry((span.value, generation)).or_default();
                                *bytes = bytes.saturating_add(end - start);
                            }
                        }
                    });
                });
            });
        }
    }

    fn rows(&self, gc: &Collection) -> Vec<CohortRow> {
        let mut sums: BTreeMap<(u32, u8), (u64, u64)> = BTreeMap::new();
        for (key, bytes) in &self.sums {
            sums.entry(*key).or_default().0 = *bytes;
        }
        for (key, bytes) in &self.unknown {
            sums.entry(*key).or_default().1 = *bytes;
        }
        let row = |((born_gc_id, generation), (alive_bytes, unknown_bytes))| CohortRow {
            born_gc_id,
            gc_id: gc.gc_id,
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
        for sums in [&mut self.sums, &mut self.unknown] {
            for ((born, generation), bytes) in std::mem::take(sums) {
                let sum = sums.entry((self.alive.named(born), generation)).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
    }
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
mod bytewise;

#[cfg(test)]
mod tests {
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
        lineage.collect(&gc(1, 2, &heap, &old));
        assert_eq!(lineage.pieces(), 1000);
        // Two survive in the young generation, the second behind the old ones; one old piece is listed all the same.
        let ranges = [(0x1000, 0x1000, 0x10), (0x1800, 0x1F_0000, 0x10), (0x10_0500, 0x10_0500, 0x10)];
        let young = gc(2, 0, &heap, &ranges);
        let spans = disjoint(young.ranges.iter().map(as_span).collect());
        let touched = lineage.clone().touched(&young, &bounds(&young.before), &spans);
        assert_eq!(touched.iter().map(|span| span.start).collect::<Vec<_>>(), [0x10_0500]);
        let rows = lineage.collect(&young);
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
        let first = lineage.collect(&gc(1, 1, &heap, &[(0x1000, 0x1000, 0x1000), (0x8000, 0x8000, 0x100)]));
        assert_eq!(sums(&first), [(UNKNOWN_BIRTH, 0x100, 0), (1, 0x1000, 0)]);
        let mut second =
            gc(2, 1, &[(1, 0x1000, 0x1000), (1, 0x8000, 0x1000)], &[(0x1000, 0x1000, 0x200), (0x1800, 0x1800, 0x100)]);
        second.ranges[0].clamped = true;
        // Up to the next range anything may be alive; behind that range, and in another part of the heap, nothing is.
        assert_eq!(sums(&lineage.collect(&second)), [(1, 0x300, 0x600)]);
    }

    #[test]
    fn damage_ends_in_pieces_that_do_not_overlap() {
        let mut lineage = Lineage::new();
        let heap = [(0, 0, u64::MAX), (2, 5, 9)];
        let same = [(0x10, 0x90, 0x10), (0x10, 0x20, 0x10), (0x18, u64::MAX - 3, 0x10), (u64::MAX - 4, 1, u64::MAX)];
        for id in 1..20 {
            let rows = lineage.collect(&gc(id, 2, &heap, &same));
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
                lineage.collect(&gc(id, 0, &[(0, 0, u64::MAX)], &[(0, 0, u64::MAX)]))
            } else {
                lineage.collect(&Collection { complete: false, ..gc(id, 2, &[(2, 0, u64::MAX)], &[]) })
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
            let rows = lineage.collect(&gc(id, 0, &[(1, 0, start), (0, start, 0x1000)], &[(start, start, 0x10)]));
            assert_eq!(rows.iter().map(|row| row.alive_bytes).sum::<u64>(), 0x10 * u64::from(id));
            assert!(rows.len() <= MAX_COHORTS + 1);
            assert_eq!(rows.last().map(|row| (row.born_gc_id, row.alive_bytes)), Some((id, 0x10)));
        }
    }
}
