//! The live set grows: what full collections find alive gets larger from one to the next.

use crate::findings::collections::Gc;
use crate::findings::line::Line;
use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "growing_live_set",
    title: "The live heap keeps growing",
    about: "What gen 2 GCs find alive grows from one to the next: a leak, or a cache without a bound.",
    measure: "Growth along the line of least squares through the bytes that gen 2 GCs found alive (gen 2, LOH and \
        POH), divided by their median. The smaller of the growth over all GCs and of twice the growth over the later \
        half, because caches fill at the start. At least five gen 2 GCs over five seconds, a line that explains 80 % \
        of the differences, and growth of 4 MB; else 0 or no verdict. With fewer gen 2 GCs, a steady growth of gen 2 \
        and the LOH by 20 MB is worth a look, and no warning: what is in them may be dead. Within ten seconds there is \
        no warning: programs grow when they start. `leak` names what grows. With a heap dump in the recording \
        (`--heap-at-end`) `explain` names what holds the type of `leak`, or else the type of your own that retains \
        most.",
    unit: "share",
    info: 0.10,
    warning: 0.50,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc) (gen 2 promoted bytes); limits tracequet's own.",
    needs: &["heap_sizes"],
    record: "gc",
    advice: "Give caches and dictionaries a bound, unsubscribe from static events, and dispose of timers.",
    closer: closer::HEAP_OF_TYPE,
    causes: &["blocked_finalizer", "leak"],
    evidence: Evidence { sections: &["stacks-live", "retained", "survival", "collections"], sort: None },
    query: "SELECT g.gc_id, g.start_ts, g.generation, sum(s.promoted_bytes) AS alive_bytes, sum(s.size_bytes) AS size_bytes FROM gc g \
        JOIN gc_heap_stats s ON s.trace_id = g.trace_id AND s.gc_id = g.gc_id WHERE s.generation >= 2 \
        AND {process of g} GROUP BY ALL ORDER BY g.generation DESC, g.start_ts LIMIT 100",
    example: Example::of("habits/grows", "habits/grows-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Full collections that are needed, and bytes of growth: a line through few points or little growth says nothing.
const LEAST: usize = 5;
const LEAST_BYTES: f64 = 4e6;

/// Nanoseconds from the first to the last of them.
const LEAST_SPAN: f64 = 5e9;

/// Within fewer there is no warning: that may be how the program starts.
const WARM_SPAN: f64 = 10e9;

/// Bytes of growth where full collections are few.
const LEAST_UNSEEN: f64 = 20e6;

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    // What was found alive in generation 2 and among large objects. A dump of the heap is one more look at the same.
    let found = all.of(look.id).filter(|gc| gc.generation == Some(2) && gc.is_complete);
    let points: Vec<(f64, f64)> =
        found.filter_map(|gc| Some((gc.start_ns as f64, all.old_bytes_of(gc)?.alive() as f64))).collect();
    // Caches that fill while the program warms up grow in the first half alone.
    let (Line { span, first, last, median, r2, .. }, growth) = Line::and_lasting_growth(&points);
    if points.len() >= LEAST && span < LEAST_SPAN {
        return Judged::TooLittle(Lack::time(span, LEAST_SPAN, "every program grows when it starts"));
    }
    if points.len() < LEAST
        && let Some(figure) = old_generation(look, points.len())
    {
        return figure.into();
    }
    if points.len() < LEAST {
        return Judged::too_few(points.len() as u64, LEAST as u64, "gen 2 GCs");
    }
    let is_steady = r2 >= 0.8 && growth >= LEAST_BYTES;
    let value = if median > 0.0 && is_steady { growth / median } else { 0.0 };
    let sentence = match value > 0.0 {
        true => format!(
            "The live set grew from {} to {} over {} gen 2 GCs.",
            words::size(first),
            words::size(last),
            points.len()
        ),
        false => format!("The live set does not grow steadily over {} gen 2 GCs.", points.len()),
    };
    let at_most = (span < WARM_SPAN).then_some(60.0);
    Figure { value, rows: points.len() as u64, at_most, sentence, ..Figure::default() }.into()
}

/// Where full collections are few: generation 2 grows steadily. What is in it may be dead, so that this is no warning.
fn old_generation(look: &Look<'_>, full: usize) -> Option<Figure> {
    let all = &look.picture.collections;
    let size = |gc: &Gc| all.old_bytes_of(gc).map(|old| old.size() as f64);
    let points: Vec<(f64, f64)> = all.of(look.id).filter_map(|gc| Some((gc.start_ns as f64, size(gc)?))).collect();
    let Line { span, first, last, median, growth, r2 } = Line::through(&points);
    if points.len() < LEAST || span < LEAST_SPAN || r2 < 0.8 || growth < LEAST_UNSEEN || median <= 0.0 {
        return None;
    }
    let sentence = format!(
        "Gen 2 and the LOH grew from {} to {}, with {full} gen 2 GCs: too few to see what of it lives.",
        words::size(first),
        words::size(last)
    );
    let (value, rows, at_most) = (growth / median, points.len() as u64, Some(60.0));
    Some(Figure { value, rows, at_most, sentence, ..Figure::default() })
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapStats};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        for gc_id in 1..=12 {
            made.gc(gc_id, 2, "AllocSmall", "background");
            let promoted_bytes = 20_000_000 + (f64::from(gc_id) * x * 10e6) as u64;
            made.tables.add(&GcHeapStats { gc_id, generation: 2, promoted_bytes, ..GcHeapStats::default() });
        }
    }
}
