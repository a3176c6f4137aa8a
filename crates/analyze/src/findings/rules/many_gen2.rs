//! Too many collections are full ones.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::subjects::collections::NOT_DUMP;

pub(super) const RULE: Rule = Rule {
    name: "many_gen2",
    unit: "share",
    info: 0.10,
    warning: 0.30,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &["large_object_triggers", "induced", "leak", "growing_live_set"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let (mut full, mut other) = (0u64, 0u64);
    for gc in look.picture.collections.of(look.id).filter(|gc| !gc.is_dump) {
        if gc.generation == Some(2) { full += 1 } else { other += 1 }
    }
    if full + other < shared::LEAST_COLLECTIONS {
        return Judged::too_little(format!("{} collections are too few.", full + other));
    }
    let value = full as f64 / (full + other) as f64;
    let sentence = format!("{full} of {} collections are full ones.", full + other);
    let evidence = shared::collections(look, &format!("generation = 2 AND {NOT_DUMP}"));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows: full + other, at_most, sentence, evidence, ..Figure::default() }.into()
}
