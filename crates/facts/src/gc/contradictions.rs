//! Contradictions between surviving and moved ranges of one collection.

use super::sorted_runs::Runs;

/// Looks for ranges that survived in place and moved as well, and for ranges that moved to one place.
#[derive(Default)]
pub struct Contradictions {
    /// Old start, length, and 1 for those that moved; empty when there is only one kind.
    before: Option<Runs<3>>,
    /// New start and length of those that moved.
    targets: Option<Runs<2>>,
}

impl Contradictions {
    /// For this many ranges. `wanted` is false where ranges are not checked.
    pub fn new(wanted: bool, surviving: u64, moved: u64) -> Contradictions {
        Contradictions {
            before: (wanted && surviving > 0 && moved > 0).then(Runs::default),
            targets: (wanted && moved > 1).then(Runs::default),
        }
    }

    /// A range that survived where it was.
    #[inline]
    pub fn survived(&mut self, start: u64, length: u64) {
        self.add_before([start, length, 0]);
    }

    /// A range that survived and moved.
    #[inline]
    pub fn moved(&mut self, old_start: u64, new_start: u64, length: u64) {
        self.add_before([old_start, length, 1]);
        if let Some(targets) = &mut self.targets
            && targets.extend(std::iter::once([new_start, length])).is_err()
        {
            self.targets = None;
        }
    }

    /// The ranges themselves are not lost when the temporary file fails, only this check is.
    #[inline]
    fn add_before(&mut self, row: [u64; 3]) {
        if let Some(before) = &mut self.before
            && before.extend(std::iter::once(row)).is_err()
        {
            self.before = None;
        }
    }

    /// The number of ranges that survived and moved, and of those that moved to where another one moved.
    pub fn count(self) -> (u64, u64) {
        let (mut survived_and_moved, mut one_target) = (0, 0);
        if let Some(mut before) = self.before {
            // Where the last range that survived in place ends, and the last one that moved.
            let mut ends = [0, 0];
            let checked = before.drain(|[start, length, moved]| {
                let [surviving_end, moved_end] = &mut ends;
                let (own, other) = if *moved == 1 { (moved_end, surviving_end) } else { (surviving_end, moved_end) };
                survived_and_moved += u64::from(*start < *other);
                *own = (*own).max(start.saturating_add(*length));
            });
            survived_and_moved = if checked.is_ok() { survived_and_moved } else { 0 };
        }
        if let Some(mut targets) = self.targets {
            let mut end = 0;
            let checked = targets.drain(|[start, length]| {
                one_target += u64::from(*start < end);
                end = end.max(start.saturating_add(*length));
            });
            one_target = if checked.is_ok() { one_target } else { 0 };
        }
        (survived_and_moved, one_target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_cannot_both_be_are_counted() {
        let mut ranges = Contradictions::new(true, 2, 3);
        ranges.survived(0x1000, 0x100);
        ranges.survived(0x5000, 0x100);
        ranges.moved(0x1080, 0x9000, 0x10);
        ranges.moved(0x2000, 0x9008, 0x10);
        ranges.moved(0x1100, 0xA000, 0x10);
        assert_eq!(ranges.count(), (1, 1));
        let mut ranges = Contradictions::new(true, 1, 2);
        ranges.survived(0x1000, 0x100);
        ranges.moved(0x1100, 0x1100, 0x10);
        ranges.moved(0x2000, 0x1110, 0x10);
        assert_eq!(ranges.count(), (0, 0), "neighbours, and a range that stays");
    }
}
