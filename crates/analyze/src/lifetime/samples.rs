//! The samples whose objects are followed: of one source, and no more than fit into memory.

use tracequet_facts::fact::Allocation;

use super::sample::{Sample, SampleList};
use crate::subjects::allocations::SOURCES;

/// Samples that are followed. Beyond that one of two is left out, again and again, and the others count twice.
const MAX_SAMPLES: usize = 4 << 20;

/// Memory that is counted for a sample with the life of its object.
const SAMPLE_STORED: u64 = 512;

/// Samples of a recording, of the source that its allocations are counted by.
#[derive(Debug)]
pub struct Samples {
    rows: SampleList,
    /// Place of the source among those that are known; the first counts before the others.
    source: u8,
    /// Rows of that source so far.
    seen: u64,
    /// Of how many samples one is kept, as a power of two.
    thinned: u32,
    most: usize,
}

impl Samples {
    /// For as many as fit into this many bytes with their lives, and 4 million at most.
    pub fn new(memory: u64) -> Samples {
        let most = usize::try_from(memory / SAMPLE_STORED).unwrap_or(usize::MAX).clamp(1, MAX_SAMPLES);
        Samples { rows: SampleList::default(), source: u8::MAX, seen: 0, thinned: 0, most }
    }

    /// Takes an allocation. One without an address says which source there is, and is not followed.
    pub fn add(&mut self, source: &str, sample: Sample) {
        let known = SOURCES.iter().find(|(word, _)| *word == source);
        let Some((word, place)) = known.filter(|(_, place)| *place <= self.source) else { return };
        if *place < self.source {
            *self = Samples { rows: SampleList::default(), source: *place, seen: 0, thinned: 0, most: self.most };
        }
        if sample.object_id == 0 {
            return;
        }
        self.seen += 1;
        if !is_kept(self.seen, self.thinned) {
            return;
        }
        self.rows.push(Sample { source: word, ..sample });
        while self.rows.len() > self.most {
            self.thin();
        }
    }

    /// The word of a source; of one that is not known the one that counts least.
    pub(super) fn word(source: &str) -> &'static str {
        SOURCES.iter().find(|(word, _)| *word == source).map_or("tick", |(word, _)| word)
    }

    /// Takes a row of `allocation`.
    pub fn take(&mut self, row: &Allocation<'_>) {
        let sample = Sample {
            thread_id: row.thread_id,
            callsite_id: row.callsite_id,
            activity_id: row.activity_id,
            type_id: row.type_id,
            allocation_bytes: row.allocation_bytes,
            object_count: row.object_count,
            ..Sample::new(row.ts_ns, row.process_id, row.object_id)
        };
        self.add(row.source, sample);
    }

    /// Leaves one of two out.
    fn thin(&mut self) {
        let thinned = self.thinned;
        let mut kept =
            (1..=self.seen).filter(|number| is_kept(*number, thinned)).map(|number| is_kept(number, thinned + 1));
        self.rows = self.rows.iter().filter(|_| kept.next() == Some(true)).collect();
        self.thinned += 1;
    }

    /// The number of times that each sample counts.
    pub fn weight(&self) -> u32 {
        1u32.checked_shl(self.thinned).unwrap_or(u32::MAX)
    }

    /// The samples, in the order in which they came.
    pub fn rows(&self) -> &SampleList {
        &self.rows
    }
}

/// Whether a sample is kept, by its number: as if a coin was thrown for it, the same each time.
fn is_kept(number: u64, thinned: u32) -> bool {
    // SplitMix64: each bit of the result depends on all bits of the number.
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    mixed.trailing_zeros() >= thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_source_is_the_one_that_is_followed() {
        let mut samples = Samples::new(u64::MAX);
        let mut add = |source: &str, object_id| {
            samples.add(source, Sample::new(0, 1, object_id));
            samples.rows().iter().map(|row| (row.source, row.object_id)).collect::<Vec<_>>()
        };
        assert_eq!(add("tick", 8), [("tick", 8)]);
        assert_eq!(add("generation_0", 9), [("tick", 8)]);
        assert_eq!(add("object_low", 16), [("object_low", 16)]);
        assert_eq!(add("object_high", 24), [("object_low", 16), ("object_high", 24)]);
        // Without an address there is nothing to follow, and yet it is what allocations are counted by.
        assert_eq!(add("sampled", 0), []);
        assert_eq!(add("tick", 32), []);
        assert_eq!(add("sampled", 40), [("sampled", 40)]);
    }

    #[test]
    fn too_many_samples_are_thinned_and_count_more() {
        let mut samples = Samples::new(1000 * SAMPLE_STORED);
        for number in 1..=100_000u64 {
            samples.add("tick", Sample::new(number as i64, 1, number * 8));
        }
        let (kept, weight) = (samples.rows().len(), samples.weight());
        assert!(kept <= 1000 && kept > 400 && weight == 128, "{kept} {weight}");
        // The kept samples stand for all: each 64th would be 1,562.
        let sum = kept as f64 * f64::from(weight);
        assert!((sum / 100_000.0 - 1.0).abs() < 0.15, "{sum}");
        assert!(samples.rows().iter().is_sorted_by_key(|row| row.ts_ns));
        let late = samples.rows().iter().filter(|row| row.ts_ns > 50_000).count();
        assert!((late as f64 / kept as f64 - 0.5).abs() < 0.1, "{late} of {kept}");
    }
}
