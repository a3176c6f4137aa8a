//! Methods are compiled while the program waits for them.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "jit_time",
    unit: "share",
    info: 0.05,
    warning: 0.20,
    needs: &["compilations"],
    record: "jit",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    if look.seconds() < 10.0 {
        return Judged::too_little(format!(
            "{} are too short: every program compiles when it starts.",
            words::time(look.recording_ns() as f64)
        ));
    }
    let mut all = look.process.compilations.clone();
    all.sort_unstable();
    // What was compiled meanwhile on the same thread lies within.
    let (mut total, mut later, mut known) = (0i64, 0i64, None);
    let half_ns = look.recording_ns() / 2;
    for (thread, start, end) in &all {
        let from = match known {
            Some((of, until)) if of == *thread => (*start).max(until),
            _ => *start,
        };
        let time = end.saturating_sub(from).max(0);
        total = total.saturating_add(time);
        later = later.saturating_add(if *start >= half_ns { time } else { 0 });
        known = Some((*thread, (*end).max(from)));
    }
    // What is compiled when a program starts is over in the second half.
    let value = total.min(later.saturating_mul(2)) as f64 / look.recording_ns() as f64;
    let sentence = format!(
        "{} methods were compiled in {} of threads, of that {} in the second half of the time: {} of it.",
        all.len(),
        words::time(total as f64),
        words::time(later as f64),
        words::percent(later as f64 / half_ns.max(1) as f64)
    );
    let evidence = format!(
        "SELECT method, own_method, tier, jit_ms FROM jit WHERE {} AND tier NOT LIKE 'OptimizedTier1%' ORDER BY jit_ms DESC LIMIT 20",
        look.of_process
    );
    Figure { value, rows: all.len() as u64, sentence, evidence, ..Figure::default() }.into()
}
