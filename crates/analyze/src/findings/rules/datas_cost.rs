//! A collector that adapts the number of its heaps takes more of the time than it aims at.

use crate::findings::prelude::*;
use crate::samples::median;

pub(super) const RULE: Rule = Rule {
    name: "datas_cost",
    title: "DATAS spends more on GCs than it aims at",
    about: "The GC of .NET 9 and later that adapts the number of its heaps (DATAS) has more to do than it aims at.",
    measure: "Median of the throughput cost that it measures (`SizeAdaptationTuning`). At least five measures. Without any, \
        it does not adapt, and the figure is 0.",
    unit: "share",
    info: 0.02,
    warning: 0.05,
    source: "2 % is what [it aims at](https://learn.microsoft.com/dotnet/standard/garbage-GC/datas); 5 % tracequet's \
        own.",
    needs: &["collections"],
    record: "gc",
    advice: "Allocate less. If processors are free, try `System.GC.DynamicAdaptationMode` 0, which takes more memory.",
    closer: closer::ALLOCATIONS,
    causes: &["large_object_triggers", "induced", "boxing", "string_churn"],
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    query: "SELECT ts, gc_id, field, value FROM gc_tuning WHERE {process} AND event_name = 'SizeAdaptationTuning' \
        AND field IN ('median_throughput_cost_percent', 'new_heap_count') ORDER BY ts, field LIMIT 100",
    example: Example::of("habits/datas", "habits/datas-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Measures that are needed.
const LEAST: usize = 5;

fn judge(look: &Look<'_>) -> Judged {
    let costs = &look.process.throughput_costs;
    if look.picture.collections.of(look.id).next().is_none() {
        return Judged::none("GC");
    }
    if (1..LEAST).contains(&costs.len()) {
        return Judged::too_few(costs.len() as u64, LEAST as u64, "measures of the GC's cost");
    }
    let value = median(costs).unwrap_or_default() / 100.0;
    let sentence = match costs.is_empty() {
        true => "DATAS is off: the GC does not adapt the number of its heaps.".to_owned(),
        false => format!("By its own measure the GC (DATAS) takes {} of the time.", words::percent(value)),
    };
    Figure { value, rows: costs.len() as u64, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcTuning};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=10).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            let row = GcTuning {
                process_id: 7,
                gc_id,
                event_name: "SizeAdaptationTuning",
                field: "median_throughput_cost_percent",
                value: x * 8.0,
                ..GcTuning::default()
            };
            made.tables.add(&row);
        });
    }
}
