//! Where memory lies and survives: collections by parts of the address space, a byte for each.

use tracequet_analyze::collection::{self, Bound, Range, RangeKind, SpilledCollections, collects};
use tracequet_trace::map::Set;

use crate::collections::{Collection, Collections};
use crate::follow::Follow;
use crate::prelude::*;
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

tracequet_dataset::row! {
    /// Memory of a generation at the start or the end of a collection.
    struct Bounds of gc_generation_range { gc_id, range_start, range_length }
}

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
    /// Generations of most bytes by the bounds: at the end, at the start.
    generation: Option<(u8, u64)>,
    generation_before: Option<(u8, u64)>,
    /// Generation at the end by the first range of which it is known.
    generation_of_ranges: Option<u8>,
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
        let before = self.generation_before.map(|(generation, _)| generation);
        let after = self.generation.map(|(generation, _)| generation).or(self.generation_of_ranges);
        let known = if was { before.or(after) } else { after.or(before) };
        let generation = known.unwrap_or(NO_GENERATION).min(NO_GENERATION);
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
    bins: Bins,
    /// A byte for each part of each column.
    bytes: Vec<u8>,
    fates: Vec<Fate>,
    follow: Follow,
    /// Whether no table of ranges is missing.
    pub is_whole: bool,
    /// Survival by generation, of the same ranges.
    pub survival: Survival,
}

/// The parts of the address space, in order.
#[derive(Debug)]
struct Bins {
    shift: u32,
    firsts: Vec<u64>,
    /// Where the last ranges began.
    near: [usize; 2],
}

impl Bins {
    /// Calls `take` with each of `parts` that a range touches, and how many of its bytes lie there.
    fn cover(&mut self, parts: &mut [Part], start: u64, length: u64, mut take: impl FnMut(&mut Part, u64)) {
        let Some(last) = length.checked_sub(1).map(|rest| start.saturating_add(rest)) else { return };
        let first = start >> self.shift;
        // Ranges are in order: most begin where the one before did, or went where that went.
        let first_bin = match self.near.into_iter().find(|place| self.firsts.get(*place) == Some(&first)) {
            Some(near) => near,
            None => {
                let found = self.firsts.partition_point(|bin| *bin < first);
                self.near = [found, self.near[0]];
                found
            }
        };
        for (bin, part) in self.firsts.iter().zip(parts).skip(first_bin) {
            if *bin > last >> self.shift {
                break;
            }
            let low = bin << self.shift;
            let high = low | ((1u64 << self.shift) - 1);
            take(part, last.min(high).saturating_sub(start.max(low)).saturating_add(1));
        }
    }
}

/// The collection that is being drawn.
#[derive(Default)]
struct Column {
    gc_id: u32,
    /// Whether its ranges count, and the place of its column where it has one.
    is_known: bool,
    place: Option<usize>,
    parts: Vec<Part>,
}

