//! Compares two sets of runs: medians, and whether the difference is significant.

/// A difference that chance makes less often than this is one.
pub const CHANCE: f64 = 0.05;

/// Runs together for which chance is counted out exactly; beyond, the normal distribution is near enough.
const EXACT: usize = 40;

/// The median; of an even number, the mean of the two in the middle. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(middle.checked_sub(1)?).map(|lower| f64::midpoint(*lower, upper))
}

/// Standard deviations on each side of an interval that has the truth in it with a certainty of 95 %.
const Z: f64 = 1.959_964;

/// The lower end of the interval for a share that was seen in a number of observations (Wilson, with the correction for continuity). 0 of none.
pub fn least_share(share: f64, observations: u64) -> f64 {
    if observations == 0 {
        return 0.0;
    }
    let (n, z2) = (observations as f64, Z * Z);
    let half = Z * (z2 - 1.0 / n + 4.0 * n * share * (1.0 - share) + 4.0 * share - 2.0).max(0.0).sqrt() + 1.0;
    ((2.0 * n * share + z2 - half) / (2.0 * (n + z2))).clamp(0.0, share.max(0.0))
}

/// The lower end of the interval for how often something comes by chance in a time (Poisson), as a part of how often it came. Wilson and
/// Hilferty: 0.013 of 1, 0.27 of 4, 0.48 of 10.
pub fn least_part(count: u64) -> f64 {
    let n = (count as f64).max(f64::MIN_POSITIVE);
    (1.0 - 1.0 / (9.0 * n) - Z / (3.0 * n.sqrt())).max(0.0).powi(3)
}

/// Whether `a` runs on one side and `b` on the other can show a difference at all: four on each side, or more on one where there are fewer on the
/// other.
pub fn can_tell(a: usize, b: usize) -> bool {
    least_chance(a, b) <= CHANCE
}

/// The probability of such a difference by chance, as [`mann_whitney`] has it. `None`, which is not known, for too few
/// runs ([`can_tell`]).
pub fn chance(a: &[f64], b: &[f64]) -> Option<f64> {
    mann_whitney(a, b).filter(|_| can_tell(a.len(), b.len()))
}

/// The two-sided test of Mann and Whitney: the probability that two sets of runs of the same program differ at least
/// this much.
/// `None` when one of them is empty.
///
/// Up to 40 runs together all ways to deal them out are counted (equal values share their ranks); beyond, the normal
/// distribution is taken, with corrections for equal values and for continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    tails(a, b).map(|[below, above]| (2.0 * below.min(above)).min(1.0))
}

/// The one-sided tests of Mann and Whitney: the probabilities that the first of two sets of runs of the same program
/// lies at least this much below the second, and above it. `None` when one of them is empty.
pub fn tails(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let doubled = doubled_ranks(&[a, b].concat());
    let own: usize = doubled.iter().take(a.len()).sum();
    Some(if doubled.len() <= EXACT { exact(&doubled, a.len(), own) } else { normal(&doubled, a.len(), own) })
}

/// The least that [`mann_whitney`] can give for these numbers of runs: when one set lies wholly below the other, which
/// is one of all ways to deal them out.
pub fn least_chance(a: usize, b: usize) -> f64 {
    if a == 0 || b == 0 {
        return 1.0;
    }
    let ways = (1..=a.min(b)).fold(1.0, |ways, n| ways * (a.max(b) + n) as f64 / n as f64);
    (2.0 / ways).min(1.0)
}

/// By how much one set of runs lies above another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The median of the differences between each run of one set and each of the other (Hodges and Lehmann).
    pub estimate: f64,
    /// Between which differences it lies. `None` for too few runs.
    pub interval: Option<[f64; 2]>,
}

/// By how much `a` lies above `b`. Each end of the interval is exceeded with probability `chance`, as the one-sided
/// test of Mann and Whitney says. `None` when one of them is empty, or when a value is not finite.
pub fn shift(a: &[f64], b: &[f64], chance: f64) -> Option<Shift> {
    let (a, b) = (thinned(a), thinned(b));
    let mut all: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| a - b)).collect();
    if all.iter().any(|difference| !difference.is_finite()) {
        return None;
    }
    all.sort_unstable_by(f64::total_cmp);
    let estimate = median(&all)?;
    let outside = rank_outside(a.len(), b.len(), chance);
    let interval = outside.checked_sub(1).and_then(|low| Some([*all.get(low)?, *all.get(all.len() - outside)?]));
    Some(Shift { estimate, interval })
}

