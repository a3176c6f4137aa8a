//! Where memory lies and survives: collections by parts of the address space, a byte for each.

use tracequet_analyze::collection::collects;
use tracequet_trace::map::Set;

use crate::collections::{Collection, Collections};
use crate::follow::Follow;
use crate::prelude::*;
use crate::ranges::{Bounds, Moved, Stayed, is_clamped};
use crate::survival::Survival;

/// Collections and parts of the address space of a map.
const MAX_COLUMNS: usize = 400;
const MAX_BINS: usize = 560;

/// Runs of parts that are distinguished while it is not known yet how fine the map can be. A part has 256 bytes at
/// least.
const MAX_TOUCHED: usize = 8 << 10;
const MIN_SHIFT: u32 = 8;

/// What is in a part of the address space after a collection: the low three bits of a byte. The next three are the
/// generation, the last two how much of the part it takes, in quarters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// No memory of the heap.
    Outside = 0,
    /// Survived where it was.
    InPlace = 1,
    /// Survived, and was moved here.
    MovedHere = 2,
    /// Survived, and was moved away; here is nothing any more.
    MovedAway = 3,
    /// Did not survive.
    Freed = 4,
    /// Of a generation that was not collected, or not known to be: alive or not.
    NotCollected = 5,
    /// In use after the collection, and not before; nothing was moved here.
    New = 6,
    /// Survived where it was, in a collection that moved other memory of its generation: it is pinned, or had nowhere
    /// to go.
    Stayed = 7,
}

/// Generation of which nothing is known.
const NO_GENERATION: u8 = 7;

/// Bytes in a part of the address space, for one collection.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    in_place: u64,
    /// In place, while other memory was moved.
    stayed: u64,
    moved_here: u64,
    moved_away: u64,
    /// In use at the start, of generations that were collected, and of which all that survived is listed.
    collected: u64,
    /// In use at the start, of the others.
    kept: u64,
    /// In use at the end.
    after: u64,
    /// Generations by which most bytes are known: at the end, at the start.
    generation: Option<(u8, u64)>,
    generation_before: Option<(u8, u64)>,
}

impl Part {
    fn byte(&self, bin_bytes: u64) -> u8 {
        let alive = self.in_place.saturating_add(self.stayed).saturating_add(self.moved_away);
        let gone = self.collected.saturating_sub(alive);
        // Where something lies now, it does not matter what was moved away from there.
        let left = self.moved_away.saturating_sub(self.moved_here);
        let new = self.after.saturating_sub(self.collected.saturating_add(self.kept)).saturating_sub(self.moved_here);
        let states = [
            (State::InPlace, self.in_place),
            (State::Stayed, self.stayed),
            (State::MovedHere, self.moved_here),
            (State::NotCollected, self.kept),
            (State::Freed, gone),
            (State::MovedAway, left),
            (State::New, new),
        ];
        let mut most = (State::Outside, 0);
        for (state, bytes) in states {
            if bytes > most.1 {
                most = (state, bytes);
            }
        }
        if most.0 == State::Outside {
            return 0;
        }
        let was = matches!(most.0, State::Freed | State::MovedAway);
        let known =
            if was { self.generation_before.or(self.generation) } else { self.generation.or(self.generation_before) };
        let generation = known.map_or(NO_GENERATION, |(generation, _)| generation.min(NO_GENERATION));
        let quarter = (u128::from(most.1) * 4 / u128::from(bin_bytes.max(1))).min(3) as u8;
        most.0 as u8 | generation << 3 | quarter << 6
    }
}

/// The fates of the bytes of a collection.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    in_place: u64,
    moved: u64,
    collected: Option<u64>,
    kept: Option<u64>,
}

/// The map of the heap, and the table behind it.
pub(crate) struct HeapMap {
    columns: Vec<Collection>,
    /// Collections with ranges, of which `columns` are some.
    of: usize,
    shift: u32,
    bins: Vec<u64>,
    parts: Vec<Part>,
    /// Where the last ranges began.
    near: [usize; 2],
    fates: Vec<Fate>,
    follow: Follow,
    /// Survival by generation, of the same ranges.
    pub survival: Survival,
}

