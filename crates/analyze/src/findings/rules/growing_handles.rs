//! The number of handles of the collector grows: somebody takes them and does not free them.

use crate::findings::line::Line;
use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "growing_handles",
    title: "GC handles are taken and not freed",
    about: "GC handles (`GCHandle`, pinned and weak references, timers and native callbacks use them) are taken and \
        not freed.",
    measure: "Growth of the number of handles along the line of least squares through all GCs, divided by the median; \
        no more than twice the growth of the later half. At least ten GCs over five seconds, a line that explains 80 % \
        of the differences, and growth by 1,000 handles; else 0 or no verdict. Within ten seconds there is no warning. \
        `tracequet collect --for gc-verbose` records which handles were created, of which kind, and by whom.",
    unit: "share",
    info: 0.20,
    warning: 1.0,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["heap_sizes"],
    record: "gc",
    advice: "Call `Free` on each `GCHandle`, and dispose of timers and of objects that wrap native callbacks.",
    closer: closer::RECORD_HANDLES,
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    query: "SELECT gc_id, start_ts, handle_count FROM gc WHERE {process} AND handle_count IS NOT NULL ORDER BY start_ts LIMIT 100",
    example: Example::of("habits/handles", "habits/handles-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Handles of growth that are no matter.
const LEAST_HANDLES: f64 = 1000.0;

/// Nanoseconds without which nothing is said, and without which there is no warning: programs take handles when they start.
const LEAST_SPAN: f64 = 5e9;
const WARM_SPAN: f64 = 10e9;

fn judge(look: &Look<'_>) -> Judged {
    let all = look.picture.collections.of(look.id).filter(|gc| gc.is_complete);
    let points: Vec<(f64, f64)> = all.filter_map(|gc| Some((gc.start_ns as f64, gc.handles? as f64))).collect();
    let (Line { span, first, last, median, r2, .. }, growth) = Line::and_lasting_growth(&points);
    let rows = points.len() as u64;
    if rows < shared::LEAST_COLLECTIONS {
        return Judged::too_few(rows, shared::LEAST_COLLECTIONS, "GCs");
    }
    if span < LEAST_SPAN {
        return Judged::TooLittle(Lack::time(span, LEAST_SPAN, "every program takes handles when it starts"));
    }
    let is_steady = r2 >= 0.8 && growth >= LEAST_HANDLES;
    let value = if median > 0.0 && is_steady { growth / median } else { 0.0 };
    let sentence = match value > 0.0 {
        true => format!("Handles grew from {first:.0} to {last:.0} in {}.", words::time(span)),
        false => format!("The number of handles does not grow steadily over {} GCs.", points.len()),
    };
    let at_most = (span < WARM_SPAN).then_some(60.0);
    Figure { value, rows, at_most, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=30u32).for_each(|gc_id| {
            let row = Gc {
                gc_id,
                process_id: 7,
                generation: Some(0),
                start_ts_ns: i64::from(gc_id) * S,
                complete: true,
                handle_count: Some(2000 + (f64::from(gc_id) * x * 1000.0) as u32),
                ..Gc::default()
            };
            made.tables.add(&row);
        });
    }
}