/// At most this many values, evenly from the least to the greatest.
fn thinned(values: &[f64]) -> Vec<f64> {
    const MOST: usize = 1000;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.len() <= MOST {
        return sorted;
    }
    (0..MOST).filter_map(|n| sorted.get(n * (sorted.len() - 1) / (MOST - 1)).copied()).collect()
}

/// The number of sorted differences of `n` and `m` runs that lie outside of the interval on each side, with the one at
/// its end.
fn rank_outside(n: usize, m: usize, chance: f64) -> usize {
    if n + m > EXACT {
        let (a, b) = (n as f64, m as f64);
        let z = upper_quantile(chance);
        return (a * b / 2.0 - z * (a * b * (a + b + 1.0) / 12.0).sqrt()).floor().max(0.0) as usize;
    }
    let doubled: Vec<usize> = (1..=n + m).map(|rank| 2 * rank).collect();
    let sums = ways(&doubled, n);
    let all: f64 = sums.iter().sum();
    let mut below = 0.0;
    // The least sum of ranks is n (n + 1) / 2; sums are doubled.
    (0..=n * m)
        .take_while(|more| {
            below += sums.get(n * (n + 1) + 2 * more).copied().unwrap_or_default();
            below / all <= chance
        })
        .count()
}

/// The number of runs that each of two sets needs to show a difference with probability 0.8, where differences of chance are
/// found with probability `chance`, by the spread of these runs. `None` when they do not differ, or have no spread.
///
/// Source: G. E. Noether, Sample size determination for some common nonparametric tests, 1987, for values that are
/// distributed normally.
pub fn runs_needed(a: &[f64], b: &[f64], chance: f64) -> Option<u32> {
    let (own, theirs) = (median(a)?, median(b)?);
    let distances: Vec<f64> = a.iter().map(|a| (a - own).abs()).chain(b.iter().map(|b| (b - theirs).abs())).collect();
    // Of values that are distributed normally, the standard deviation.
    let spread = 1.4826 * median(&distances)?;
    let distance = (own - theirs).abs();
    let z = upper_quantile(chance) + upper_quantile(0.2);
    // The share of pairs in which a run of one set lies above one of the other, beyond a half.
    let beyond = 0.5 - upper_tail(distance / spread / std::f64::consts::SQRT_2);
    let needed = (z * z / (6.0 * beyond * beyond)).ceil();
    (needed.is_finite() && spread > 0.0 && distance > 0.0).then(|| needed.clamp(4.0, f64::from(u32::MAX)) as u32)
}

/// Twice the rank of each value among all, so that shared ranks are whole numbers.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |value: &f64| {
        let less = sorted.partition_point(|other| other < value);
        let same = sorted.partition_point(|other| other <= value).saturating_sub(less);
        // The mean of the places less + 1 to less + same, doubled.
        2 * less + same + 1
    };
    values.iter().map(rank).collect()
}

fn exact(doubled: &[usize], chosen: usize, own: usize) -> [f64; 2] {
    let sums = ways(doubled, chosen);
    let all: f64 = sums.iter().sum();
    let below: f64 = sums.iter().take(own + 1).sum();
    let above: f64 = sums.iter().skip(own).sum();
    [below / all, above / all]
}

/// In how many ways so many of the runs have each sum of ranks.
fn ways(doubled: &[usize], chosen: usize) -> Vec<f64> {
    let total: usize = doubled.iter().sum();
    // ways[n][sum]: in how many ways n of the runs have this sum of ranks.
    let mut ways = vec![vec![0.0f64; total + 1]; chosen + 1];
    if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
        *none = 1.0;
    }
    for rank in doubled {
        for n in (0..chosen).rev() {
            let (before, after) = ways.split_at_mut(n + 1);
            let (Some(from), Some(to)) = (before.last(), after.first_mut()) else { continue };
            for (count, place) in from.iter().zip(to.iter_mut().skip(*rank)) {
                *place += count;
            }
        }
    }
    ways.pop().unwrap_or_default()
}

