//! Many durations, of which quantiles are asked.

use std::collections::BTreeMap;

/// Durations, in steps of an eighth of their size.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    counts: BTreeMap<u32, u64>,
    pub(super) count: u64,
    pub(super) total_ns: f64,
    pub(super) longest_ns: i64,
}

impl Times {
    pub(super) fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        let exponent = 63 - (ns.max(1) as u64).leading_zeros();
        let part = if exponent >= 3 { (ns >> (exponent - 3)) & 7 } else { 0 };
        *self.counts.entry(exponent * 8 + part as u32).or_default() += 1;
        self.count += 1;
        self.total_ns += ns as f64;
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// The duration that this part of them does not exceed: the upper end of a step.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let wanted = (self.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (step, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                let end = 2f64.powi((step / 8) as i32) * (1.0 + f64::from(step % 8 + 1) / 8.0);
                return end.min(self.longest_ns as f64);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_ends_of_their_steps() {
        let mut times = Times::default();
        (1..=1000).for_each(|n| times.add(n * 1_000_000));
        let p99 = times.quantile(0.99) / 1e6;
        assert!((990.0..=1115.0).contains(&p99), "{p99}");
        assert_eq!(times.longest_ns, 1_000_000_000);
        [i64::MAX, i64::MIN, 0].into_iter().for_each(|ns| times.add(ns));
        assert!(times.quantile(1.0).is_finite() && Times::default().quantile(0.5) == 0.0);
    }
}