impl HeapMap {
    /// Reads the ranges. `None` when the recording has none that survived.
    pub(crate) fn read(recording: &Recording<'_>, collections: &Collections) -> Result<Option<HeapMap>> {
        let with_ranges: Vec<&Collection> = collections.all.iter().filter(|collection| collection.has_ranges).collect();
        if with_ranges.is_empty() {
            return Ok(None);
        }
        let of = with_ranges.len();
        // Evenly over the time of the recording.
        let step = of.div_ceil(MAX_COLUMNS).max(1);
        let columns: Vec<Collection> = with_ranges.into_iter().step_by(step).cloned().collect();
        let places: Places = columns.iter().map(|collection| collection.gc_id).zip(0..).collect();
        let mut touched = Touched::default();
        let is_shown = |gc_id: u32| places.contains_key(&gc_id);
        recording.each_recorded::<Bounds<'_>>(|row| {
            if is_shown(row.gc_id) {
                touched.add(row.range_start, row.range_length);
            }
        })?;
        if touched.runs.is_empty() {
            recording.each_recorded::<Stayed<'_>>(|row| {
                if is_shown(row.gc_id) {
                    touched.add(row.range_start, row.range_length);
                }
            })?;
            recording.each_recorded::<Moved<'_>>(|row| {
                if is_shown(row.gc_id) {
                    touched.add(row.new_range_start, row.range_length);
                }
            })?;
        }
        let bins = touched.bins(MAX_BINS);
        let parts = vec![Part::default(); bins.len().saturating_mul(columns.len())];
        let fates = vec![Fate::default(); columns.len()];
        let (follow, survival) = (Follow::of(&collections.all), Survival::default());
        let mut map = HeapMap { columns, of, shift: touched.shift, bins, parts, near: [0; 2], fates, follow, survival };
        let known = collections.all.iter().map(|collection| collection.gc_id).collect();
        map.fill(recording, &places, &known)?;
        Ok(Some(map))
    }

    fn fill(&mut self, recording: &Recording<'_>, places: &Places, known: &Set<u32>) -> Result<()> {
        recording.each_recorded::<Bounds<'_>>(|row| {
            if !known.contains(&row.gc_id) {
                return;
            }
            let (start, length, is_start) = (row.range_start, row.range_length, row.phase == "start");
            let generation = row.generation.min(NO_GENERATION);
            self.follow.bounds(row.gc_id, !is_start, generation, start, length);
            if is_start {
                self.survival.before(row.gc_id, Some(row.generation), length);
            }
            let Some(place) = places.get(&row.gc_id).copied() else { return };
            let is_collected = self.columns.get(place).is_some_and(|collection| {
                let Collection { generation: collected, kind, complete, .. } = collection;
                collects(*collected, kind.as_deref(), *complete, generation)
            });
            if is_start && let Some(fate) = self.fates.get_mut(place) {
                let sum = if is_collected { &mut fate.collected } else { &mut fate.kept };
                *sum = Some(sum.unwrap_or_default().saturating_add(length));
                // Both are known once there are bounds.
                fate.collected.get_or_insert(0);
                fate.kept.get_or_insert(0);
            }
            self.cover(place, start, length, |part, bytes| {
                let known = if is_start { &mut part.generation_before } else { &mut part.generation };
                if known.is_none_or(|(_, most)| bytes > most) {
                    *known = Some((generation, bytes));
                }
                let sum = match (is_start, is_collected) {
                    (false, _) => &mut part.after,
                    (true, true) => &mut part.collected,
                    (true, false) => &mut part.kept,
                };
                *sum = sum.saturating_add(bytes);
            });
        })?;
        // Ranges of a collection follow each other: the collection is looked up when another one begins.
        let mut last = None;
        let mut collection_of = |gc_id: u32| match last {
            Some((of, found)) if of == gc_id => found,
            _ => {
                let found = known.contains(&gc_id).then(|| places.get(&gc_id).copied());
                last = Some((gc_id, found));
                found
            }
        };
        recording.each_recorded::<Stayed<'_>>(|row| {
            let Some(place) = collection_of(row.gc_id) else { return };
            let (start, length, after) = (row.range_start, row.range_length, row.generation_after);
            self.follow.range(row.gc_id, false, [start, start, length], is_clamped(row.length_kind));
            self.survival.survived(row.gc_id, row.generation_before, after, length);
            let Some(place) = place else { return };
            if let Some(fate) = self.fates.get_mut(place) {
                fate.in_place = fate.in_place.saturating_add(length);
            }
            self.cover(place, start, length, |part, bytes| {
                part.in_place = part.in_place.saturating_add(bytes);
                part.note_generation(after, bytes);
            });
        })?;
        recording.each_recorded::<Moved<'_>>(|row| {
            let Some(place) = collection_of(row.gc_id) else { return };
            let (old, new) = (row.old_range_start, row.new_range_start);
            let (length, after) = (row.range_length, row.generation_after);
            self.follow.range(row.gc_id, true, [old, new, length], is_clamped(row.length_kind));
            self.survival.survived(row.gc_id, row.generation_before, after, length);
            let Some(place) = place else { return };
            if let Some(fate) = self.fates.get_mut(place) {
                fate.moved = fate.moved.saturating_add(length);
            }
            if old == new {
                self.cover(place, new, length, |part, bytes| {
                    part.stayed = part.stayed.saturating_add(bytes);
                    part.note_generation(after, bytes);
                });
                return;
            }
            self.cover(place, old, length, |part, bytes| part.moved_away = part.moved_away.saturating_add(bytes));
            self.cover(place, new, length, |part, bytes| {
                part.moved_here = part.moved_here.saturating_add(bytes);
                part.note_generation(after, bytes);
            });
        })?;
        self.survival.end_run();
        Ok(())
    }

    /// Calls `take` with each part of the map that a range touches, and how many of its bytes lie there.
    fn cover(&mut self, column: usize, start: u64, length: u64, mut take: impl FnMut(&mut Part, u64)) {
        let Some(last) = length.checked_sub(1).map(|rest| start.saturating_add(rest)) else { return };
        let first = start >> self.shift;
        // Ranges are in order: most begin where the one before did, or went where that went.
        let first_bin = match self.near.into_iter().find(|place| self.bins.get(*place) == Some(&first)) {
            Some(near) => near,
            None => {
                let found = self.bins.partition_point(|bin| *bin < first);
                self.near = [found, self.near[0]];
                found
            }
        };
        let row = column.saturating_mul(self.bins.len());
        for (place, bin) in self.bins.iter().enumerate().skip(first_bin) {
            if *bin > last >> self.shift {
                break;
            }
            let low = bin << self.shift;
            let high = low | ((1u64 << self.shift) - 1);
            let bytes = last.min(high).saturating_sub(start.max(low)).saturating_add(1);
            if let Some(part) = self.parts.get_mut(row + place) {
                take(part, bytes);
            }
        }
    }

    /// Data for the script.
    pub(crate) fn packed(&self) -> Result<String> {
        let mut bytes = Bytes::default();
        bytes.u32(self.columns.len() as u32);
        bytes.u32(self.bins.len() as u32);
        bytes.u64(1 << self.shift);
        self.bins.iter().for_each(|bin| bytes.u64(bin << self.shift));
        self.columns.iter().for_each(|collection| bytes.f64(collection.start_ns as f64));
        self.columns.iter().for_each(|collection| bytes.u32(collection.gc_id));
        self.columns.iter().for_each(|collection| bytes.byte(collection.generation.unwrap_or(NO_GENERATION)));
        self.parts.iter().for_each(|part| bytes.byte(part.byte(1 << self.shift)));
        bytes.packed()
    }

    /// Data by which addresses are followed, and what to say of them.
    pub(crate) fn followed(&self, collections: &Collections) -> Result<Option<(String, String)>> {
        self.follow.packed(&collections.all)
    }

    /// The drawing in words.
    pub(crate) fn note(&self) -> String {
        let columns = match self.columns.len() {
            n if n < self.of => {
                format!("{} of {} collections with ranges, evenly over time", count(n as u64), count(self.of as u64))
            }
            n => tracequet_analyze::present::units::counted(
                n as u64,
                "collection with ranges",
                "collections with ranges",
            ),
        };
        let folded = self.bins.windows(2).filter(|pair| matches!(pair, [a, b] if a.wrapping_add(1) != *b)).count();
        let part = size(1 << self.shift);
        format!(
            "{columns}, left to right. {} parts of {part} of the address space, top to bottom; {} folded.",
            count(self.bins.len() as u64),
            tracequet_analyze::present::units::counted(folded as u64, "gap between them is", "gaps between them are"),
        )
    }

    /// The table behind the map.
    pub(crate) fn table(&self) -> String {
        let rows = table!("heap-map-table", self.columns.iter().zip(&self.fates), |(collection, fate)| at collection.start_ns, {
            let survived = fate.in_place.saturating_add(fate.moved);
        } {
            numbers("gc_id", "Number of the collection within the recording") => Cell::id(u64::from(collection.gc_id)),
            numbers("gen", "Highest generation that was collected") => Cell::id(collection.generation.map(u64::from)),
            numbers("survived in place", "Sum of the lengths of the surviving ranges") => Cell::size(fate.in_place),
            numbers("moved", "Sum of the lengths of the moved ranges") => Cell::size(fate.moved),
            numbers("freed", "Bytes in use at the start of the generations that were collected, less those that survived") =>
                Cell::size(fate.collected.map(|bytes| bytes.saturating_sub(survived))),
            numbers("not collected", "Bytes in use at the start of the other generations") => Cell::size(fate.kept),
            numbers("freed %", "Freed bytes as a share of the bytes in use in these generations") =>
                Cell::share(fate.collected.filter(|bytes| *bytes > 0).map(|bytes| bytes.saturating_sub(survived) as f64 / bytes as f64)),
        });
        rows.html("What became of the bytes of each collection")
    }
}

