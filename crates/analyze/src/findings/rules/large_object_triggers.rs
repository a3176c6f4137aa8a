//! Allocations of large objects make the collector run, each time over the whole heap.

use crate::findings::allocations;
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::shared;

pub(super) const RULE: Rule = Rule {
    name: "large_object_triggers",
    unit: "share",
    info: 0.10,
    warning: 0.50,
    needs: &["collections"],
    record: "gc,allocations",
    next: "tracequet export IN --what allocation --own",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, id, .. } = look;
    let (mut all, mut large) = (0u64, 0u64);
    for gc in picture.collections.of(*id) {
        all += 1;
        large += u64::from(matches!(picture.text(gc.reason), Some("AllocLarge" | "OutOfSpaceLOH")));
    }
    if all < shared::LEAST_COLLECTIONS {
        return Judged::too_little(format!("{all} collections are too few."));
    }
    let value = large as f64 / all as f64;
    let part = allocations::part(look, |_, _, _, allocated| (allocated.large_bytes, allocated.large_samples));
    let of_type = part.type_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let sentence = format!("{large} of {all} collections were for large objects{of_type}{}.", part.by());
    let evidence = format!(
        "SELECT reason, generation, count(*) AS collections, sum(pause_ns) / 1e6 AS pause_ms FROM gc WHERE {} \
         GROUP BY ALL ORDER BY collections DESC",
        look.of_process
    );
    let (subject, own_method) = if large > 0 { (part.type_name, part.own_method) } else { (None, None) };
    Figure { value, rows: all, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}
