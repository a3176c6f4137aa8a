//! Generations over time: their sizes beside their budgets, what is free within the heap, and what is pinned.

use tracequet_analyze::subjects::heap::{Bytes, GENERATIONS, HeapGeneration};

use crate::collections::{Collection, Collections};
use crate::prelude::*;
use crate::timeline::{Line, axis, lines};

/// Names of the generations, and classes of their colours.
const NAMES: [(&str, &str); GENERATIONS] = [
    ("Generation 0", "g0"),
    ("Generation 1", "g1"),
    ("Generation 2", "g2"),
    ("Large objects", "lo"),
    ("Pinned objects", "po"),
];

/// The charts. Empty where no collection says so.
pub(crate) fn generations(recording: &Recording<'_>, collections: &Collections, end_ns: i64) -> Result<String> {
    let mut sums: Map<u32, [Option<Bytes>; GENERATIONS]> = Map::default();
    recording.each_recorded::<HeapGeneration<'_>>(|row| {
        if let Some(of) = sums.entry(row.gc_id).or_default().get_mut(usize::from(row.generation)) {
            of.get_or_insert_default().add(&row);
        }
    })?;
    // A value for each collection: of one generation or of the heap, after it.
    let points = |take: &dyn Fn(&[Option<Bytes>; GENERATIONS]) -> Option<f64>| -> Vec<(i64, f64)> {
        let point = |gc: &Collection| Some((gc.start_ns, take(sums.get(&gc.gc_id)?)?));
        collections.all.iter().filter_map(point).collect()
    };
    let most = |points: &[(i64, f64)]| points.iter().fold(0.0, |most: f64, (_, value)| most.max(*value));
    let line = |class, unit: &str, points| Line { class, unit: unit.into(), points, is_step: true, ..Line::default() };
    let mut out = String::new();
    for (generation, (name, class)) in NAMES.iter().enumerate() {
        let of = |take: fn(&Bytes) -> u64| points(&|gc| gc.get(generation)?.as_ref().map(|bytes| take(bytes) as f64));
        let (after, budget) = (of(|bytes| bytes.after), of(|bytes| bytes.budget));
        if most(&after) == 0.0 {
            continue;
        }
        let words = format!(
            "at most {} after a collection; up to {} may be allocated until the next one is due",
            size(most(&after) as u64),
            size(most(&budget) as u64)
        );
        let drawn = [line(*class, "bytes", after), line("bg", "bytes", budget)];
        out += &lines(name, &words, end_ns, None, &drawn, &[(*class, "size"), ("bg", "budget")]);
    }
    if out.is_empty() {
        return Ok(out);
    }
    let all = |gc: &[Option<Bytes>; GENERATIONS], take: fn(&Bytes) -> u64| {
        gc.iter().flatten().map(take).fold(0, u64::saturating_add) as f64
    };
    let free = points(&|gc| Some(all(gc, |bytes| bytes.free_after) * 100.0 / all(gc, |bytes| bytes.after).max(1.0)));
    let words = format!("of the heap after each collection, at most {}", share(most(&free) / 100.0));
    out += &lines("Free within the heap", &words, end_ns, Some(100.0), &[line("g0", "%", free)], &[]);
    let pinned = points(&|gc| Some(all(gc, |bytes| bytes.pinned)));
    if most(&pinned) > 0.0 {
        let words = format!("bytes that survived because they may not move, at most {}", size(most(&pinned) as u64));
        out += &lines("Pinned", &words, end_ns, None, &[line("po", "bytes", pinned)], &[]);
    }
    Ok(format!("<h3>Generations over time</h3>\n<div class=\"lanes small\">\n{out}{}</div>\n", axis(end_ns)))
}
