//! Whether something grows steadily.

use crate::samples::median;

/// A line through points by least squares.
#[derive(Default)]
pub(super) struct Line {
    /// From the first point to the last.
    pub(super) span: f64,
    /// The values of the first point and of the last, and the median of all.
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) median: f64,
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
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Line::default() };
        let (span, values) = (last.0 - first.0, points.iter().map(|(_, y)| *y).collect::<Vec<_>>());
        let is_line = xx > 0.0 && yy > 0.0;
        let (growth, r2) = if is_line { (xy / xx * span, xy * xy / (xx * yy)) } else { (0.0, 0.0) };
        Line { span, first: first.1, last: last.1, median: median(&values).unwrap_or_default(), growth, r2 }
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
