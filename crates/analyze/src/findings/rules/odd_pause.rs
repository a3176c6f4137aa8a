//! Some pauses are far longer than others of their kind, and what they promoted does not explain it.

use std::collections::BTreeMap;

use crate::findings::prelude::*;
use crate::samples::median;

pub(super) const RULE: Rule = Rule {
    name: "odd_pause",
    title: "Some GC pauses are much longer than their work explains",
    about: "Some pauses are far longer than others of their kind though they had no more to do.",
    measure: "GCs whose longest pause is above 20 ms and above ten times the median of their generation and kind, and \
        that promoted at most 1.5 times the median. Kinds with at least ten GCs count. Where none of these pauses \
        takes 20 ms it is fine, from 200 ms on a warning is possible.",
    unit: "count",
    info: 1.0,
    warning: 5.0,
    source: "[mem-doc](https://github.com/Maoni0/mem-doc) (promoted bytes explain a pause); limits tracequet's own.",
    needs: &["pauses"],
    record: "gc",
    advice: "Look outside of the program: other programs on the machine, the processor limit of the container, paging. \
        `collect-linux` or an .etl with context switches shows who ran.",
    made_by: Some("profiler_collections"),
    evidence: Evidence { sections: &["collections"], sort: Some("pause") },
    example: Example::of("habits/unstoppable", "habits/unstoppable-clean", Verdict::Warning).about("gc_id "),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// A pause is odd if it is at least this many medians long, at least this long, and promoted at most this share of the median.
const TIMES_MEDIAN: f64 = 10.0;
const LEAST_NS: f64 = 20e6;
const PROMOTED: f64 = 1.5;

/// A collection: its number, its longest pause, and the bytes that it promoted.
type Paused = (u32, f64, f64);

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let mut pauses: BTreeMap<u32, f64> = BTreeMap::new();
    for pause in all.pauses_of(look.id) {
        let longest = pauses.entry(pause.gc_id).or_default();
        *longest = longest.max(pause.duration_ns as f64);
    }
    // Pause and promoted bytes by generation and kind.
    let mut kinds: BTreeMap<(Option<u8>, bool), Vec<Paused>> = BTreeMap::new();
    for gc in all.of(look.id).filter(|gc| !gc.is_dump) {
        if let (Some(pause), Some(promoted)) = (pauses.get(&gc.id), gc.promoted) {
            kinds.entry((gc.generation, gc.is_background)).or_default().push((gc.id, *pause, promoted as f64));
        }
    }
    let (mut rows, mut odd): (u64, Vec<&Paused>) = (0, Vec::new());
    for collections in kinds.values().filter(|of_kind| of_kind.len() as u64 >= shared::LEAST_COLLECTIONS) {
        let middle =
            |of: fn(&Paused) -> f64| median(&collections.iter().map(of).collect::<Vec<_>>()).unwrap_or_default();
        let (pause, promoted) = (middle(|one| one.1), middle(|one| one.2));
        rows += collections.len() as u64;
        odd.extend(
            collections
                .iter()
                .filter(|one| one.1 > LEAST_NS && one.1 > pause * TIMES_MEDIAN && one.2 <= promoted * PROMOTED),
        );
    }
    if rows == 0 {
        let most = kinds.values().map(Vec::len).max().unwrap_or_default() as u64;
        return Judged::too_few(most, shared::LEAST_COLLECTIONS, "pauses of a kind");
    }
    let longest = odd.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let sentence = match longest {
        Some((gc_id, pause, _)) => format!(
            "{} of {rows} pauses were more than ten times as long as others of their kind, and promoted no more: up to {} ({}).",
            odd.len(),
            words::time(*pause),
            look.gc(*gc_id)
        ),
        None => "Pauses are as long as others of their kind, or promoted more.".to_owned(),
    };
    let subject = longest.map(|(gc_id, ..)| format!("gc_id {gc_id}"));
    // A few that are short are no matter.
    let at_most = Some(score(longest.map_or(0.0, |one| one.1), LEAST_NS, LEAST_NS * 10.0));
    let evidence = shared::pauses(look, "duration_ns");
    Figure { value: odd.len() as f64, rows, at_most, subject, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Gc};

    use crate::findings::tests::story::{MS, Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        (1..=40u32).for_each(|n| {
            let row = Gc {
                gc_id: n,
                process_id: 7,
                generation: Some(0),
                promoted_bytes: Some(1_000_000),
                complete: true,
                ..Gc::default()
            };
            made.tables.add(&row);
            made.pause(n, if n > 20 && part(n - 21, 10) { S / 2 } else { MS }, 0);
        });
    }
}
