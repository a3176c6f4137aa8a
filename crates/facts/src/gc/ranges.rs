//! The ranges of one collection: which memory survived and where it went, attributed to generations.
//!
//! A range says that every object in it survived; it holds many objects. Ranges of one collection are a union over all
//! events, threads and heaps. The generation of an old address is read off the bounds at the start of the collection,
//! that of a new address off the bounds at its end; without bounds it stays unknown.

use super::bounds::Bounds;
use super::contradictions::Contradictions;
use super::large_objects::LargeParts;
use super::lengths::untag;
use super::sorted_runs::Runs;
use crate::fact::{Fact, FactSink, Gc, GcGenerationRange, GcMovedRange, GcSurvivingRange, LengthKind};

/// Rows handed on at once.
const BATCH: usize = 8 << 10;

/// The ranges and bounds that one open collection has reported so far.
#[derive(Debug, Default)]
pub struct Ranges {
    surviving: Runs<2>,
    moved: Runs<3>,
    pub(super) bounds: Vec<GcGenerationRange>,
    surviving_batch: Vec<GcSurvivingRange>,
    moved_batch: Vec<GcMovedRange>,
    failed: Option<std::io::Error>,
    /// Lengths carry their kind (see [`tag`](super::lengths::tag)): callbacks, not events.
    pub(super) tagged: bool,
    /// Where ranges of unknown length are after the collection.
    clamped: Vec<u64>,
    /// The contradictions in the collection that was finished last.
    pub anomalies: RangeAnomalies,
    bounds_left_out: u64,
    /// The bounds belong to another report of the collection, which hands them on.
    pub(super) bounds_emitted: bool,
    /// The rows are, too.
    pub(super) rows_are_told: bool,
}

/// Contradictions in the ranges and bounds of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeAnomalies {
    /// Ranges that begin before the end of another.
    pub overlapping: u64,
    /// Ranges without a byte.
    pub empty: u64,
    /// Ranges that survived where they were and moved as well.
    pub survived_and_moved: u64,
    /// Ranges that moved to where another one moved.
    pub one_target: u64,
    /// Ranges that end behind the last address.
    pub wrapping: u64,
    /// Bounds that overlap others; what lies there has no generation.
    pub overlapping_bounds: u64,
    /// Ranges of 4 GiB and more that are longer than the bounds they lie in.
    pub beyond_bounds: u64,
    /// Bounds that are too many to be remembered.
    pub bounds_left_out: u64,
}

/// Bounds of one collection: a heap of a terabyte has as many regions.
const MAX_BOUNDS: usize = 1 << 18;

/// Ranges of unknown length that are looked at once more, per collection; no machine has room for more.
const MAX_CLAMPED: usize = 1 << 16;

/// Hands rows on when there are as many as `enough`.
#[inline]
fn hand_on<T>(rows: &mut Vec<T>, enough: usize, sink: &mut impl FactSink)
where
    for<'a> Fact<'a>: From<&'a [T]>,
{
    if rows.len() >= enough {
        sink.add(rows.as_slice());
        rows.clear();
    }
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

    /// A range of unknown length is at this address after the collection.
    pub fn clamped_at(&mut self, address: u64) {
        if self.clamped.len() < MAX_CLAMPED {
            self.clamped.push(address);
        }
    }

    /// The number of ranges.
    pub fn count(&self) -> u64 {
        self.surviving.count() + self.moved.count()
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
        if !std::mem::take(&mut self.bounds_emitted) && !self.bounds.is_empty() {
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
        let mut contradictions = Contradictions::new(tagged, self.surviving.count(), self.moved.count());
        let mut last_end = 0;
        let mut check = |last_end: &mut u64, start: u64, new_start: u64, tagged_length: u64| {
            if !tagged {
                return (tagged_length, LengthKind::Exact);
            }
            let (length, kind) = untag(tagged_length);
            anomalies.empty += u64::from(length == 0);
            anomalies.wrapping += u64::from(start.max(new_start).checked_add(length).is_none());
            anomalies.overlapping += u64::from(start < *last_end);
            *last_end = start.saturating_add(length);
            if kind != LengthKind::Clamped {
                return (length, kind);
            }
            let narrowed = large.narrow(new_start, length);
            anomalies.beyond_bounds += u64::from(narrowed.is_none());
            narrowed.unwrap_or((length, LengthKind::Clamped))
        };

        let batch = &mut self.surviving_batch;
        batch.clear();
        self.surviving.drain(|[start, length]| {
            let (length, length_kind) = check(&mut last_end, *start, *start, *length);
            if tagged {
                contradictions.survived(*start, length);
            }
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
            hand_on(batch, BATCH, sink);
        })?;
        hand_on(batch, 1, sink);

        last_end = 0;
        let batch = &mut self.moved_batch;
        batch.clear();
        self.moved.drain(|[old_start, new_start, length]| {
            let (length, length_kind) = check(&mut last_end, *old_start, *new_start, *length);
            if tagged {
                contradictions.moved(*old_start, *new_start, length);
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
            hand_on(batch, BATCH, sink);
        })?;
        hand_on(batch, 1, sink);
        (anomalies.survived_and_moved, anomalies.one_target) = contradictions.count();
        self.anomalies = anomalies;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// For each range of unknown length in a part of the large object heap: where that part ends, and whether the range
    /// is the last in it. The collector cuts such a part off behind its last survivor, so that the last one ends there.
    fn large_ends(&mut self, after: &mut Bounds) -> std::io::Result<LargeParts> {
        let mut large = LargeParts::default();
        for address in self.clamped.drain(..) {
            if let Some((start, end, generation)) = after.entry(address) {
                large.add(start, end, generation);
            }
        }
        if large.is_empty() {
            return Ok(large);
        }
        large.sort();
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

impl Ranges {
    /// The collection is also reported as `other`, whose bounds hold here, too, and whose rows are handed on in place
    /// of these when it has any. Returns how many rows it has less.
    pub(super) fn also_reported(&mut self, other: &Ranges) -> u64 {
        self.bounds.clone_from(&other.bounds);
        self.bounds_emitted = true;
        let theirs = other.count();
        self.rows_are_told = theirs > 0;
        if theirs > 0 { self.count().saturating_sub(theirs) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_ranges_of_unknown_length_are_remembered_up_to_a_number() {
        let mut ranges = Ranges::default();
        (0..300_000).for_each(|_| ranges.bound(GcGenerationRange::default()));
        (0..100_000).for_each(|address| ranges.clamped_at(address));
        assert_eq!((ranges.bounds.len(), ranges.bounds_left_out), (262_144, 300_000 - 262_144));
        assert_eq!(ranges.clamped.len(), 65_536);
    }
}
