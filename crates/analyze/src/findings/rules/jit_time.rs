//! Methods are compiled while the program waits for them.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "jit_time",
    title: "Methods are compiled while the program works",
    about: "Methods are compiled while the program waits for them.",
    measure: "Time of compilations, without those within others and without those in the background, divided by the time; or \
        the same of the second half of the time, when that is less: what a program compiles when it starts is over by \
        then. At least ten seconds. Your method that needed most of it is named from 30 % on.",
    unit: "share",
    info: 0.05,
    warning: 0.20,
    needs: &["compilations"],
    record: "jit",
    advice: "Keep what makes code at run time in a static field, in place of making it for each call: `Regex` with \
        `RegexOptions.Compiled`, expression trees, `JsonSerializerOptions`, serializers. Publish with `PublishReadyToRun`.",
    closer: closer::COMPILATIONS,
    causes: &["slow_start", "code_made_again"],
    evidence: Evidence { sections: &["jit", "stacks-jit"], sort: None },
    query: "SELECT method, own_method, tier, jit_ms FROM jit WHERE {process} AND tier NOT LIKE 'OptimizedTier1%' ORDER BY jit_ms DESC LIMIT 20",
    example: Example {
        unrecorded: Some("habits/handles"),
        ..Example::of("habits/formulas", "habits/formulas-clean", Verdict::Warning)
    },
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// The part of the time from which on an own method is named.
const LEAST_PART: f64 = 0.3;

fn judge(look: &Look<'_>) -> Judged {
    if look.seconds() < 10.0 {
        return Judged::TooLittle(look.too_short(10e9, "every program compiles when it starts"));
    }
    let mut all = look.process.compilations.clone();
    all.sort_unstable();
    // What was compiled meanwhile on the same thread lies within.
    let (mut total, mut later, mut known) = (0i64, 0i64, None);
    let half_ns = look.recording_ns() / 2;
    let mut sites: Vec<(u32, f64)> = Vec::new();
    for (thread, start, end, site) in &all {
        let from = match known {
            Some((of, until)) if of == *thread => (*start).max(until),
            _ => *start,
        };
        let time = end.saturating_sub(from).max(0);
        total = total.saturating_add(time);
        later = later.saturating_add(if *start >= half_ns { time } else { 0 });
        known = Some((*thread, (*end).max(from)));
        sites.push((*site, time as f64));
    }
    // What is compiled when a program starts is over in the second half.
    let value = total.min(later.saturating_mul(2)) as f64 / look.recording_ns() as f64;
    let most = look.picture.sites.most(sites).filter(|most| most.amount >= total as f64 * LEAST_PART);
    let by = most.as_ref().map_or(String::new(), |most| {
        format!(" {} of it for {}{}.", words::percent(most.amount / total as f64), most.method, most.inlined)
    });
    let sentence = format!(
        "{} methods were compiled in {} of thread time, {} of it in the second half of the recording ({}).{by}",
        all.len(),
        words::time(total as f64),
        words::time(later as f64),
        words::percent(later as f64 / half_ns.max(1) as f64)
    );
    let own_method = most.map(|most| most.method);
    Figure { value, rows: all.len() as u64, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, MethodCompilation};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        (0..60).for_each(|n| {
            let start_ts_ns = n * S;
            // The inner one is within the outer one.
            for start_ts_ns in [start_ts_ns, start_ts_ns + ns(S / 10)] {
                let end_ts_ns = Some(start_ts_ns.min(n * S) + ns(S / 2));
                let row = MethodCompilation {
                    start_ts_ns,
                    end_ts_ns,
                    process_id: 7,
                    kind: "jit",
                    ..MethodCompilation::default()
                };
                made.tables.add(&row);
            }
        });
    }
}
