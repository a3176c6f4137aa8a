//! The ranges of one collection: which memory survived and where it went, attributed to generations.
//!
//! A range says that every object in it survived; it holds many objects. Ranges of one collection are a union over all
//! events, threads and heaps. The generation of an old address is read off the bounds at the start of the collection,
//! that of a new address off the bounds at its end; without bounds it stays unknown.

use super::sorted_runs::Runs;
use crate::normalize::fact::{FactSink, Gc, GcGenerationRange, GcMovedRange, GcSurvivingRange, LengthKind};

/// Rows handed on at once.
const BATCH: usize = 8 << 10;

/// What one open collection has reported so far.
#[derive(Debug, Default)]
pub struct Ranges {
    surviving: Runs<2>,
    moved: Runs<3>,
    bounds: Vec<GcGenerationRange>,
    surviving_batch: Vec<GcSurvivingRange>,
    moved_batch: Vec<GcMovedRange>,
    failed: Option<std::io::Error>,
    /// Lengths carry their kind (see [`tag`]): callbacks, not events.
    tagged: bool,
    /// Where ranges of unknown length are after the collection.
    clamped: Vec<u64>,
    anomalies: RangeAnomalies,
    bounds_left_out: u64,
    /// The bounds are those of another telling of the collection, which hands them on.
    bounds_are_told: bool,
    /// The rows are, too.
    rows_are_told: bool,
}

/// What cannot be right in the ranges and bounds of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeAnomalies {
    /// Ranges that begin before the end of another.
    pub overlapping: u64,
    /// Ranges without a byte.
    pub empty: u64,
    /// Bounds that overlap others; what lies there has no generation.
    pub overlapping_bounds: u64,
    /// Ranges of 4 GiB and more that are longer than the bounds they lie in.
    pub beyond_bounds: u64,
    /// Bounds that are too many to be remembered.
    pub bounds_left_out: u64,
}

/// What is said of bounds that are too many.
pub const TOO_MANY_BOUNDS: &str = "more generation bounds of one collection than are remembered";
/// Bounds of one collection: a heap of a terabyte has as many regions.
const MAX_BOUNDS: usize = 1 << 18;

/// Ranges of unknown length that are looked at once more, per collection; no machine has room for so many.
const MAX_CLAMPED: usize = 1 << 16;
/// The bits of a length that carry its kind.
const KIND_SHIFT: u32 = 62;
/// Lengths of callbacks are less than this.
pub const MAX_LENGTH: u64 = 1 << KIND_SHIFT;
/// What a 64-bit runtime writes for lengths of 4 GiB and more.
pub const CLAMP: u64 = 0xFFFF_FFFF;
/// The least length that a clamped one stands for.
pub const CLAMPED_LENGTH: u64 = 1 << 32;

/// A length with its kind in the two highest bits, so that a range keeps its size while it waits.
pub fn tag(length: u64, kind: LengthKind) -> u64 {
    let bits = match kind {
        LengthKind::Exact => 0,
        LengthKind::Paired => 1,
        LengthKind::Clamped => 2,
        LengthKind::Narrowed => 3,
    };
    length & (MAX_LENGTH - 1) | bits << KIND_SHIFT
}

fn untag(tagged: u64) -> (u64, LengthKind) {
    let kind = match tagged >> KIND_SHIFT {
        0 => LengthKind::Exact,
        1 => LengthKind::Paired,
        2 => LengthKind::Clamped,
        _ => LengthKind::Narrowed,
    };
    (tagged & (MAX_LENGTH - 1), kind)
}

impl Ranges {
    /// Rows of (start, length).
    pub fn survived(&mut self, rows: impl Iterator<Item = [u64; 2]>) {
        if let Err(e) = self.surviving.extend(rows) {
            self.failed = Some(e);
        }
    }

    /// Rows of (old start, new start, length).
    pub fn moved(&mut self, rows: impl Iterator<Item = [u64; 3]>) {
        if let Err(e) = self.moved.extend(rows) {
            self.failed = Some(e);
        }
    }

    /// A part of the heap at the start or at the end of the collection.
    pub fn bound(&mut self, bound: GcGenerationRange) {
        if self.bounds.len() < MAX_BOUNDS {
            self.bounds.push(bound);
        } else {
            self.bounds_left_out += 1;
        }
    }

    /// From now on lengths are made with [`tag`].
    pub fn set_tagged(&mut self) {
        self.tagged = true;
    }

    /// A range of unknown length is at this address after the collection.
    pub fn clamped_at(&mut self, address: u64) {
        if self.clamped.len() < MAX_CLAMPED {
            self.clamped.push(address);
        }
    }

