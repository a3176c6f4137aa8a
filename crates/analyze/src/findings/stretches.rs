//! Stretches: samples of a thread with one call stack, one behind the other, while the program starts.

use std::collections::BTreeMap;

/// Samples after this time are not looked at.
const UNTIL_NS: i64 = 60_000_000_000;

/// Stretches that are kept, and threads.
const MOST: usize = 1 << 15;
const MOST_THREADS: usize = 1 << 12;

/// A sample stands for this long at most.
const SAMPLE_NS: i64 = 100_000_000;

/// Samples of a thread with one call stack, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) thread: u64,
    pub(super) site: u32,
    /// Whether the thread ran managed code.
    pub(super) is_running: bool,
}

/// The stretches of all threads of a process.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// In the order of time once all samples were seen.
    pub(super) all: Vec<Stretch>,
    open: BTreeMap<u64, Stretch>,
    last_ns: i64,
}

impl Stretches {
    /// A sample; those of a thread come in the order of time.
    pub(super) fn see(&mut self, thread: u64, site: u32, is_running: bool, ts_ns: i64) {
        self.last_ns = self.last_ns.max(ts_ns);
        let is_known = self.open.contains_key(&thread);
        if ts_ns > UNTIL_NS || self.all.len() >= MOST || (!is_known && self.open.len() >= MOST_THREADS) {
            return;
        }
        let next = Stretch { start_ns: ts_ns, end_ns: ts_ns, thread, site, is_running };
        let open = self.open.entry(thread).or_insert(next);
        open.end_ns = ts_ns.min(open.end_ns.saturating_add(SAMPLE_NS)).max(open.end_ns);
        if (open.site, open.is_running) != (site, is_running) {
            self.all.push(std::mem::replace(open, next));
        }
    }

    /// All samples were seen.
    pub(super) fn finish(&mut self) {
        self.all.extend(std::mem::take(&mut self.open).into_values());
        self.all.sort_unstable_by_key(|stretch| (stretch.start_ns, stretch.thread));
    }

    /// The end of what is known: that of the samples, or of those that are kept.
    pub(super) fn end_ns(&self) -> i64 {
        let kept = self.all.iter().map(|stretch| stretch.end_ns).max().unwrap_or_default();
        if self.all.len() >= MOST { kept } else { self.last_ns.min(UNTIL_NS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_are_one_stretch_and_a_gap_is_in_none() {
        let mut stretches = Stretches::default();
        let ms = 1_000_000;
        for (site, is_running, at) in [(1, true, 0), (1, true, 10), (2, true, 20), (2, false, 30), (2, false, 5000)] {
            stretches.see(7, site, is_running, at * ms);
        }
        stretches.see(8, 1, true, i64::MAX);
        stretches.see(9, 1, true, i64::MIN);
        stretches.finish();
        let of = |n: usize| (stretches.all[n].start_ns / ms, stretches.all[n].end_ns / ms, stretches.all[n].site);
        assert_eq!((of(1), of(2), of(3)), ((0, 20, 1), (20, 30, 2), (30, 130, 2)));
        assert_eq!(stretches.all.len(), 4);
    }
}
