//! The machine, or the container, has little memory left.

use crate::findings::collections::Gc;
use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "high_memory_load",
    title: "Memory is nearly used up",
    about: "The machine or the container has little memory left, and the GC works harder.",
    measure: "The highest memory load that a GC measured. Where half of the GCs, and five, are gen 2 and began because there was no room \
        left (the reason `OutOfSpace`), the heap is at a limit, and the figure is 100 %.",
    unit: "share",
    info: 0.80,
    warning: 0.90,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc): 80 and 90 %.",
    needs: &["collections"],
    record: "gc",
    advice: "Give the machine or container more memory, keep less alive, or set `System.GC.ConserveMemory`. A limit of the heap \
        (`System.GC.HeapHardLimit`, `System.GC.HeapHardLimitPercent`, `DOTNET_GCHeapHardLimit`) leaves room above what is alive: half \
        as much again.",
    causes: &["leak", "growing_live_set"],
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
    let at_limit = at_limit(look);
    let loads: Vec<u64> = look.picture.collections.of(look.id).filter_map(|gc| gc.memory_load).collect();
    let rows = loads.len() as u64;
    let Some(most) = loads.into_iter().max() else { return Judged::none("GC that says it") };
    let value = if at_limit.is_some() { 1.0 } else { most as f64 / 100.0 };
    let subject = at_limit.is_some().then(|| "System.GC.HeapHardLimit".to_owned());
    let sentence =
        at_limit.unwrap_or_else(|| format!("Up to {most} % of the memory was in use, as the GC measures it."));
    Figure { value, rows, subject, sentence, ..Figure::default() }.into()
}

/// GCs for want of room, without which the heap is at no limit.
const LEAST: usize = 5;

/// Where the heap is at a limit, a sentence on it.
fn at_limit(look: &Look<'_>) -> Option<String> {
    let (picture, process) = (look.picture, look.process);
    let all = picture.collections.of(look.id).filter(|gc| !gc.is_induced && !gc.is_dump).count();
    let for_room =
        |gc: &&Gc| gc.generation == Some(2) && picture.text(gc.reason).is_some_and(|why| why.starts_with("OutOfSpace"));
    let full = picture.collections.of(look.id).filter(for_room).count();
    let size =
        if process.committed > 0.0 { format!(" beyond {}", words::size(process.committed)) } else { String::new() };
    let container = match picture.memory_limit {
        Some(bytes) => format!(", or that of its container, which has {}", words::size(bytes as f64)),
        None => String::new(),
    };
    (full >= LEAST && full * 2 >= all).then(|| {
        format!(
            "{full} of {all} GCs began because there was no room left: a limit does not let the heap grow{size} \
             (`System.GC.HeapHardLimit`{container})."
        )
    })
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
