//! It takes long until all threads have stopped for a collection.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "slow_suspension",
    unit: "ns",
    info: 1e7,
    warning: 1e8,
    needs: &["pauses"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let slowest = look.picture.collections.pauses_of(look.id).max_by_key(|pause| pause.suspend_ns);
    let rows = look.picture.collections.pauses_of(look.id).count() as u64;
    let Some(pause) = slowest.filter(|_| rows >= shared::LEAST_COLLECTIONS) else {
        return Judged::too_little(format!("{rows} pauses are too few."));
    };
    let value = pause.suspend_ns as f64;
    let sentence =
        format!("It took up to {} until all threads had stopped, for collection {}.", words::time(value), pause.gc_id);
    let evidence = shared::pauses(look, "suspend_ns");
    let subject = Some(format!("gc_id {}", pause.gc_id));
    Figure { value, rows, subject, sentence, evidence, ..Figure::default() }.into()
}