    /// The collection is also told as `other`, whose bounds hold here, too, and whose rows are handed on in place of
    /// these when it has any. Returns how many rows it has less.
    pub fn also_told(&mut self, other: &Ranges) -> u64 {
        self.bounds.clone_from(&other.bounds);
        self.bounds_are_told = true;
        let theirs = other.surviving.count() + other.moved.count();
        self.rows_are_told = theirs > 0;
        if theirs > 0 { (self.surviving.count() + self.moved.count()).saturating_sub(theirs) } else { 0 }
    }

    /// What could not be right in the collection that was finished last.
    pub fn anomalies(&self) -> RangeAnomalies {
        self.anomalies
    }

    /// The collection is over: hands everything on in the order of addresses and counts it into `collection`. An error
    /// of the spill file means that ranges are missing. Of tagged ranges, `each` gets those that moved: old start, new
    /// start, length.
    pub fn finish(
        &mut self,
        collection: &mut Gc,
        sink: &mut impl FactSink,
        mut each: impl FnMut(u64, u64, u64),
    ) -> std::io::Result<()> {
        let gc_id = collection.gc_id;
        let bounds_left_out = std::mem::take(&mut self.bounds_left_out);
        self.anomalies = RangeAnomalies { bounds_left_out, ..RangeAnomalies::default() };
        if !std::mem::take(&mut self.bounds_are_told) && !self.bounds.is_empty() {
            self.bounds.iter_mut().for_each(|bound| bound.gc_id = gc_id);
            sink.add(self.bounds.as_slice());
        }
        if std::mem::take(&mut self.rows_are_told) {
            self.bounds.clear();
            self.clamped.clear();
            self.surviving.drain(|_| {})?;
            self.moved.drain(|[old_start, new_start, length]| each(*old_start, *new_start, untag(*length).0))?;
            return self.failed.take().map_or(Ok(()), Err);
        }
        let mut before = Bounds::new(&self.bounds, false);
        let mut after = Bounds::new(&self.bounds, true);
        self.bounds.clear();
        self.anomalies.overlapping_bounds = before.overlapping + after.overlapping;
        let tagged = self.tagged;
        let mut large = self.large_ends(&mut after)?;
        let mut anomalies = self.anomalies;
        let mut last_end = 0;
        let mut check = |last_end: &mut u64, start: u64, new_start: u64, tagged_length: u64| {
            if !tagged {
                return (tagged_length, LengthKind::Exact);
            }
            let (length, kind) = untag(tagged_length);
            anomalies.empty += u64::from(length == 0);
            anomalies.overlapping += u64::from(start < *last_end);
            *last_end = start.saturating_add(length);
            match kind {
                LengthKind::Clamped => large.narrow(new_start, length, &mut anomalies),
                _ => (length, kind),
            }
        };

        let batch = &mut self.surviving_batch;
        batch.clear();
        self.surviving.drain(|[start, length]| {
            let (length, length_kind) = check(&mut last_end, *start, *start, *length);
            collection.surviving_range_count += 1;
            collection.surviving_bytes = collection.surviving_bytes.saturating_add(length);
            batch.push(GcSurvivingRange {
                gc_id,
                range_start: *start,
                range_length: length,
                length_kind: length_kind.as_str(),
                generation_before: before.generation(*start),
                generation_after: after.generation(*start),
            });
            if batch.len() == BATCH {
                sink.add(batch.as_slice());
                batch.clear();
            }
        })?;
        if !batch.is_empty() {
            sink.add(batch.as_slice());
        }

        last_end = 0;
        let batch = &mut self.moved_batch;
        batch.clear();
        self.moved.drain(|[old_start, new_start, length]| {
            let (length, length_kind) = check(&mut last_end, *old_start, *new_start, *length);
            if tagged {
                each(*old_start, *new_start, length);
            }
            collection.moved_range_count += 1;
            collection.moved_bytes = collection.moved_bytes.saturating_add(length);
            batch.push(GcMovedRange {
                gc_id,
                old_range_start: *old_start,
                new_range_start: *new_start,
                range_length: length,
                length_kind: length_kind.as_str(),
                generation_before: before.generation(*old_start),
                generation_after: after.generation(*new_start),
            });
            if batch.len() == BATCH {
                sink.add(batch.as_slice());
                batch.clear();
            }
        })?;
        if !batch.is_empty() {
            sink.add(batch.as_slice());
        }
        self.anomalies = anomalies;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// For each range of unknown length in a part of the large object heap: where that part ends, and whether the range
    /// is the last in it. The collector cuts such a part off behind its last survivor, so that the last one ends there.
    fn large_ends(&mut self, after: &mut Bounds) -> std::io::Result<Large> {
        let mut large = Large::default();
        for address in self.clamped.drain(..) {
            if let Some((start, end, generation)) = after.entry(address) {
                large.parts.push(Part { start, end, is_large: generation == Some(LARGE_OBJECTS), last: 0 });
            }
        }
        if large.parts.is_empty() {
            return Ok(large);
        }
        large.parts.sort_by_key(|part| part.start);
        large.parts.dedup_by_key(|part| part.start);
        let mut again = Runs::default();
        let mut failed = Ok(());
        self.surviving.drain(|row| {
            large.saw(row[0]);
            failed = std::mem::replace(&mut failed, Ok(())).and_then(|()| again.extend(std::iter::once(*row)));
        })?;
        self.surviving = again;
        let mut again = Runs::default();
        self.moved.drain(|row| {
            large.saw(row[1]);
            failed = std::mem::replace(&mut failed, Ok(())).and_then(|()| again.extend(std::iter::once(*row)));
        })?;
        self.moved = again;
        failed.map(|()| large)
    }
}

/// Number of the generation that large objects are in.
const LARGE_OBJECTS: u8 = 3;

/// The parts of the heap that hold ranges of unknown length.
#[derive(Default)]
struct Large {
    parts: Vec<Part>,
}

struct Part {
    start: u64,
    end: u64,
    is_large: bool,
    /// Where the last range in it begins.
    last: u64,
}

impl Large {
    fn part(&mut self, address: u64) -> Option<&mut Part> {
        let index = self.parts.partition_point(|p| p.start <= address).checked_sub(1)?;
        self.parts.get_mut(index).filter(|p| address < p.end)
    }

