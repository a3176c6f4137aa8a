//! Some pauses are far longer than others of their kind, and what they promoted does not explain it.

use std::collections::BTreeMap;

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared;
use crate::findings::words;
use crate::samples::median;

pub(super) const RULE: Rule = Rule {
    name: "odd_pause",
    unit: "count",
    info: 1.0,
    warning: 5.0,
    needs: &["pauses"],
    record: "gc",
    next: "tracequet collect --for all",
    causes: &[],
    of_recording: false,
    judge,
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
        return Judged::too_little("No kind of collections has ten pauses.");
    }
    let longest = odd.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let sentence = match longest {
        Some((gc_id, pause, _)) => format!(
            "{} of {rows} pauses were more than ten times as long as others of their kind, and promoted no more: up to {}, for collection {gc_id}.",
            odd.len(),
            words::time(*pause)
        ),
        None => "Pauses are as long as others of their kind, or promoted more.".to_owned(),
    };
    let subject = longest.map(|(gc_id, ..)| format!("gc_id {gc_id}"));
    // A few that are short are no matter.
    let at_most = Some(score(longest.map_or(0.0, |one| one.1), LEAST_NS, LEAST_NS * 10.0));
    let evidence = shared::pauses(look, "duration_ns");
    Figure { value: odd.len() as f64, rows, at_most, subject, sentence, evidence, ..Figure::default() }.into()
}
