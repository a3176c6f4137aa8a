//! Accumulates the rows of one figure.

use tracequet_trace::map::Map;

use super::definition::{Owner, Take};

/// Values that are kept as they are for percentiles, of all figures of a recording together: 8 MB.
const MOST_KEPT: usize = 1 << 20;
/// Rounded values that are kept beyond: some 8 MB.
const MOST_ROUNDED: usize = 1 << 18;
/// Times that are kept to find what they have in common: 6 MB.
const MOST_SPANS: usize = 1 << 18;
/// The bits of a number that rounding leaves: sign, exponent and 12 of the fraction, a part in 4,096.
const ROUNDED: u64 = !0 << 40;

/// Values that are kept for percentiles so far, by all figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    exact: usize,
    rounded: usize,
}

/// The values that were seen in the rows of one metric.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    rows: u64,
    /// Rows with a value.
    pub(super) observations: u64,
    sum: f64,
    /// Of a weighted mean.
    weighted: f64,
    weights: f64,
    /// Whose rows these are.
    pub(super) owner: Owner,
    max: Option<(f64, Option<u64>)>,
    last: Option<(i64, f64)>,
    failed: u64,
    /// Rows that have ended without saying how.
    unknown: u64,
    values: Vec<f64>,
    /// Bits of rounded values, and how often each was there.
    rounded: Map<u64, u64>,
    /// Values that were not kept.
    forgotten: u64,
    /// Times that rows take: process, start and end. Of more of them the rest counts in full.
    spans: Vec<(u64, i64, i64)>,
    rest_ns: f64,
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

    /// Weighs the value of the row in the mean.
    #[inline]
    pub(super) fn weigh(&mut self, value: f64, weight: f64) {
        self.weighted += value * weight;
        self.weights += weight;
    }

    /// Rows, with and without a value.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Keeps a value for percentiles. When there are too many, rounded.
    pub(super) fn keep(&mut self, value: f64, kept: &mut Kept) {
        if kept.exact < MOST_KEPT {
            kept.exact += 1;
            self.values.push(value);
            return;
        }
        // Nothing is pushed any more: unused room goes back.
        self.values.shrink_to_fit();
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

    /// A time of a process that the row takes.
    pub(super) fn span(&mut self, process: u64, start_ns: i64, duration_ns: i64) {
        if self.spans.len() < MOST_SPANS {
            self.spans.push((process, start_ns, start_ns.saturating_add(duration_ns)));
        } else {
            self.rest_ns += duration_ns.max(0) as f64;
        }
    }

    /// The time that the rows cover together, of each process.
    fn covered_ns(&self) -> f64 {
        let mut spans = self.spans.clone();
        spans.sort_unstable();
        let (mut covered, mut before) = (0i64, (0, i64::MIN));
        for (process, start, end) in spans {
            let until = if before.0 == process { before.1 } else { i64::MIN };
            covered = covered.saturating_add(end.saturating_sub(start.max(until)).max(0));
            before = (process, end.max(until));
        }
        covered as f64 + self.rest_ns
    }

    /// The outcome of an activity.
    pub(super) fn result(&mut self, word: Option<&str>) {
        self.rows += 1;
        self.observations += u64::from(word.is_some());
        self.failed += u64::from(word == Some("failure"));
        self.unknown += u64::from(word == Some("unknown"));
    }

    /// Adds values that were seen of other rows.
    pub(super) fn join(&mut self, other: Seen) {
        self.rows += other.rows;
        self.observations += other.observations;
        self.sum += other.sum;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.weighted += other.weighted;
        self.weights += other.weights;
        self.owner.join(other.owner);
        self.forgotten += other.forgotten;
        self.values.extend(other.values);
        self.spans.extend(other.spans);
        self.rest_ns += other.rest_ns;
        if let Some((max, place)) = other.max.filter(|(max, _)| self.max.is_none_or(|(known, _)| *max > known)) {
            self.max = Some((max, place));
        }
        if let Some((ts_ns, value)) = other.last {
            self.at(ts_ns, value);
        }
        for (bits, count) in other.rounded {
            *self.rounded.entry(bits).or_default() += count;
        }
    }

    /// Where the largest value is.
    pub(super) fn place(&self) -> Option<u64> {
        self.max.and_then(|(_, place)| place)
    }

    /// The figure. Counts and sums of no rows are 0, and there is no sum where no row has a value; of other figures
    /// nothing makes none.
    pub(super) fn figure(&self, take: Take, is_weighted: bool, duration_ns: f64) -> Option<f64> {
        let has_sum = self.observations > 0 || self.rows == 0;
        match take {
            Take::Count => Some(self.rows as f64),
            Take::Sum => has_sum.then_some(self.sum),
            Take::Mean if is_weighted => (self.weights != 0.0).then(|| self.weighted / self.weights),
            Take::Mean => (self.observations > 0).then(|| self.sum / self.observations as f64),
            Take::Max => self.max.map(|(max, _)| max),
            Take::Last => self.last.map(|(_, value)| value),
            Take::P50 => self.quantile(0.5),
            Take::P99 => self.quantile(0.99),
            Take::PerSecond => (has_sum && duration_ns > 0.0).then(|| self.sum / (duration_ns / 1e9)),
            Take::Share => (has_sum && duration_ns > 0.0).then(|| self.sum / duration_ns),
            Take::Covered => has_sum.then(|| self.covered_ns()),
            Take::CoveredShare => (has_sum && duration_ns > 0.0).then(|| self.covered_ns() / duration_ns),
            // A source that says nothing but failures leaves open how many there are beside them.
            Take::Failed => {
                let known = self.observations - self.unknown;
                let is_told = known > self.failed || self.unknown == 0;
                (is_told && known > 0).then(|| self.failed as f64 / known as f64)
            }
            Take::Failures => Some(self.failed as f64),
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
            let (found, right) = (seen.figure(take, false, 0.0).unwrap(), q * count as f64);
            assert!((found - right).abs() / right < 1.0 / 4096.0, "{found} {right}");
        }
        assert_eq!((seen.figure(Take::Count, false, 0.0), seen.observations), (Some(count as f64), count));
    }

    #[test]
    fn nothing_makes_no_percentile() {
        let of_nothing = |take| Seen::default().figure(take, false, 1.0);
        assert_eq!((of_nothing(Take::P99), of_nothing(Take::Sum)), (None, Some(0.0)));
        let mut unsaid = Seen::default();
        unsaid.nothing();
        assert_eq!([Take::Sum, Take::PerSecond, Take::Share].map(|take| unsaid.figure(take, false, 1.0)), [None; 3]);
    }

    #[test]
    fn what_times_of_a_process_have_in_common_counts_once() {
        let mut seen = Seen::default();
        for (process, start, ns) in [(1, 50, 20), (1, 0, 10), (1, 5, 10), (1, 6, 2), (2, 0, 10), (1, 15, 0)] {
            seen.add(ns as f64, None);
            seen.span(process, start, ns);
        }
        assert_eq!(seen.figure(Take::Covered, false, 100.0), Some(15.0 + 20.0 + 10.0));
        assert_eq!(seen.figure(Take::CoveredShare, false, 100.0), Some(0.45));
        assert_eq!(Seen::default().figure(Take::Covered, false, 100.0), Some(0.0));
    }

    #[test]
    fn the_part_that_failed_is_one_of_known_outcomes() {
        let figure = |words: &[Option<&str>]| {
            let mut seen = Seen::default();
            words.iter().for_each(|word| seen.result(*word));
            (seen.figure(Take::Failed, false, 0.0), seen.figure(Take::Failures, false, 0.0))
        };
        let (success, failure, unknown) = (Some("success"), Some("failure"), Some("unknown"));
        assert_eq!(figure(&[success, failure, unknown, None]), (Some(0.5), Some(1.0)));
        assert_eq!(figure(&[failure, failure, None]), (Some(1.0), Some(2.0)), "one goes on");
        assert_eq!(figure(&[failure, unknown, unknown]), (None, Some(1.0)), "success is never said");
        assert_eq!(figure(&[unknown, None]), (None, Some(0.0)));
    }

    #[test]
    fn a_mean_counts_what_each_value_stands_for() {
        let mut seen = Seen::default();
        for (value, weight) in [(10.0, 1.0), (50.0, 99.0)] {
            seen.add(value, None);
            seen.weigh(value, weight);
        }
        assert_eq!(seen.figure(Take::Mean, true, 0.0), Some(49.6));
        assert_eq!(seen.figure(Take::Mean, false, 0.0), Some(30.0));
    }
}
