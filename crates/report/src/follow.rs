//! Ranges that survived, so that the script follows an address through the collections as `survived` does.

use tracequet_analyze::collection::{self, collects, leaves};

use crate::collections::Collection;
use crate::prelude::*;

/// Ranges and bounds that a page has, bytes of them as they stand in it, and collections that are followed through.
const MAX_RANGES: usize = 40_000;
const MAX_BOUNDS: usize = 20_000;
const MAX_PACKED: usize = 400 << 10;
const MAX_COLLECTIONS: usize = 2000;

/// Addresses that the numbers of the script hold exactly.
const MAX_ADDRESS: u64 = 1 << 53;

/// Generations whose fate is distinguished: 0 to 5, and one that is not known.
const GENERATIONS: u8 = 6;

/// The effect of a collection on memory that no range holds: a number for the script.
const COLLECTS: u8 = 0;
const LEAVES: u8 = 1;
const UNKNOWN: u8 = 2;
const NEVER: u8 = 3;

/// A range: collection, whether it is one that moved, starts, length, and whether that is a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    place: u32,
    is_moved: bool,
    start: u64,
    new_start: u64,
    length: u64,
    is_clamped: bool,
}

/// The ranges, of which the largest are kept, and the bounds of generations.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    places: Map<u32, u32>,
    /// Ranges that may be among the largest, at most twice as many as are kept. None of them is smaller than `least`.
    largest: Vec<(u64, Range)>,
    least: Option<(u64, Range)>,
    ranges: u64,
    bytes: u64,
    /// Collection, whether it is its end, generation, start, length.
    bounds: Vec<(u32, bool, u8, u64, u64)>,
    /// Whether nothing was left out but ranges.
    is_possible: bool,
}

impl Follow {
    /// Of these collections, in the order of their numbers.
    pub(crate) fn of(collections: &[Collection]) -> Follow {
        let mut ids: Vec<u32> = collections.iter().map(|collection| collection.gc_id).collect();
        ids.sort_unstable();
        let is_possible = ids.len() <= MAX_COLLECTIONS;
        let places = if is_possible { ids.into_iter().zip(0..).collect() } else { Map::default() };
        Follow { places, is_possible, ..Follow::default() }
    }

    /// Bounds of a generation.
    pub(crate) fn bounds(&mut self, gc_id: u32, is_end: bool, generation: u8, start: u64, length: u64) {
        let Some(place) = self.places.get(&gc_id).filter(|_| self.is_possible && length > 0) else { return };
        if self.bounds.len() >= MAX_BOUNDS || start.saturating_add(length) > MAX_ADDRESS {
            self.is_possible = false;
            return;
        }
        self.bounds.push((*place, is_end, generation, start, length));
    }

    /// Ranges that survived a collection.
    pub(crate) fn ranges(&mut self, gc_id: u32, is_moved: bool, ranges: &[collection::Range]) {
        let Some(place) = self.places.get(&gc_id).copied() else { return };
        ranges.iter().for_each(|range| self.range(place, is_moved, range));
    }

    fn range(&mut self, place: u32, is_moved: bool, range: &collection::Range) {
        let collection::Range { start, new_start, length, clamped: is_clamped } = *range;
        if !self.is_possible || length == 0 {
            return;
        }
        if start.max(new_start).saturating_add(length) > MAX_ADDRESS {
            self.is_possible = false;
            return;
        }
        self.ranges += 1;
        self.bytes = self.bytes.saturating_add(length);
        // Of those that are as long, the first ones: the same dataset gives the same page.
        let range = Range { place, is_moved, start, new_start, length, is_clamped };
        if self.least.is_some_and(|least| (length, range) < least) {
            return;
        }
        self.largest.push((length, range));
        if self.largest.len() >= 2 * MAX_RANGES {
            self.least = cut_to_largest(&mut self.largest);
        }
    }

    /// The data for the script with a sentence about them. `None` where addresses cannot be followed.
    pub(crate) fn packed(&self, collections: &[Collection]) -> Result<Option<(String, String)>> {
        if !self.is_possible || self.largest.is_empty() {
            return Ok(None);
        }
        let mut by_size = self.largest.clone();
        cut_to_largest(&mut by_size);
        by_size.sort_unstable_by(|a, b| b.cmp(a));
        let mut most = by_size.len();
        loop {
            let mut ranges: Vec<Range> = by_size.iter().take(most).map(|(_, range)| *range).collect();
            ranges.sort_unstable();
            let is_whole = ranges.len() as u64 == self.ranges;
            let data = self.data(collections, &ranges, is_whole).packed()?;
            if data.len() > MAX_PACKED && most > 1 {
                // As many as had room, if those that are left pack as well.
                most = (most * MAX_PACKED / data.len() * 15 / 16).min(most - 1);
                continue;
            }
            let words = if is_whole {
                "A click follows an address through all later collections.".to_owned()
            } else {
                let bytes: u64 = ranges.iter().fold(0, |sum, range| sum.saturating_add(range.length));
                let share = share(bytes as f64 / self.bytes.max(1) as f64);
                format!(
                    "A click follows an address as long as it lies in one of the {} largest of {} ranges that survived, which have {share} of their {}.",
                    count(ranges.len() as u64),
                    count(self.ranges),
                    size(self.bytes)
                )
            };
            return Ok(Some((data, words)));
        }
    }

