//! A collector that adapts the number of its heaps takes more of the time than it aims at.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;
use crate::samples::median;

pub(super) const RULE: Rule = Rule {
    name: "datas_cost",
    unit: "share",
    info: 0.02,
    warning: 0.05,
    needs: &["collections"],
    record: "gc",
    next: "tracequet stats IN",
    causes: &["large_object_triggers", "induced", "boxing", "string_churn"],
    of_recording: false,
    judge,
};

/// Measures that are needed.
const LEAST: usize = 5;

fn judge(look: &Look<'_>) -> Judged {
    let costs = &look.process.throughput_costs;
    if look.picture.collections.of(look.id).next().is_none() {
        return Judged::too_little("There are no collections.");
    }
    if (1..LEAST).contains(&costs.len()) {
        return Judged::too_little(format!("The collector measured its cost {} times: too few.", costs.len()));
    }
    let value = median(costs).unwrap_or_default() / 100.0;
    let sentence = match costs.is_empty() {
        true => "The collector does not adapt the number of its heaps.".to_owned(),
        false => format!(
            "By its own measure the collector, which adapts the number of its heaps, takes {} of the time.",
            words::percent(value)
        ),
    };
    let evidence = format!(
        "SELECT ts, gc_id, field, value FROM gc_tuning WHERE {} AND event_name = 'SizeAdaptationTuning' \
         AND field IN ('median_throughput_cost_percent', 'new_heap_count') ORDER BY ts, field LIMIT 100",
        look.of_process
    );
    Figure { value, rows: costs.len() as u64, sentence, evidence, ..Figure::default() }.into()
}
