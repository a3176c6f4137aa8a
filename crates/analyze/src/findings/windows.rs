//! Amounts over time, and the worst window of them.

use std::collections::BTreeMap;

/// Length of a bucket, and buckets of a window: the worst half minute counts.
const BUCKET_NS: i64 = 5_000_000_000;
const WINDOW: i64 = 6;

/// Buckets of one list. What comes later counts in the sum alone.
const MOST: usize = 1 << 16;

/// Amounts in buckets of five seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    buckets: BTreeMap<i64, f64>,
    pub(super) total: f64,
}

impl Windows {
    /// An amount at a time.
    pub(super) fn at(&mut self, ts_ns: i64, amount: f64) {
        self.total += amount;
        let bucket = ts_ns.div_euclid(BUCKET_NS);
        if self.buckets.len() < MOST || self.buckets.contains_key(&bucket) {
            *self.buckets.entry(bucket).or_default() += amount;
        }
    }

    /// A time from a moment on, in nanoseconds, in each bucket the part that lies in it.
    pub(super) fn span(&mut self, start_ns: i64, duration_ns: i64) {
        let mut from = start_ns;
        let end = start_ns.saturating_add(duration_ns.max(0));
        for _ in 0..MOST {
            if from >= end {
                return;
            }
            let next = (from.div_euclid(BUCKET_NS) + 1).saturating_mul(BUCKET_NS).min(end);
            self.at(from, next.saturating_sub(from) as f64);
            from = next;
        }
        self.total += end.saturating_sub(from) as f64;
    }

    /// Adds those of another list.
    pub(super) fn join(&mut self, other: &Windows) {
        let in_buckets: f64 = other.buckets.values().sum();
        other.buckets.iter().for_each(|(bucket, amount)| self.at(bucket.saturating_mul(BUCKET_NS), *amount));
        self.total += (other.total - in_buckets).max(0.0);
    }

    /// The largest sum within half a minute, divided by its length; of a shorter recording the mean.
    pub(super) fn worst(&self, recording_ns: i64) -> f64 {
        let window_ns = WINDOW * BUCKET_NS;
        if recording_ns <= 0 {
            return 0.0;
        }
        if recording_ns <= window_ns {
            return self.total / recording_ns as f64;
        }
        let largest = self.buckets.keys().map(|first| {
            self.buckets.range(first..&first.saturating_add(WINDOW)).map(|(_, amount)| amount).sum::<f64>()
        });
        largest.fold(0.0, f64::max) / window_ns as f64
    }

    /// The largest sum in a bucket, for a second.
    pub(super) fn busiest_per_second(&self, recording_ns: i64) -> f64 {
        let seconds = (recording_ns.clamp(1_000_000_000, BUCKET_NS)) as f64 / 1e9;
        self.buckets.values().copied().fold(0.0, f64::max) / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_worst_half_minute_counts_and_not_the_mean() {
        let mut windows = Windows::default();
        windows.span(100 * S, 3 * S);
        windows.span(112 * S, 6 * S);
        windows.span(500 * S, 1);
        assert!((windows.worst(600 * S) - 0.3).abs() < 1e-9);
        assert!((windows.worst(20 * S) - 0.45).abs() < 1e-6, "of a short one the mean");
        assert_eq!(windows.worst(0), 0.0);
        let mut other = Windows::default();
        other.join(&windows);
        assert!((other.worst(600 * S) - 0.3).abs() < 1e-9 && (other.total - windows.total).abs() < 1.0);
        other.at(100 * S, 50.0);
        assert_eq!(Windows::default().busiest_per_second(9 * S), 0.0);
    }

    #[test]
    fn hostile_times_end() {
        let mut windows = Windows::default();
        windows.span(i64::MIN, i64::MAX);
        windows.span(i64::MAX - 5, 100);
        windows.at(i64::MAX, 1.0);
        assert!(windows.buckets.len() <= MOST && windows.worst(i64::MAX).is_finite());
    }
}
