//! Young objects live on because old ones hold them.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "young_held_by_old",
    unit: "share",
    info: 0.50,
    warning: 0.80,
    needs: &["collections"],
    record: "gc",
    next: "tracequet collect --for lifetimes",
    causes: &["leak", "growing_live_set"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut held, mut alive, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        let Some(marked) = all.marked_by(gc) else { continue };
        held += marked.from_older as f64;
        alive += marked.all as f64;
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || alive < 10e6 {
        return Judged::too_little(format!("{} that {rows} collections marked are too little.", words::size(alive)));
    }
    let value = held / alive;
    let sentence = format!(
        "{} of what collections of generation 0 and 1 found alive was held by objects of older generations.",
        words::percent(value)
    );
    let evidence = format!(
        "SELECT m.root_kind, count(DISTINCT g.gc_id) AS collections, sum(m.promoted_bytes) AS alive_bytes, \
         sum(m.duration_ns) / 1e6 AS mark_ms FROM gc g JOIN gc_mark m ON m.trace_id = g.trace_id AND m.gc_id = g.gc_id \
         WHERE {} AND g.generation <= 1 GROUP BY ALL ORDER BY alive_bytes DESC",
        look.of("g")
    );
    // What young collections do not pay for is no matter.
    let at_most = shared::cost_of_young(look);
    Figure { value, rows, at_most, sentence, evidence, ..Figure::default() }.into()
}
