//! The machine, or the container, has little memory left.

use crate::findings::rule::{Figure, Judged, Look, Rule};

pub(super) const RULE: Rule = Rule {
    name: "high_memory_load",
    unit: "share",
    info: 0.80,
    warning: 0.90,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let loads: Vec<u64> = look.picture.collections.of(look.id).filter_map(|gc| gc.memory_load).collect();
    let rows = loads.len() as u64;
    let Some(most) = loads.into_iter().max() else { return Judged::too_little("No collection says it.") };
    let value = most as f64 / 100.0;
    let sentence = format!("Up to {most} % of the memory was in use, as the collector measures it.");
    let evidence = format!(
        "SELECT gc_id, start_ts, memory_load_percent FROM gc WHERE {} AND memory_load_percent IS NOT NULL \
         ORDER BY memory_load_percent DESC LIMIT 20",
        look.of_process
    );
    Figure { value, rows, sentence, evidence, ..Figure::default() }.into()
}