impl Part {
    fn note_generation(&mut self, generation: Option<u8>, bytes: u64) {
        if let (None, Some(generation)) = (self.generation, generation) {
            self.generation = Some((generation.min(NO_GENERATION), bytes));
        }
    }
}

/// Columns of collections by their numbers.
type Places = Map<u32, usize>;

/// Parts of the address space that ranges touch. They become coarser when there are too many.
#[derive(Debug)]
struct Touched {
    shift: u32,
    /// The first and the last part of ranges, joined when there are twice as many as there may be.
    runs: Vec<(u64, u64)>,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched { shift: MIN_SHIFT, runs: Vec::new() }
    }
}

impl Touched {
    fn add(&mut self, start: u64, length: u64) {
        let Some(last) = length.checked_sub(1).map(|rest| start.saturating_add(rest)) else { return };
        self.runs.push((start >> self.shift, last >> self.shift));
        if self.runs.len() >= 2 * MAX_TOUCHED {
            self.join();
            while self.runs.len() > MAX_TOUCHED {
                self.coarser();
            }
        }
    }

    /// Runs that overlap or follow each other become one.
    fn join(&mut self) {
        self.runs.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in self.runs.drain(..) {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        self.runs = joined;
    }

    fn coarser(&mut self) {
        self.shift += 1;
        self.runs.iter_mut().for_each(|(first, last)| (*first, *last) = (*first >> 1, *last >> 1));
        self.join();
    }

    /// The parts in order, made coarser until there are at most `most`.
    fn bins(&mut self, most: usize) -> Vec<u64> {
        self.join();
        let count = |runs: &[(u64, u64)]| {
            runs.iter().fold(0u64, |sum, (first, last)| sum.saturating_add(last - first).saturating_add(1))
        };
        while count(&self.runs) > most as u64 {
            self.coarser();
        }
        self.runs.iter().flat_map(|(first, last)| *first..=*last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_coarser_until_they_fit() {
        let mut touched = Touched::default();
        touched.add(0x1_0000, 0x1000);
        touched.add(0x7fff_0000_0000, 1);
        assert_eq!((touched.bins(100).len(), touched.shift), (17, MIN_SHIFT));
        assert_eq!(touched.bins(4), [0x1_0000 >> 11, 0x1_0800 >> 11, 0x7fff_0000_0000 >> 11], "{touched:?}");
        // The whole address space, and nothing.
        touched.add(0, u64::MAX);
        touched.add(5, 0);
        assert_eq!(touched.bins(MAX_BINS).len(), 512);
    }

    #[test]
    fn parts_are_those_that_a_set_of_all_of_them_has() {
        let (mut touched, mut set) = (Touched::default(), std::collections::BTreeSet::new());
        // Far apart, so that the runs are joined and become coarser on the way.
        for n in 0..5 * MAX_TOUCHED as u64 {
            let (start, length) = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 40), 1 + n % 3000);
            touched.add(start, length);
            set.extend(start >> MIN_SHIFT..=(start + length - 1) >> MIN_SHIFT);
        }
        let mut shift = MIN_SHIFT;
        while set.len() > MAX_BINS {
            shift += 1;
            set = set.into_iter().map(|bin| bin >> 1).collect();
        }
        assert_eq!((touched.bins(MAX_BINS), touched.shift), (set.into_iter().collect::<Vec<_>>(), shift));
    }

    #[test]
    fn a_part_is_what_most_of_it_is() {
        let part = Part { collected: 100, in_place: 20, moved_away: 70, ..Part::default() };
        assert_eq!(part.byte(100) & 7, State::MovedAway as u8);
        let part = Part { collected: 100, in_place: 20, generation_before: Some((1, 100)), ..Part::default() };
        assert_eq!(part.byte(100), State::Freed as u8 | 1 << 3 | 3 << 6);
        let part = Part { kept: 50, generation: Some((2, 50)), ..Part::default() };
        assert_eq!(part.byte(100), State::NotCollected as u8 | 2 << 3 | 2 << 6);
        let part = Part { after: 30, moved_here: 30, ..Part::default() };
        assert_eq!(part.byte(1000), State::MovedHere as u8 | NO_GENERATION << 3);
        assert_eq!(Part::default().byte(100), 0);
    }
}