impl HeapMap {
    /// Draws the ranges: those that are kept, or those of the tables, which are then kept. `None` when the recording has none that survived.
    pub(crate) fn read(
        recording: &Recording<'_>,
        collections: &Collections,
        kept: &mut Option<SpilledCollections>,
    ) -> Result<Option<HeapMap>> {
        let with_ranges: Vec<&Collection> = collections.all.iter().filter(|collection| collection.has_ranges).collect();
        if with_ranges.is_empty() {
            return Ok(None);
        }
        let has = |name: &str| recording.tables().any(|table| table.name == name);
        let is_whole = kept.is_some() || collection::TABLES.into_iter().all(has);
        let ranges = match kept {
            Some(ranges) => ranges,
            None => kept.insert(SpilledCollections::read(recording)?),
        };
        let of = with_ranges.len();
        // Evenly over the time of the recording.
        let step = of.div_ceil(MAX_COLUMNS).max(1);
        let columns: Vec<Collection> = with_ranges.into_iter().step_by(step).cloned().collect();
        let places: Places = columns.iter().map(|collection| collection.gc_id).zip(0..).collect();
        let mut touched = Touched::default();
        recording.each_recorded::<Bounds<'_>>(|row| {
            if places.contains_key(&row.gc_id) {
                touched.add(row.range_start, row.range_length);
            }
        })?;
        if touched.runs.is_empty() {
            ranges.each_part(|part| {
                if places.contains_key(&part.gc_id) {
                    part.ranges.iter().for_each(|range| touched.add(range.new_start, range.length));
                }
            })?;
        }
        let firsts = touched.bins(MAX_BINS);
        let bins = Bins { shift: touched.shift, firsts, near: [0; 2] };
        let (bytes, fates) = (Vec::new(), vec![Fate::default(); columns.len()]);
        let (follow, survival) = (Follow::of(&collections.all), Survival::default());
        let mut map = HeapMap { columns, of, bins, bytes, fates, follow, is_whole, survival };
        map.fill(ranges, &places, collections)?;
        Ok(Some(map))
    }

    fn fill(&mut self, ranges: &mut SpilledCollections, places: &Places, collections: &Collections) -> Result<()> {
        let known: Set<u32> = collections.all.iter().map(|collection| collection.gc_id).collect();
        self.bytes = vec![0; self.bins.firsts.len().saturating_mul(self.columns.len())];
        let mut column = Column::default();
        ranges.each_part(|part| {
            if part.gc_id != column.gc_id {
                self.end(&column);
                let mut parts = std::mem::take(&mut column.parts);
                parts.clear();
                parts.resize(self.bins.firsts.len(), Part::default());
                let gc_id = part.gc_id;
                column = Column { gc_id, is_known: known.contains(&gc_id), place: places.get(&gc_id).copied(), parts };
            }
            if column.is_known {
                part.before.iter().for_each(|bound| self.bound(&mut column, bound, true));
                part.after.iter().for_each(|bound| self.bound(&mut column, bound, false));
                part.ranges_by_kind().for_each(|(kind, ranges)| self.ranges(&mut column, kind, ranges));
            }
        })?;
        self.end(&column);
        Ok(())
    }

    /// The collection of a column has ended.
    fn end(&mut self, column: &Column) {
        let Some(place) = column.place else { return };
        let bytes = self.bytes.iter_mut().skip(place.saturating_mul(self.bins.firsts.len()));
        bytes.zip(&column.parts).for_each(|(byte, part)| *byte = part.byte(1 << self.bins.shift));
    }

    /// Memory of a generation at the start or the end of a collection.
    fn bound(&mut self, column: &mut Column, bound: &Bound, is_start: bool) {
        let Bound { start, length, .. } = *bound;
        let generation = bound.generation.min(NO_GENERATION);
        self.follow.bounds(column.gc_id, !is_start, generation, start, length);
        if is_start {
            self.survival.before(column.gc_id, Some(bound.generation), length);
        }
        let Some(place) = column.place else { return };
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
        self.bins.cover(&mut column.parts, start, length, |part, bytes| {
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
    }

    /// Ranges that survived, all of a kind.
    fn ranges(&mut self, column: &mut Column, kind: RangeKind, ranges: &[Range]) {
        self.follow.ranges(column.gc_id, kind.is_moved, ranges);
        let sum = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.length));
        self.survival.survived(column.gc_id, kind, ranges.len() as u64, sum);
        let Some(fate) = column.place.and_then(|place| self.fates.get_mut(place)) else { return };
        let of_kind = if kind.is_moved { &mut fate.moved } else { &mut fate.in_place };
        *of_kind = of_kind.saturating_add(sum);
        let parts = &mut column.parts;
        for Range { start, new_start, length, .. } in ranges.iter().copied() {
            if start != new_start {
                self.bins.cover(parts, start, length, |part, bytes| {
                    part.moved_away = part.moved_away.saturating_add(bytes);
                });
            }
            self.bins.cover(parts, new_start, length, |part, bytes| {
                let sum = match (kind.is_moved, start == new_start) {
                    (false, _) => &mut part.in_place,
                    (true, true) => &mut part.stayed,
                    (true, false) => &mut part.moved_here,
                };
                *sum = sum.saturating_add(bytes);
                part.generation_of_ranges = part.generation_of_ranges.or(kind.after);
            });
        }
    }

    /// Data for the script.
    pub(crate) fn packed(&self) -> Result<String> {
        let mut bytes = Bytes::default();
        bytes.u32(self.columns.len() as u32);
        let Bins { shift, firsts, .. } = &self.bins;
        bytes.u32(firsts.len() as u32);
        bytes.u64(1 << shift);
        firsts.iter().for_each(|bin| bytes.u64(bin << shift));
        self.columns.iter().for_each(|collection| bytes.f64(collection.start_ns as f64));
        self.columns.iter().for_each(|collection| bytes.u32(collection.gc_id));
        self.columns.iter().for_each(|collection| bytes.byte(collection.generation.unwrap_or(NO_GENERATION)));
        self.bytes.iter().for_each(|byte| bytes.byte(*byte));
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
        let Bins { shift, firsts, .. } = &self.bins;
        let folded = firsts.windows(2).filter(|pair| matches!(pair, [a, b] if a.wrapping_add(1) != *b)).count();
        let part = size(1 << shift);
        format!(
            "{columns}, left to right. {} parts of {part} of the address space, top to bottom; {} folded.",
            count(firsts.len() as u64),
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