    fn data(&self, collections: &[Collection], ranges: &[Range], is_whole: bool) -> Bytes {
        let mut of: Vec<&Collection> = collections.iter().collect();
        of.sort_unstable_by_key(|collection| collection.gc_id);
        let mut bytes = Bytes::default();
        bytes.u32(of.len() as u32);
        bytes.u32(ranges.len() as u32);
        bytes.u32(self.bounds.len() as u32);
        bytes.u32(is_whole.into());
        of.iter().for_each(|collection| bytes.u32(collection.gc_id));
        of.iter().for_each(|collection| bytes.f64(collection.start_ns as f64));
        of.iter().for_each(|collection| bytes.byte(collection.generation.unwrap_or(7).min(7)));
        of.iter().for_each(|collection| bytes.byte(collection.runtime.min(255) as u8));
        for collection in &of {
            (0..=GENERATIONS).for_each(|generation| bytes.byte(effect(collection, generation)));
        }
        // Each list by itself packs better; starts as steps from the end of the range before.
        ranges.iter().for_each(|range| {
            bytes.u32(range.place << 2 | u32::from(range.is_moved) << 1 | u32::from(range.is_clamped))
        });
        let mut before = 0u64;
        for range in ranges {
            bytes.f64(range.start as f64 - before as f64);
            before = range.start + range.length;
        }
        ranges.iter().for_each(|range| bytes.f64(range.length as f64));
        ranges.iter().for_each(|range| bytes.f64(range.new_start as f64 - range.start as f64));
        let mut bounds = self.bounds.clone();
        bounds.sort_unstable();
        bounds.iter().for_each(|(place, is_end, ..)| bytes.u32(place << 1 | u32::from(*is_end)));
        bounds.iter().for_each(|(_, _, generation, ..)| bytes.byte(*generation));
        bounds.iter().for_each(|(.., start, _)| bytes.f64(*start as f64));
        bounds.iter().for_each(|(.., length)| bytes.f64(*length as f64));
        bytes
    }
}

/// Leaves the largest, and returns the smallest of them when there were more.
fn cut_to_largest(ranges: &mut Vec<(u64, Range)>) -> Option<(u64, Range)> {
    if ranges.len() <= MAX_RANGES {
        return None;
    }
    let (_, least, _) = ranges.select_nth_unstable_by(MAX_RANGES - 1, |a, b| b.cmp(a));
    let least = *least;
    ranges.truncate(MAX_RANGES);
    Some(least)
}

/// The effect of a collection on memory of a generation that no range holds.
fn effect(collection: &Collection, generation: u8) -> u8 {
    let Collection { generation: collected, kind, complete, has_ranges, .. } = collection;
    let generation = if generation == GENERATIONS { u8::MAX } else { generation };
    if generation == 5 {
        NEVER
    } else if leaves(*collected, kind.as_deref(), *complete, *has_ranges, generation) {
        LEAVES
    } else if *has_ranges && collects(*collected, kind.as_deref(), *complete, generation) {
        COLLECTS
    } else {
        UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_ranges_are_kept_whatever_their_order() {
        let collections = [Collection { gc_id: 3, ..Collection::default() }];
        let range = |start, length| [collection::Range { start, new_start: start, length, clamped: false }];
        let mut follow = Follow::of(&collections);
        for n in 0..2 * MAX_RANGES as u64 {
            follow.ranges(3, false, &range(n * 1000, 1 + n % 7));
        }
        follow.ranges(4, false, &range(0, 1 << 30));
        assert_eq!((follow.ranges, follow.largest.len()), (2 * MAX_RANGES as u64, MAX_RANGES));
        assert!(follow.largest.iter().all(|(length, _)| *length >= 4));
        // Sorting all of them says the same.
        let mut follow = Follow::of(&collections);
        let lengths: Vec<u64> =
            (0..9 * MAX_RANGES as u64).map(|n| 1 + n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 5000).collect();
        lengths.iter().zip(0..).for_each(|(length, n)| follow.ranges(3, false, &range(n * 8000, *length)));
        let mut expected: Vec<(u64, u64)> = lengths.into_iter().zip((0..).map(|n| n * 8000)).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(MAX_RANGES);
        let mut kept = follow.largest.clone();
        cut_to_largest(&mut kept);
        kept.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(kept.iter().map(|(length, range)| (*length, range.start)).collect::<Vec<_>>(), expected);
        let mut follow = Follow::of(&collections);
        (0..2 * MAX_RANGES as u64).for_each(|n| follow.ranges(3, false, &range(n * 1000, 1 + n % 7)));
        let (_, words) = follow.packed(&collections).unwrap().unwrap();
        assert!(words.contains("of 80,000 ranges"), "{words}");
        // Numbers that the script cannot hold exactly are not followed.
        follow.ranges(3, true, &range(u64::MAX, 1));
        assert!(follow.packed(&collections).unwrap().is_none());
    }

    #[test]
    fn effects_are_those_of_the_rules() {
        let full = Collection {
            generation: Some(2),
            kind: Some("blocking".into()),
            complete: true,
            has_ranges: true,
            ..Collection::default()
        };
        let of = |collection: &Collection| {
            (0..=GENERATIONS).map(|generation| effect(collection, generation)).collect::<Vec<_>>()
        };
        assert_eq!(of(&full), [0, 0, 0, 0, 0, 3, 2]);
        let young = Collection { generation: Some(0), ..full.clone() };
        assert_eq!(of(&young), [0, 1, 1, 1, 1, 3, 2]);
        let cut = Collection { complete: false, ..full };
        assert_eq!(of(&cut).first(), Some(&UNKNOWN));
    }
}
