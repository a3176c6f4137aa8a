//! The ranges of one collection: which memory survived and where it went, attributed to generations.
//!
//! A range says that every object in it survived; it holds many objects. Ranges of one collection are a union over all
//! events, threads and heaps. The generation of an old address is read off the bounds at the start of the collection,
//! that of a new address off the bounds at its end; without bounds it stays unknown.

use super::fact::{Collection, Fact, FactSink, GenerationRange, LengthKind, MovedRange, SurvivingRange};
use super::runs::Runs;

/// Rows handed on at once.
const BATCH: usize = 8 << 10;

/// What one open collection has reported so far.
#[derive(Debug, Default)]
pub struct Ranges {
    surviving: Runs<2>,
    moved: Runs<3>,
    bounds: Vec<GenerationRange>,
    failed: Option<std::io::Error>,
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
    pub fn bound(&mut self, bound: GenerationRange) {
        self.bounds.push(bound);
    }

    /// Whether any bound of the end was seen.
    pub fn has_end_bounds(&self) -> bool {
        self.bounds.iter().any(|b| b.at_end)
    }

    /// The collection is over: hands everything on in the order of addresses and counts it into `collection`. An error
    /// of the spill file means that ranges are missing.
    pub fn finish(&mut self, collection: &mut Collection, sink: &mut impl FactSink) -> std::io::Result<()> {
        let gc_id = collection.gc_id;
        if !self.bounds.is_empty() {
            sink.fact(Fact::GenerationRanges(gc_id, &self.bounds));
        }
        let mut before = Bounds::new(&self.bounds, false);
        let mut after = Bounds::new(&self.bounds, true);
        self.bounds.clear();

        let mut batch = Vec::new();
        self.surviving.drain(|[start, length]| {
            collection.surviving_range_count += 1;
            collection.surviving_bytes = collection.surviving_bytes.saturating_add(*length);
            batch.push(SurvivingRange {
                start: *start,
                length: *length,
                length_kind: LengthKind::Exact,
                generation_before: before.generation(*start),
                generation_after: after.generation(*start),
            });
            if batch.len() == BATCH {
                sink.fact(Fact::SurvivingRanges(gc_id, &batch));
                batch.clear();
            }
        })?;
        if !batch.is_empty() {
            sink.fact(Fact::SurvivingRanges(gc_id, &batch));
        }

        let mut batch = Vec::new();
        self.moved.drain(|[old_start, new_start, length]| {
            collection.moved_range_count += 1;
            collection.moved_bytes = collection.moved_bytes.saturating_add(*length);
            batch.push(MovedRange {
                old_start: *old_start,
                new_start: *new_start,
                length: *length,
                length_kind: LengthKind::Exact,
                generation_before: before.generation(*old_start),
                generation_after: after.generation(*new_start),
            });
            if batch.len() == BATCH {
                sink.fact(Fact::MovedRanges(gc_id, &batch));
                batch.clear();
            }
        })?;
        if !batch.is_empty() {
            sink.fact(Fact::MovedRanges(gc_id, &batch));
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Generation bounds in the order of addresses, with the entry found last: neighbours are asked for in turn.
struct Bounds {
    sorted: Vec<(u64, u64, u8)>,
    last: usize,
}

impl Bounds {
    fn new(bounds: &[GenerationRange], at_end: bool) -> Bounds {
        let wanted = bounds.iter().filter(|b| b.at_end == at_end && b.length > 0);
        let mut sorted: Vec<_> = wanted.map(|b| (b.start, b.start.saturating_add(b.length), b.generation)).collect();
        sorted.sort_unstable();
        Bounds { sorted, last: 0 }
    }

    #[inline]
    fn generation(&mut self, address: u64) -> Option<u8> {
        if let Some((start, end, generation)) = self.sorted.get(self.last)
            && (*start..*end).contains(&address)
        {
            return Some(*generation);
        }
        let index = self.sorted.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let (_, end, generation) = self.sorted.get(index)?;
        if address >= *end {
            return None;
        }
        self.last = index;
        Some(*generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_read_off_half_open_bounds() {
        let bound =
            |generation, start, length, at_end| GenerationRange { at_end, generation, start, length, reserved: 0 };
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
