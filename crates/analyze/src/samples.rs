//! Compares two sets of runs: medians, and whether the difference is significant.

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

/// The two-sided test of Mann and Whitney: the probability that two sets of runs of the same program differ at least
/// this much.
/// `None` when one of them is empty.
///
/// Up to 40 runs together all ways to deal them out are counted (equal values share their ranks); beyond, the normal
/// distribution is taken, with corrections for equal values and for continuity.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let doubled = doubled_ranks(a, b);
    let own: usize = doubled.iter().take(a.len()).sum();
    Some(if doubled.len() <= EXACT { exact(&doubled, a.len(), own) } else { normal(&doubled, a.len(), own) })
}

/// The least that [`mann_whitney`] can give for these numbers of runs: when one set lies wholly below the other.
pub fn least_chance(a: usize, b: usize) -> f64 {
    let low: Vec<f64> = (0..a).map(|n| n as f64).collect();
    let high: Vec<f64> = (a..a + b).map(|n| n as f64).collect();
    mann_whitney(&low, &high).unwrap_or(1.0)
}

/// Twice the rank of each value among all, so that shared ranks are whole numbers.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut sorted = all.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |value: &f64| {
        let less = sorted.partition_point(|other| other < value);
        let same = sorted.partition_point(|other| other <= value).saturating_sub(less);
        // The mean of the places less + 1 to less + same, doubled.
        2 * less + same + 1
    };
    all.iter().map(rank).collect()
}

fn exact(doubled: &[usize], chosen: usize, own: usize) -> f64 {
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
    let sums = ways.pop().unwrap_or_default();
    let all: f64 = sums.iter().sum();
    let below: f64 = sums.iter().take(own + 1).sum();
    let above: f64 = sums.iter().skip(own).sum();
    (2.0 * below.min(above) / all).min(1.0)
}

fn normal(doubled: &[usize], chosen: usize, own: usize) -> f64 {
    let (n, m) = (chosen as f64, (doubled.len() - chosen) as f64);
    let all = n + m;
    let mut counts = std::collections::BTreeMap::new();
    for rank in doubled {
        *counts.entry(rank).or_insert(0.0f64) += 1.0;
    }
    let ties: f64 = counts.values().map(|t| t * t * t - t).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (own as f64 / 2.0 - n * (all + 1.0) / 2.0).abs() - 0.5;
    (2.0 * upper_tail(distance.max(0.0) / variance.sqrt())).min(1.0)
}

/// What the standard normal distribution has above `z`. Abramowitz and Stegun 26.2.17: right to 7.5e-8.
fn upper_tail(z: f64) -> f64 {
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
        assert!(close(least_chance(5, 5), 2.0 / 252.0));
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
        let doubled = doubled_ranks(&a, &shifted(4.5, 20));
        let own = doubled.iter().take(20).sum();
        assert!((exact(&doubled, 20, own) - normal(&doubled, 20, own)).abs() < 0.005);
    }

    #[test]
    fn many_runs_take_no_time() {
        let runs = |shift: u32| (0..50_000).map(|n| f64::from((n * 7919 + shift) % 10_007)).collect::<Vec<_>>();
        let began = std::time::Instant::now();
        assert!(mann_whitney(&runs(0), &runs(1)).unwrap() > 0.5);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (Some(2.0), Some(2.5), None));
    }
}
