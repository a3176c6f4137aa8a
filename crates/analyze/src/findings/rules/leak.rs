//! Objects of some types are never freed: what is alive comes in equal parts from all of the recording.

use crate::findings::collections::Gc;
use crate::findings::picture::Process;
use crate::findings::prelude::*;
use crate::findings::survivors::Growth;
use crate::subjects::allocations::TICK;

pub(super) const RULE: Rule = Rule {
    name: "leak",
    title: "Objects are never freed",
    about: "Objects are never freed: of what is alive, as much comes from the end of the recording as from its beginning.",
    measure: "Sampled objects are followed from GC to GC ([LIFETIMES.md](LIFETIMES.md)). Of those that the last gen 2 \
        GC proves alive, the bytes are added up for each fifth of the time before it, by when they were allocated. The \
        smallest of these sums, without the first fifth, times five is the growth; it is divided by what that GC found \
        alive. What was allocated behind it goes on in parts of the same length. A cache that was filled at the start \
        has nothing in the later parts, a window that moves on nothing in the earlier ones: both are 0. So is a growth \
        below 2 MB. Your method and the types with the most of it are named. Where the recording has a heap dump, too \
        (`tracequet collect --for lifetimes --heap-at-end`), `explain` names what holds the objects: of the ways in \
        which objects of the type are held, the one with most bytes, as the root and the shortest path to the object \
        that retains most. A heap whose graph takes more than 4 GB is left to `tracequet heap --memory`. `tracequet \
        lifetimes IN` has all types and methods.",
    unit: "share",
    info: 0.05,
    warning: 0.20,
    source: "limits tracequet's own. Without five seconds of GCs there is no verdict. Within ten seconds, with fewer than \
        two gen 2 GCs (a cache with a bound may not be full), or when the last one was in the first 40 % of the time, it is worth a look and no warning: what lies in gen 2 may be \
        dead by then. So it is where the last gen 2 GC finds no more alive than the first one, five seconds before: one object takes the place of \
        another. Where a dataset was converted without `--lifetimes`, `explain` follows the objects itself, as \
        long as the tables with ranges are there.",
    needs: &["survivals"],
    record: "lifetimes",
    advice: "Remove what keeps them reachable: unsubscribe from static events, dispose of timers and registrations, and \
        give caches and dictionaries a bound.",
    closer: closer::HEAP_OF_TYPE,
    causes: &["blocked_finalizer"],
    evidence: Evidence { sections: &["stacks-live", "retained", "survival", "collections"], sort: None },
    query: "SELECT method, type_name, alive_bytes, first_fifth_bytes, second_fifth_bytes, third_fifth_bytes, fourth_fifth_bytes, \
        last_fifth_bytes FROM live_by_site WHERE {process} ORDER BY alive_bytes DESC LIMIT 20",
    example: Example::of("bugs/leak", "bugs/leak-clean", Verdict::Warning)
        .by("Shop.Session..ctor")
        .about("Shop.Session"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Nanoseconds without which nothing is said, and without which there is no warning: programs fill their memory when they start.
const LEAST_NS: i64 = 5_000_000_000;
const WARM_NS: i64 = 10_000_000_000;

/// Bytes that are no matter.
const LEAST_BYTES: f64 = 2e6;

/// The part of the time that has to lie before the last full collection. What came later was not looked at since.
const PROVEN: f64 = 0.4;

/// Full collections without which what fills may still find its bound.
const LEAST_FULL: usize = 2;

/// Types that are named.
const NAMED: usize = 3;

fn judge(look: &Look<'_>) -> Judged {
    let Process { survivors, .. } = look.process;
    if survivors.followed == 0 {
        return Judged::too_little("No sampled object was followed from GC to GC.");
    }
    let Some((seen_ns, end_ns, is_proven)) = times(look) else {
        return Judged::none("whole GC");
    };
    if end_ns < LEAST_NS {
        return Judged::TooLittle(Lack::time(end_ns as f64, LEAST_NS as f64, "every program grows when it starts"));
    }
    let growth = survivors.growth(&look.picture.sites, seen_ns, end_ns);
    let live = live_bytes(look, seen_ns).max(growth.alive_bytes).max(f64::MIN_POSITIVE);
    let value = if growth.bytes >= LEAST_BYTES { growth.bytes / live } else { 0.0 };
    // Where no full collection looked, what is alive in generation 2 may be dead. Where the heap is no larger in the end, it took the place
    // of other objects.
    let is_level = is_level(look, growth.bytes);
    let at_most = (!is_proven || is_level || end_ns < WARM_NS).then_some(60.0);
    let (subject, own_method) = if value > 0.0 { named(look, &growth) } else { (None, None) };
    let sentence = if value > 0.0 { sentence(look, &growth, end_ns, is_proven) } else { NOTHING.to_owned() };
    let level = if value > 0.0 && is_level {
        " Gen 2 GCs find no more alive than before: it may take the place of other objects."
    } else {
        ""
    };
    let sentence = sentence + level;
    Figure { value, rows: survivors.followed, at_most, subject, own_method, sentence, ..Figure::default() }.into()
}

const NOTHING: &str = "What is alive does not grow over the whole of the recording.";

/// The part of what accumulates by which the live heap has to grow.
const GROWS: f64 = 0.1;

/// Whether the last full collection found no more alive than the first one, which is five seconds before it or more.
fn is_level(look: &Look<'_>, growth: f64) -> bool {
    let all = &look.picture.collections;
    let alive = |gc: &Gc| all.old_bytes_of(gc).map(|old| old.alive() as f64);
    let full = all.of(look.id).filter(|gc| gc.generation == Some(2) && gc.is_complete);
    let full: Vec<(i64, f64)> = full.filter_map(|gc| Some((gc.start_ns, alive(gc)?))).collect();
    let Some((first, last)) = full.first().zip(full.last()) else { return false };
    last.0.saturating_sub(first.0) >= LEAST_NS && last.1 - first.1 < growth * GROWS
}

/// When it was seen what is alive, until when objects were followed, and whether a full collection looked at most of them.
fn times(look: &Look<'_>) -> Option<(i64, i64, bool)> {
    let all = &look.picture.collections;
    let end_ns = all.of(look.id).filter(|gc| gc.is_complete).map(|gc| gc.start_ns).max()?;
    let full: Vec<i64> =
        all.of(look.id).filter(|gc| gc.generation == Some(2) && gc.is_complete).map(|gc| gc.start_ns).collect();
    let last = full.last().filter(|last| full.len() >= LEAST_FULL && **last as f64 >= end_ns as f64 * PROVEN);
    if let Some(full) = last.copied() { Some((full, end_ns, true)) } else { Some((end_ns, end_ns, false)) }
}

/// What the collections up to a time found alive at the most.
fn live_bytes(look: &Look<'_>, seen_ns: i64) -> f64 {
    let all = &look.picture.collections;
    let full = all.of(look.id).filter(|gc| gc.generation == Some(2) && gc.start_ns <= seen_ns);
    full.filter_map(|gc| all.old_bytes_of(gc)).last().map_or(0.0, |old| old.alive() as f64)
}

/// The type and the own method that what accumulates is of.
fn named(look: &Look<'_>, growth: &Growth) -> (Option<String>, Option<String>) {
    let name = |kind: &u64| look.picture.types.name(look.id, *kind);
    let own = growth.types.iter().filter_map(|(kind, _)| name(kind)).find(|name| words::is_own_type(name));
    let made = growth.own_method.as_deref().and_then(|method| method.strip_suffix("..ctor"));
    let first = growth.types.first().and_then(|(kind, _)| name(kind));
    (own.or(made).or(first).map(str::to_owned), growth.own_method.clone())
}

fn sentence(look: &Look<'_>, growth: &Growth, end_ns: i64, is_proven: bool) -> String {
    let types = growth.types.iter().take(NAMED).filter_map(|(kind, _)| look.picture.types.name(look.id, *kind));
    let types = types.map(|name| words::short(name, 80)).collect::<Vec<_>>().join(", ");
    let by = growth.own_method.as_ref().map_or(String::new(), |method| format!(", allocated by {method}"));
    let maker = growth.maker.as_ref().map_or(String::new(), |maker| format!(" called by {maker}"));
    let proof = if is_proven {
        ""
    } else {
        " Fewer than two gen 2 GCs looked at them, or none for long: they may be dead, or fill a cache up to its bound."
    };
    // Of ticks the last object of 100 KB stands for all, so that those that live beside it are missed.
    let least = if look.process.allocations.keys().next() == Some(&TICK) { "At least " } else { "" };
    format!(
        "{least}{} accumulated in {}, were not freed and still grow at the end: {types}{by}{maker}.{proof}",
        words::size(growth.bytes),
        words::time(end_ns as f64)
    )
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, GcHeapStats};

    use crate::findings::tests::story::{Made, survivors};

    pub(crate) fn make(made: &mut Made, x: f64) {
        (1..=55).for_each(|n| made.gc(n, if n % 10 == 0 { 2 } else { 0 }, "AllocSmall", "blocking"));
        made.tables.add(&GcHeapStats {
            gc_id: 50,
            generation: 2,
            promoted_bytes: 100_000_000,
            ..GcHeapStats::default()
        });
        let site = made.site(&["Shop.Program.Main()", "Shop.Visits.Answer(int)", "Shop.Session..ctor()"]);
        survivors(made, site, (x * 60e6) as u64, |_| true);
    }
}
