//! Nested routines: the part of a routine's time on a processor that others took which interrupted it.

/// Routines that may lie within one that ends later. There are fewer than interrupt levels at a time; those of a
/// routine that never ends pile up.
const MAX_INNER: usize = 256;

/// The routines of a processor that ended, and that no other one is known to have contained: begin and length, in the
/// order of their ends.
#[derive(Debug, Default)]
pub struct Nesting {
    ended: Vec<(i64, i64)>,
}

impl Nesting {
    /// A routine ended. Returns how long it ran itself.
    pub fn ended(&mut self, start_ns: i64, end_ns: i64) -> i64 {
        let inner = self.ended.iter().rposition(|(start, _)| *start < start_ns).map_or(0, |last| last + 1);
        let within: i64 = self.ended.drain(inner..).map(|(_, length)| length).sum();
        if self.ended.len() >= MAX_INNER {
            self.ended.drain(..MAX_INNER / 2);
        }
        let length = end_ns.saturating_sub(start_ns);
        self.ended.push((start_ns, length));
        length.saturating_sub(within).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_within_counts_once() {
        let mut nesting = Nesting::default();
        // An interrupt and one in it, within a deferred call; then one behind it.
        assert_eq!(nesting.ended(12, 15), 3);
        assert_eq!(nesting.ended(11, 20), 6);
        assert_eq!(nesting.ended(30, 31), 1);
        assert_eq!(nesting.ended(10, 50), 40 - 9 - 1);
        assert_eq!(nesting.ended(50, 60), 10);
        assert_eq!(nesting.ended(0, 100), 100 - 40 - 10);
        assert_eq!(nesting.ended(100, 100), 0);
    }

    #[test]
    fn sums_are_those_of_every_moment() {
        let mut seed = 3u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..50 {
            // Routines that lie within one another, by a stack of those that run.
            let (mut open, mut nesting, mut now) = (Vec::new(), Nesting::default(), 0i64);
            let (mut busy, mut sum) = (0i64, 0i64);
            for step in 0..400 {
                let passed = random(5) as i64;
                now += passed;
                busy += if open.is_empty() { 0 } else { passed };
                if open.len() < 4 && step < 380 && random(2) == 0 {
                    open.push(now);
                } else if let Some(start) = open.pop() {
                    sum += nesting.ended(start, now);
                }
            }
            assert!(open.is_empty());
            assert_eq!(sum, busy);
        }
    }
}