fn normal(doubled: &[usize], chosen: usize, own: usize) -> [f64; 2] {
    let (n, m) = (chosen as f64, (doubled.len() - chosen) as f64);
    let all = n + m;
    let mut counts = std::collections::BTreeMap::new();
    for rank in doubled {
        *counts.entry(rank).or_insert(0.0f64) += 1.0;
    }
    let ties: f64 = counts.values().map(|t| t * t * t - t).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return [1.0, 1.0];
    }
    let above = own as f64 / 2.0 - n * (all + 1.0) / 2.0;
    // Sums of ranks are whole: half of one belongs to either side.
    let tail = |distance: f64| upper_tail((distance - 0.5) / variance.sqrt());
    [tail(-above), tail(above)]
}

/// Above which value the standard normal distribution has this part, which is less than half.
fn upper_quantile(part: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *(if upper_tail(middle) > part { &mut low } else { &mut high }) = middle;
    }
    low
}

/// The part of the standard normal distribution above `z`. Abramowitz and Stegun 26.2.17: right to 7.5e-8.
fn upper_tail(z: f64) -> f64 {
    // The series is for values that are not negative.
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    /// By the tables of Mann and Whitney (1947), that is by counting.
    #[test]
    fn chance_is_that_of_the_tables() {
        let run = |a: &[i32], b: &[i32]| {
            let list = |values: &[i32]| values.iter().map(|n| f64::from(*n)).collect::<Vec<_>>();
            mann_whitney(&list(a), &list(b)).unwrap()
        };
        // U = 0 of 3 and 3, of 4 and 4, of 5 and 5: two of 20, of 70, of 252 ways.
        assert!(close(run(&[1, 2, 3], &[4, 5, 6]), 2.0 / 20.0));
        assert!(close(run(&[5, 6, 7, 8], &[1, 2, 3, 4]), 2.0 / 70.0));
        assert!(
            close(least_chance(5, 5), 2.0 / 252.0)
                && close(least_chance(1, 49), 0.04)
                && close(least_chance(1, 1), 1.0)
        );
        for (a, b) in [(4, 4), (3, 9), (1, 7)] {
            let run = |from: usize, count: usize| (from..from + count).map(|n| n as f64).collect::<Vec<_>>();
            assert!(close(least_chance(a, b), mann_whitney(&run(0, a), &run(a, b)).unwrap()), "{a} {b}");
        }
        // U = 2 of 5 and 5: 1 + 1 + 2 ways below or at it.
        assert!(close(run(&[1, 2, 3, 4, 7], &[5, 6, 8, 9, 10]), 2.0 * 4.0 / 252.0));
        assert!(close(run(&[1, 1, 1], &[1, 1, 1]), 1.0));
        assert!(close(run(&[1], &[2]), 1.0));
        // Equal values share ranks: {1, 2, 2} and {2, 3, 3}; 1 + 2 * 2 ... of the 20 ways 3 have this sum or less.
        assert!(run(&[1, 2, 2], &[2, 3, 3]) > 0.1);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn many_runs_go_by_the_normal_distribution() {
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6 && close(upper_tail(0.0), 0.5));
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let shifted = |by: f64, count: usize| a.iter().take(count).map(|n| n + by).collect::<Vec<_>>();
        // Both ways of counting agree where both can be taken.
        let doubled = doubled_ranks(&[a.as_slice(), &shifted(4.5, 20)].concat());
        let own = doubled.iter().take(20).sum();
        for (exact, normal) in exact(&doubled, 20, own).into_iter().zip(normal(&doubled, 20, own)) {
            assert!((exact - normal).abs() < 0.005, "{exact} {normal}");
        }
    }

    /// By the tables of Hollander and Wolfe (Nonparametric Statistical Methods, table A.6), that is by counting.
    /// Against the exact intervals (Clopper and Pearson, Garwood).
    #[test]
    fn few_observations_have_wide_intervals() {
        for (part, all, least) in [(4, 4, 0.40), (9, 10, 0.555), (35, 40, 0.732), (90, 100, 0.824), (1, 3, 0.008)] {
            let found = least_share(f64::from(part) / f64::from(all), all as u64);
            assert!(
                (found - least).abs() < 0.015 && found <= f64::from(part) / f64::from(all),
                "{part} of {all}: {found}"
            );
        }
        for (count, least) in [(1u64, 0.025), (3, 0.206), (4, 0.272), (10, 0.480), (100, 0.814)] {
            assert!((least_part(count) - least).abs() < 0.015, "{count}: {}", least_part(count));
        }
        assert_eq!((least_share(0.0, 0), least_share(1.0, 0), least_part(0)), (0.0, 0.0, 0.0));
    }

    #[test]
    fn the_interval_of_a_shift_is_that_of_the_test() {
        // 4 and 4: one way of 70 lies outside on each side; 5 and 5: three sums of 252 ways (1 + 1 + 2), 0.0159.
        assert_eq!((rank_outside(4, 4, 0.02), rank_outside(5, 5, 0.02), rank_outside(3, 3, 0.02)), (1, 3, 0));
        let found = shift(&[11.0, 12.0, 13.0, 14.0], &[1.0, 2.0, 3.0, 4.0], 0.02).unwrap();
        assert_eq!((found.estimate, found.interval), (10.0, Some([7.0, 13.0])));
        assert_eq!(shift(&[1.0], &[3.0], 0.02).unwrap(), Shift { estimate: -2.0, interval: None });
        assert_eq!((shift(&[], &[1.0], 0.02), shift(&[f64::NAN], &[1.0], 0.02)), (None, None));
        assert!((upper_quantile(0.025) - 1.959_964).abs() < 1e-5 && (upper_quantile(0.2) - 0.841_621).abs() < 1e-5);
        // Both ways of counting agree at the border.
        let (exact, normal) = (rank_outside(20, 20, 0.02), rank_outside(20, 21, 0.02));
        assert!((120..=126).contains(&exact) && (126..=132).contains(&normal), "{exact} {normal}");
    }

    /// The interval of normal values has the truth in it as often as it says, and the number of runs gives the power
    /// that it says.
    #[test]
    fn intervals_and_numbers_of_runs_keep_their_word() {
        let mut dice = crate::tests::dice::Dice(7);
        // The sum of twelve has variance 1.
        let mut normal =
            |mean: f64| mean + (0..12).map(|_| dice.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0;
        let (mut outside, mut found) = (0, 0);
        for _ in 0..2000 {
            let own: Vec<f64> = (0..8).map(|_| normal(1.0)).collect();
            let theirs: Vec<f64> = (0..8).map(|_| normal(0.0)).collect();
            let [low, high] = shift(&own, &theirs, 0.02).unwrap().interval.unwrap();
            outside += u32::from(low > 1.0) + u32::from(high < 1.0);
        }
        // Four of a hundred at most, and four deviations of that.
        assert!((20..=80 + 35).contains(&outside), "{outside}");
        let spread: Vec<f64> = (0..2001).map(|_| normal(0.0)).collect();
        let above: Vec<f64> = spread.iter().map(|value| value + 1.0).collect();
        let needed = runs_needed(&above, &spread, 0.02).unwrap();
        assert!((18..=24).contains(&needed), "{needed}");
        for _ in 0..1000 {
            let own: Vec<f64> = (0..needed).map(|_| normal(1.0)).collect();
            let theirs: Vec<f64> = (0..needed).map(|_| normal(0.0)).collect();
            found += u32::from(tails(&own, &theirs).unwrap()[1] <= 0.02);
        }
        assert!((720..=900).contains(&found), "{found}");
        assert_eq!(
            (runs_needed(&[1.0; 4], &[2.0; 4], 0.02), runs_needed(&[1.0, 2.0], &[1.0, 2.0], 0.02)),
            (None, None)
        );
    }

    #[test]
    fn runs_are_not_compared_pair_by_pair() {
        // Work for each of the 40 billion pairs would take minutes.
        let runs = |shift: u32| (0..200_000).map(|n| f64::from((n * 7919 + shift) % 10_007)).collect::<Vec<_>>();
        assert!(mann_whitney(&runs(0), &runs(1)).unwrap() > 0.5);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (Some(2.0), Some(2.5), None));
    }
}
