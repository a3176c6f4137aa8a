//! Full collections stop the program instead of running beside it.

use crate::findings::collections::Gc;
use crate::findings::prelude::*;
use crate::subjects::collections::{NOT_BACKGROUND, NOT_DUMP, NOT_INDUCED};

pub(super) const RULE: Rule = Rule {
    name: "blocking_full",
    title: "Gen 2 GCs block the program",
    about: "Gen 2 GCs stop the program instead of running beside it.",
    measure: "Blocking gen 2 GCs, divided by all of them that were not induced. At least five, or one where the pause mode of all GCs is \
        `Batch`: then concurrent GC is off. Gen 2 GCs that take less than 1 % of the time, and none 100 ms, are fine; a warning is \
        possible from 5 % or 500 ms on.",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc); limits tracequet's own.",
    needs: &["collections"],
    record: "gc",
    advice: "Leave concurrent GC on: `System.GC.Concurrent` in runtimeconfig.json, `ConcurrentGarbageCollection` in the project, \
        `DOTNET_gcConcurrent`, and no `GCSettings.LatencyMode = GCLatencyMode.Batch`. Give the process more memory if it is short.",
    causes: &["large_object_triggers", "induced", "high_memory_load", "gen2_free_on_entry"],
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["collections"], sort: Some("pause") },
    example: Example::of("habits/photos", "habits/photos-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Full collections with which a share is taken as it is.
const LEAST: u64 = 5;

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let full: Vec<&Gc> =
        picture.collections.of(*id).filter(|gc| gc.generation == Some(2) && !gc.is_dump && !gc.is_induced).collect();
    let blocking = full.iter().filter(|gc| !gc.is_background).count();
    let (value, rows) = (blocking as f64 / full.len().max(1) as f64, full.len() as u64);
    // The setting blocks all of them.
    let mut modes = picture.collections.of(*id).filter_map(|gc| gc.may_be_background).peekable();
    let is_off = modes.peek().is_some() && modes.all(|may_be| !may_be);
    let few = Few::share(value, rows, if is_off { 1 } else { LEAST }, "gen 2 GCs");
    let off = if is_off { ": concurrent GC is off" } else { "" };
    let sentence = format!("{blocking} of {} gen 2 GCs blocked the program{off}.", full.len());
    let subject = is_off.then(|| "System.GC.Concurrent".to_owned());
    let evidence =
        shared::collections(look, &format!("generation = 2 AND {NOT_BACKGROUND} AND {NOT_DUMP} AND {NOT_INDUCED}"));
    // What costs nothing is no matter.
    let at_most = shared::cost_of_full(look);
    Figure { value, rows, at_most, few, subject, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        (1..=20).for_each(|n| made.gc(n, 2, "AllocSmall", if part(n - 1, 20) { "blocking" } else { "background" }))
    }
}
