//! Full collections stop the program instead of running beside it.

use crate::findings::collections::Gc;
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::subjects::collections::{NOT_BACKGROUND, NOT_DUMP, NOT_INDUCED};

pub(super) const RULE: Rule = Rule {
    name: "blocking_full",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &["large_object_triggers", "induced", "leak", "growing_live_set", "high_memory_load"],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let full: Vec<&Gc> =
        picture.collections.of(*id).filter(|gc| gc.generation == Some(2) && !gc.is_dump && !gc.is_induced).collect();
    if full.len() < 5 {
        return Judged::too_little(format!("{} full collections are too few.", full.len()));
    }
    let blocking = full.iter().filter(|gc| !gc.is_background).count();
    let value = blocking as f64 / full.len() as f64;
    let sentence = format!("{blocking} of {} full collections stopped the program.", full.len());
    let evidence =
        shared::collections(look, &format!("generation = 2 AND {NOT_BACKGROUND} AND {NOT_DUMP} AND {NOT_INDUCED}"));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows: full.len() as u64, at_most, sentence, evidence, ..Figure::default() }.into()
}
