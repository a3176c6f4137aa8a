//! Much of what survives in the young generations is pinned.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "pinned_survivors",
    unit: "share",
    info: 0.10,
    warning: 0.30,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut pinned, mut survived, mut rows) = (0.0, 0.0, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation <= Some(1)) {
        let Some([young, middle, ..]) = all.generations_of(gc) else { continue };
        pinned += young.pinned.saturating_add(middle.pinned) as f64;
        survived += young.survived.saturating_add(middle.survived) as f64;
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || survived < 10e6 {
        return Judged::too_little(format!(
            "{} that survived {rows} collections are too little.",
            words::size(survived)
        ));
    }
    let value = pinned / survived;
    let sentence = format!("{} of what survived collections of generation 0 and 1 was pinned.", words::percent(value));
    let evidence = format!(
        "SELECT g.gc_id, g.start_ts, sum(h.pinned_survived_bytes) AS pinned_bytes, sum(h.other_survived_bytes) AS other_bytes \
         FROM gc g JOIN gc_heap_generation h ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {} AND g.generation <= 1 \
         AND h.generation <= 1 GROUP BY ALL ORDER BY pinned_bytes DESC LIMIT 20",
        look.of("g")
    );
    Figure { value, rows, sentence, evidence, ..Figure::default() }.into()
}
