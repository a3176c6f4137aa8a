//! One request waits again and again, one wait behind the other.

use std::collections::BTreeMap;

use crate::findings::loops::Loop;
use crate::findings::prelude::*;
use crate::present::units::count;

pub(super) const RULE: Rule = Rule {
    name: "waits_in_a_loop",
    title: "One request waits again and again",
    about: "An async method of a request waits many times, one wait behind the other: it asks another program (by a socket, a queue, a protocol of \
        your own) for one thing at a time.",
    measure: "How often a run of your async method within a request goes on behind a wait, on average. At least three runs. Runs of more than five \
        seconds are left out, as those of streams. Where the waits of a run take 10 ms together it is worth a look, from 50 ms on a warning is \
        possible. The method that runs most often within it is named, too. Queries of databases and requests of `HttpClient` are those \
        of `n_plus_one` and `n_plus_one_calls`.",
    unit: "count",
    info: 10.0,
    warning: 20.0,
    needs: &["async_tasks"],
    record: "async,requests",
    advice: "Ask for all in one message, or ask at once and wait for all (`Task.WhenAll`), or keep answers that are asked for again.",
    causes: &["n_plus_one", "n_plus_one_calls"],
    evidence: Evidence { sections: &["async", "requests"], sort: None },
    query: "SELECT s.own_method, count(*) AS tasks, sum(t.resume_count) AS how_often, sum(t.waiting_ns) / 1e6 AS waiting_ms \
        FROM async_task t JOIN site s ON s.trace_id = t.trace_id AND s.callsite_id = t.callsite_id \
        WHERE {process of t} AND t.kind IN ('state_machine', 'runtime') GROUP BY ALL ORDER BY how_often DESC NULLS LAST LIMIT 20",
    example: Example::of("habits/clauses", "habits/clauses-clean", Verdict::Warning).by("Depot.Contracts.Print"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Runs without which nothing is said.
const LEAST_RUNS: u64 = 3;

fn judge(look: &Look<'_>) -> Judged {
    let (sites, loops) = (&look.picture.sites, &look.process.loops.of_requests);
    let mut methods: BTreeMap<&str, Loop> = BTreeMap::new();
    for ((site, name), of_site) in loops {
        // A method of the framework, such as one that reads a line, has the own method that called it on its stack.
        let name = look.picture.text(*name).unwrap_or_default();
        let is_itself = |method: &&str| method.ends_with(name) && !name.is_empty();
        let Some(method) = sites.own_method(*site).filter(is_itself) else { continue };
        let of_method = methods.entry(method).or_default();
        of_method.runs += of_site.runs;
        of_method.resumed = of_method.resumed.saturating_add(of_site.resumed);
        of_method.waiting_ns += of_site.waiting_ns;
        for (site, count) in &of_site.asked {
            *of_method.asked.entry(*site).or_default() += count;
        }
    }
    let rows = methods.values().map(|of| of.runs).sum();
    let mean = |of: &Loop| of.resumed as f64 / of.runs.max(1) as f64;
    let most =
        methods.into_iter().filter(|(_, of)| of.runs >= LEAST_RUNS).max_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let Some((method, of)) = most else {
        return Judged::too_few(rows, LEAST_RUNS, "runs of your async methods within requests");
    };
    let waiting_ns = of.waiting_ns / of.runs.max(1) as f64;
    let asked = sites.most(of.asked.iter().map(|(site, count)| (*site, *count as f64)));
    let asked = asked.filter(|asked| asked.amount * 2.0 >= of.resumed as f64);
    let asked = asked.map_or(String::new(), |asked| {
        format!(
            " It runs {}{} {} times.",
            asked.method,
            asked.inlined,
            words::three(asked.amount / of.runs.max(1) as f64)
        )
    });
    let sentence = format!(
        "{method} waits {} times in a request, one wait behind the other, {} in all ({} runs).{asked}",
        words::three(mean(&of)),
        words::time(waiting_ns),
        count(of.runs)
    );
    let at_most = Some(score(waiting_ns, 10e6, 50e6));
    Figure { value: mean(&of), rows, at_most, own_method: Some(method.to_owned()), sentence, ..Figure::default() }
        .into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Activity, AsyncTask, FactSink};
    use tracequet_trace::guid::Guid;

    use crate::findings::tests::story::{MS, Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let print =
            made.site(&["Shop.Contracts.Print()", "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start()"]);
        let clause =
            made.site(&["Shop.Contracts.Clause()", "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start()"]);
        let waits = (x * 40.0) as u32 + 1;
        for request in 1..=8u8 {
            let (start, id) = (i64::from(request) * S, Guid([request; 16]));
            made.tables.add(&Activity {
                start_ts_ns: start,
                end_ts_ns: Some(start + S / 2),
                process_id: 7,
                provider_name: "Microsoft.AspNetCore.Hosting",
                name: "Request",
                activity_id: id,
                ..Activity::default()
            });
            let task = AsyncTask {
                process_id: 7,
                source: "tpl",
                kind: Some("state_machine"),
                activity_id: id,
                resume_count: 1,
                waiting_ns: Some(5 * MS),
                ..AsyncTask::default()
            };
            let parent = u64::from(request) * 1000;
            made.tables.add(&AsyncTask {
                task_id: parent,
                method: Some("Print"),
                callsite_id: print,
                resume_count: waits,
                ts_ns: start + MS,
                end_ts_ns: Some(start + 400 * MS),
                waiting_ns: Some(i64::from(waits) * 5 * MS),
                ..task
            });
            for n in 0..waits {
                let ts_ns = start + MS + i64::from(n) * 6 * MS;
                made.tables.add(&AsyncTask {
                    task_id: parent + 1 + u64::from(n),
                    parent_task_id: Some(parent),
                    method: Some("Clause"),
                    callsite_id: clause,
                    ts_ns,
                    end_ts_ns: Some(ts_ns + 5 * MS),
                    ..task
                });
            }
        }
    }
}
