//! One curve for all rules: what a figure and its limits come to.

/// From here on a finding is of interest, and from there on it is a warning.
pub const INFO: f64 = 25.0;
/// See [`INFO`].
pub const WARNING: f64 = 75.0;

/// The score of a figure: 0 to 25 in proportion up to the first limit, from there on along an exponential that reaches
/// 75 at the second limit and never 100. It never falls when the figure grows.
pub fn score(figure: f64, info: f64, warning: f64) -> f64 {
    if figure.is_nan() || figure <= 0.0 {
        return 0.0;
    }
    if figure < info {
        return INFO * figure / info;
    }
    let width = (warning - info).max(f64::MIN_POSITIVE);
    let rest = (100.0 - INFO) * (-(3f64.ln()) * (figure - info) / width).exp();
    // Exponentials differ in the last digit from system to system.
    ((100.0 - rest.max(0.0)) * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_meets_its_limits_and_never_falls() {
        for (info, warning) in [(0.05f64, 0.10), (1.0, 10.0), (0.0, 0.5), (2e8, 1e9)] {
            assert!((score(info.max(1e-12), info, warning) - 25.0).abs() < 1e-6);
            assert!((score(warning, info, warning) - 75.0).abs() < 1e-9);
            let scores: Vec<f64> = (0..400).map(|n| score(warning * f64::from(n) / 100.0, info, warning)).collect();
            assert!(scores.windows(2).all(|pair| pair[0] <= pair[1]), "{info} {warning}");
            assert!(scores.iter().all(|score| (0.0..100.0).contains(score)));
        }
        assert_eq!([f64::NAN, -1.0, 0.0].map(|figure| score(figure, 1.0, 2.0)), [0.0; 3]);
        assert_eq!(score(f64::INFINITY, 1.0, 2.0), 100.0);
    }
}
