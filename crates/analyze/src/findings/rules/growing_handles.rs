//! The number of handles of the collector grows: somebody takes them and does not free them.

use crate::findings::line::Line;
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;
use crate::samples::median;

pub(super) const RULE: Rule = Rule {
    name: "growing_handles",
    unit: "share",
    info: 0.20,
    warning: 1.0,
    needs: &["heap_sizes"],
    record: "gc",
    next: "tracequet collect --for gc-verbose",
    causes: &[],
    of_recording: false,
    judge,
};

/// Handles of growth that are no matter.
const LEAST_HANDLES: f64 = 1000.0;

/// Nanoseconds without which nothing is said, and without which there is no warning: programs take handles when they start.
const LEAST_SPAN: f64 = 5e9;
const WARM_SPAN: f64 = 10e9;

fn judge(look: &Look<'_>) -> Judged {
    let all = look.picture.collections.of(look.id).filter(|gc| gc.is_complete);
    let points: Vec<(f64, f64)> = all.filter_map(|gc| Some((gc.start_ns as f64, gc.handles? as f64))).collect();
    let span = match (points.first(), points.last()) {
        (Some(first), Some(last)) => last.0 - first.0,
        _ => 0.0,
    };
    if (points.len() as u64) < shared::LEAST_COLLECTIONS || span < LEAST_SPAN {
        return Judged::too_little(format!("{} collections in {} are too few.", points.len(), words::time(span)));
    }
    let (line, growth) = Line::and_lasting_growth(&points);
    let middle = median(&points.iter().map(|point| point.1).collect::<Vec<_>>()).unwrap_or_default();
    let is_steady = line.r2 >= 0.8 && growth >= LEAST_HANDLES;
    let value = if middle > 0.0 && is_steady { growth / middle } else { 0.0 };
    let (first, last) = (points.first().map_or(0.0, |p| p.1), points.last().map_or(0.0, |p| p.1));
    let sentence = match value > 0.0 {
        true => format!("Handles grew from {first:.0} to {last:.0} in {}.", words::time(span)),
        false => format!("The number of handles does not grow steadily over {} collections.", points.len()),
    };
    let evidence = format!(
        "SELECT gc_id, start_ts, handle_count FROM gc WHERE {} AND handle_count IS NOT NULL ORDER BY start_ts LIMIT 100",
        look.of_process
    );
    let at_most = (span < WARM_SPAN).then_some(60.0);
    Figure { value, rows: points.len() as u64, at_most, sentence, evidence, ..Figure::default() }.into()
}
