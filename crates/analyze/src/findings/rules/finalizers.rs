//! Many objects live on only to be finalized.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "finalizers",
    title: "Many objects wait to be finalized",
    about: "Many objects live on only to be finalized.",
    measure: "Objects a second that a GC kept alive for their finalizers, in the worst half minute. At least ten GCs. \
        The type with most finalized objects is named, and where allocations are recorded, too, your method that allocates most of such types.",
    unit: "count/s",
    info: 1000.0,
    warning: 10000.0,
    needs: &["heap_sizes"],
    record: "gc",
    advice: "Dispose of them (`using`), so that `GC.SuppressFinalize` is called.",
    causes: &["blocked_finalizer"],
    evidence: Evidence { sections: &["collections"], sort: Some("gen") },
    query: "SELECT gc_id, start_ts, generation, finalization_promoted_count FROM gc WHERE {process} AND finalization_promoted_count > 0 \
        ORDER BY finalization_promoted_count DESC LIMIT 20",
    example: Example::of("habits/finalizers", "habits/finalizers-clean", Verdict::Warning),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let mut windows = Windows::default();
    let mut rows = 0;
    for gc in look.picture.collections.of(look.id) {
        let Some(count) = gc.finalized else { continue };
        windows.at(gc.start_ns, count as f64);
        rows += 1;
    }
    let value = windows.worst(look.recording_ns()) * 1e9;
    let few = Few::sum(value, rows, shared::LEAST_COLLECTIONS, "GCs");
    // The types say whose they are: who allocates most of them.
    let finalized = &look.process.finalized;
    let part = allocations::part(look, |_, kind, _| finalized.contains_key(&kind));
    let kind = finalized.iter().max_by_key(|(kind, count)| (**count, **kind)).map(|(kind, _)| *kind);
    let subject = kind.and_then(|kind| look.picture.types.name(look.id, kind)).map(str::to_owned);
    let of_type = subject.as_ref().map_or(String::new(), |name| format!(", most of them {}", words::short(name, 80)));
    let by = part
        .own_method
        .as_ref()
        .map_or(String::new(), |method| format!("; {method} allocates most of what is finalized"));
    let sentence = format!("{} objects a second survive a GC only to be finalized{of_type}{by}.", words::three(value));
    let own_method = part.own_method;
    Figure { value, rows, few, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=30).for_each(|gc_id| {
            let row = Gc {
                gc_id,
                process_id: 7,
                generation: Some(0),
                start_ts_ns: i64::from(gc_id) * S,
                finalization_promoted_count: Some((x * 30_000.0) as u64),
                ..Gc::default()
            };
            made.tables.add(&row);
        });
    }
}
