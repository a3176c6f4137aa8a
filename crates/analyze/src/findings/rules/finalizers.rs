//! Many objects live on only to be finalized.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;
use crate::findings::windows::Windows;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "finalizers",
    unit: "count/s",
    info: 1000.0,
    warning: 10000.0,
    needs: &["heap_sizes"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let mut windows = Windows::default();
    let mut rows = 0;
    for gc in look.picture.collections.of(look.id) {
        let Some(count) = gc.finalized else { continue };
        windows.at(gc.start_ns, count as f64);
        rows += 1;
    }
    if rows < shared::LEAST_COLLECTIONS || look.seconds() < 5.0 {
        return Judged::too_little(format!(
            "{rows} collections in {} are too few.",
            words::time(look.recording_ns() as f64)
        ));
    }
    let value = windows.worst(look.recording_ns()) * 1e9;
    let sentence = format!("{} objects a second live on only to be finalized.", words::three(value));
    let evidence = format!(
        "SELECT gc_id, start_ts, generation, finalization_promoted_count FROM gc WHERE {} AND finalization_promoted_count > 0 \
         ORDER BY finalization_promoted_count DESC LIMIT 20",
        look.of_process
    );
    Figure { value, rows, sentence, evidence, ..Figure::default() }.into()
}