    fn saw(&mut self, new_start: u64) {
        if let Some(part) = self.part(new_start) {
            part.last = part.last.max(new_start);
        }
    }

    fn narrow(&mut self, new_start: u64, least: u64, anomalies: &mut RangeAnomalies) -> (u64, LengthKind) {
        let Some(part) = self.part(new_start) else { return (least, LengthKind::Clamped) };
        let room = part.end - new_start;
        if room < least {
            anomalies.beyond_bounds += 1;
            return (least, LengthKind::Clamped);
        }
        if room == least || part.is_large && part.last == new_start {
            return (room, LengthKind::Narrowed);
        }
        (least, LengthKind::Clamped)
    }
}

/// Generation bounds in the order of addresses, with the entry found last: neighbours are asked for in turn.
struct Bounds {
    sorted: Vec<(u64, u64, Option<u8>)>,
    last: usize,
    /// Entries that overlap another.
    overlapping: u64,
}

impl Bounds {
    fn new(bounds: &[GcGenerationRange], at_end: bool) -> Bounds {
        let wanted = bounds.iter().filter(|b| b.is_at_end() == at_end && b.range_length > 0);
        let mut sorted: Vec<_> =
            wanted.map(|b| (b.range_start, b.range_start.saturating_add(b.range_length), Some(b.generation))).collect();
        sorted.sort_unstable();
        sorted.dedup();
        // Where two entries disagree nothing is known.
        let (mut overlapping, mut furthest) = (0, 0);
        let mut end = 0;
        for index in 0..sorted.len() {
            let Some(entry) = sorted.get_mut(index) else { continue };
            let (overlaps, start) = (entry.0 < end, entry.0);
            if overlaps {
                overlapping += 1;
                entry.2 = None;
            }
            let own_end = entry.1;
            if overlaps && let Some(other) = sorted.get_mut(furthest) {
                // What is left of the entry before it, as far as no other begins in it, is not doubted.
                other.1 = other.1.min(start.max(other.0));
            }
            if own_end > end {
                (end, furthest) = (own_end, index);
            }
        }
        Bounds { sorted, last: 0, overlapping }
    }

    fn entry(&mut self, address: u64) -> Option<(u64, u64, Option<u8>)> {
        if let Some((start, end, generation)) = self.sorted.get(self.last)
            && (*start..*end).contains(&address)
        {
            return Some((*start, *end, *generation));
        }
        let index = self.sorted.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let found = *self.sorted.get(index)?;
        if address >= found.1 {
            return None;
        }
        self.last = index;
        Some(found)
    }

    #[inline]
    fn generation(&mut self, address: u64) -> Option<u8> {
        self.entry(address)?.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::fact::range_time;

    #[test]
    fn a_generation_is_read_off_half_open_bounds() {
        let bound = |generation, range_start, range_length, at_end| {
            let at = range_time(at_end);
            GcGenerationRange { at, generation, range_start, range_length, ..GcGenerationRange::default() }
        };
        let list =
            [bound(0, 100, 50, false), bound(2, 200, 10, false), bound(1, 300, 0, false), bound(1, 100, 50, true)];
        let mut before = Bounds::new(&list, false);
        assert_eq!(before.generation(99), None);
        assert_eq!(before.generation(100), Some(0));
        assert_eq!(before.generation(149), Some(0));
        assert_eq!(before.generation(150), None);
        assert_eq!(before.generation(209), Some(2));
        assert_eq!(before.generation(300), None, "an empty entry holds no address");
        assert_eq!(Bounds::new(&list, true).generation(120), Some(1));
    }
}
