//! Large objects find no room in what is free among them: their memory is in pieces.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "loh_free",
    unit: "share",
    info: 0.30,
    warning: 0.50,
    needs: &["collections"],
    record: "gc",
    next: "tracequet export IN --what allocation --own",
    causes: &["large_object_triggers"],
    of_recording: false,
    judge,
};

/// Bytes of large objects and free memory between them from which on it matters, and full collections that are needed.
const LEAST_BYTES: u64 = 50_000_000;
const LEAST: u64 = 3;

fn judge(look: &Look<'_>) -> Judged {
    let all = &look.picture.collections;
    let (mut free, mut size, mut rows, mut seen) = (0.0, 0.0, 0u64, 0u64);
    for gc in all.of(look.id).filter(|gc| gc.generation == Some(2)) {
        let Some([_, _, _, large, _]) = all.generations_of(gc) else { continue };
        seen += 1;
        if large.size_before > LEAST_BYTES {
            free += large.free_before as f64;
            size += large.size_before as f64;
            rows += 1;
        }
    }
    if seen < LEAST {
        return Judged::too_little(format!("{seen} full collections are too few."));
    }
    let is_enough = rows >= LEAST && size > 0.0;
    let (value, mean) = if is_enough { (free / size, free / rows as f64) } else { (0.0, 0.0) };
    let sentence = match is_enough {
        true => format!(
            "When full collections began, {} of the memory of large objects was free, {} of it.",
            words::percent(value),
            words::size(mean)
        ),
        false => "Large objects take less than 50 MB.".to_owned(),
    };
    let evidence = format!(
        "SELECT g.gc_id, g.start_ts, g.reason, sum(h.size_before_bytes) AS size_bytes, \
         sum(h.free_list_before_bytes + h.free_object_before_bytes) AS free_bytes FROM gc g JOIN gc_heap_generation h \
         ON h.trace_id = g.trace_id AND h.gc_id = g.gc_id WHERE {} AND g.generation = 2 AND h.generation = 3 \
         GROUP BY ALL ORDER BY g.start_ts LIMIT 20",
        look.of("g")
    );
    let at_most = Some(score(mean, 50e6, 500e6));
    Figure { value, rows: seen, at_most, sentence, evidence, ..Figure::default() }.into()
}
