//! Whether something grows steadily.

/// A line through points by least squares.
pub(super) struct Line {
    /// Along the points, from the first to the last.
    pub(super) growth: f64,
    /// The share of the differences that it explains.
    pub(super) r2: f64,
}

impl Line {
    /// Through these points, in the order of x.
    pub(super) fn through(points: &[(f64, f64)]) -> Line {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x_mean, y_mean) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - x_mean, y - y_mean)).sum::<f64>();
        let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Line { growth: 0.0, r2: 0.0 } };
        if xx <= 0.0 || yy <= 0.0 {
            return Line { growth: 0.0, r2: 0.0 };
        }
        Line { growth: xy / xx * (last.0 - first.0), r2: xy * xy / (xx * yy) }
    }

    /// The line, and what grows along it: no more than twice what grows in the later half, and not less than 0.
    pub(super) fn and_lasting_growth(points: &[(f64, f64)]) -> (Line, f64) {
        let line = Line::through(points);
        let later = points.get(points.len() / 2..).unwrap_or_default();
        let later_growth = if later.len() > 1 { 2.0 * Line::through(later).growth } else { 0.0 };
        let growth = line.growth.min(later_growth).max(0.0);
        (line, growth)
    }
}
