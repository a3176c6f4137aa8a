//! The machine, or the container, has little memory left.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "high_memory_load",
    title: "Memory is nearly used up",
    about: "The machine or the container has little memory left, and the GC works harder.",
    measure: "The highest memory load that a GC measured.",
    unit: "share",
    info: 0.80,
    warning: 0.90,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc): 80 and 90 %.",
    needs: &["collections"],
    record: "gc",
    advice: "Give the machine or container more memory, or set `System.GC.HeapHardLimit` and `System.GC.ConserveMemory`.",
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    query: "SELECT gc_id, start_ts, memory_load_percent FROM gc WHERE {process} AND memory_load_percent IS NOT NULL \
        ORDER BY memory_load_percent DESC LIMIT 20",
    example: Example::of("habits/cache", "habits/cache-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let loads: Vec<u64> = look.picture.collections.of(look.id).filter_map(|gc| gc.memory_load).collect();
    let rows = loads.len() as u64;
    let Some(most) = loads.into_iter().max() else { return Judged::none("GC that says it") };
    let value = most as f64 / 100.0;
    let sentence = format!("Up to {most} % of the memory was in use, as the GC measures it.");
    Figure { value, rows, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let row = Gc {
            gc_id: 1,
            process_id: 7,
            generation: Some(0),
            memory_load_percent: Some((x * 99.0) as u32),
            ..Gc::default()
        };
        made.tables.add(&row);
    }
}
