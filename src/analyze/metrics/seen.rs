//! What is seen of the rows of one figure.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::definition::Take;

/// Values that are kept as they are for percentiles, of all figures of a recording together: 8 MB.
const MOST_KEPT: usize = 1 << 20;
/// Rounded values that are kept beyond: some 8 MB.
const MOST_ROUNDED: usize = 1 << 18;
/// The bits of a number that rounding leaves: sign, exponent and 12 of the fraction, a part in 4,096.
const ROUNDED: u64 = !0 << 40;

/// Values that are kept for percentiles so far, by all figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    exact: usize,
    rounded: usize,
}

/// What is seen of the rows of one figure.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    rows: u64,
    /// Rows with a value.
    pub(super) observations: u64,
    sum: f64,
    max: Option<(f64, Option<u64>)>,
    last: Option<(i64, f64)>,
    failed: u64,
    values: Vec<f64>,
    /// Bits of rounded values, and how often each was there.
    rounded: HashMap<u64, u64, RandomState>,
    /// Values that were not kept.
    forgotten: u64,
}

impl Seen {
    /// A row without a value.
    pub(super) fn nothing(&mut self) {
        self.rows += 1;
    }

    /// A row; `place` says where it is.
    #[inline]
    pub(super) fn add(&mut self, value: f64, place: Option<u64>) {
        self.rows += 1;
        self.observations += 1;
        self.sum += value;
        if self.max.is_none_or(|(max, _)| value > max) {
            self.max = Some((value, place));
        }
    }

    /// Keeps a value for percentiles. When there are too many, rounded.
    pub(super) fn keep(&mut self, value: f64, kept: &mut Kept) {
        if kept.exact < MOST_KEPT {
            kept.exact += 1;
            self.values.push(value);
            return;
        }
        let bits = value.to_bits() & ROUNDED;
        match self.rounded.get_mut(&bits) {
            Some(count) => *count += 1,
            None if kept.rounded < MOST_ROUNDED => {
                kept.rounded += 1;
                self.rounded.insert(bits, 1);
            }
            None => self.forgotten += 1,
        }
    }

    /// A value at a time. Of several at the same time the first counts.
    pub(super) fn at(&mut self, ts_ns: i64, value: f64) {
        if self.last.is_none_or(|(known, _)| ts_ns > known) {
            self.last = Some((ts_ns, value));
        }
    }

    /// What came of an activity.
    pub(super) fn outcome(&mut self, text: Option<&str>) {
        self.rows += 1;
        let Some(text) = text else { return };
        self.observations += 1;
        let is_status = text.len() == 3 && text.starts_with('5') && text.bytes().all(|b| b.is_ascii_digit());
        self.failed += u64::from(text == "failed" || is_status);
    }

    /// Where the largest value is.
    pub(super) fn place(&self) -> Option<u64> {
        self.max.and_then(|(_, place)| place)
    }

    /// The figure. Counts and sums of nothing are 0; of other figures nothing makes none.
    pub(super) fn figure(&self, take: Take, duration_ns: f64) -> Option<f64> {
        match take {
            Take::Count => Some(self.rows as f64),
            Take::Sum => Some(self.sum),
            Take::Mean => (self.observations > 0).then(|| self.sum / self.observations as f64),
            Take::Max => self.max.map(|(max, _)| max),
            Take::Last => self.last.map(|(_, value)| value),
            Take::P50 => self.quantile(0.5),
            Take::P99 => self.quantile(0.99),
            Take::PerSecond => (duration_ns > 0.0).then(|| self.sum / (duration_ns / 1e9)),
            Take::Share => (duration_ns > 0.0).then(|| self.sum / duration_ns),
            Take::Failed => (self.rows > 0).then(|| self.failed as f64 / self.rows as f64),
        }
    }

    fn quantile(&self, q: f64) -> Option<f64> {
        if self.forgotten > 0 {
            return None;
        }
        let place = |count: u64| ((q * count as f64).ceil() as u64).max(1);
        if self.rounded.is_empty() {
            let mut values = self.values.clone();
            let place = place(values.len() as u64) as usize - 1;
            return (place < values.len()).then(|| *values.select_nth_unstable_by(place, f64::total_cmp).1);
        }
        let mut all: Vec<(f64, u64)> = self.values.iter().map(|value| (*value, 1)).collect();
        all.extend(self.rounded.iter().map(|(bits, count)| (f64::from_bits(*bits), *count)));
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut left = place(all.iter().map(|(_, count)| count).sum());
        for (value, count) in all {
            if count >= left {
                return Some(value);
            }
            left -= count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_more_values_than_are_kept_are_nearly_right() {
        let (mut seen, mut kept) = (Seen::default(), Kept::default());
        let count = MOST_KEPT as u64 * 3;
        for n in 0..count {
            // All numbers up to the count, in a scattered order.
            let value = (n * 7_919 % count) as f64;
            seen.add(value, None);
            seen.keep(value, &mut kept);
        }
        assert_eq!(seen.values.len(), MOST_KEPT);
        assert!(seen.rounded.len() < MOST_ROUNDED);
        for (take, q) in [(Take::P50, 0.5), (Take::P99, 0.99)] {
            let (found, right) = (seen.figure(take, 0.0).unwrap(), q * count as f64);
            assert!((found - right).abs() / right < 1.0 / 4096.0, "{found} {right}");
        }
        assert_eq!((seen.figure(Take::Count, 0.0), seen.observations), (Some(count as f64), count));
    }

    #[test]
    fn nothing_makes_no_percentile() {
        assert_eq!((Seen::default().figure(Take::P99, 1.0), Seen::default().figure(Take::Sum, 1.0)), (None, Some(0.0)));
    }
}
