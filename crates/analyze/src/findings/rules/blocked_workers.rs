//! Workers of the thread pool wait: who blocks them, and whether they wait for tasks (sync over async).

use crate::findings::prelude::*;
use crate::subjects::sites::{Is, Most};

pub(super) const RULE: Rule = Rule {
    name: "blocked_workers",
    title: "Thread pool workers are blocked",
    about: "Workers of the thread pool wait in your code. When they wait for tasks (`.Result`, `.Wait()`, \
        `GetAwaiter().GetResult()`), that is sync over async: other workers have to end these tasks.",
    measure: "Time that pool workers spent in waits with your code on their stacks, divided by the time: the workers \
        that are blocked on average. `Thread.Sleep`, sockets and files write no events of waits, nor does anything before \
        .NET 9: where there are twice as many samples of workers outside of managed code below your code, but for \
        native code that works (cryptography, compression), they count, divided by the samples of a thread.",
    unit: "count",
    info: 0.5,
    warning: 2.0,
    source: "limits tracequet's own; what to do: [the diagnostics guide of ASP.NET \
        Core](https://github.com/davidfowl/AspNetCoreDiagnosticScenarios).",
    needs: &["waits", "samples"],
    record: "threadpool",
    advice: "Make the method async up to the request and `await`, in place of `.Result`, `.Wait()`, \
        `GetAwaiter().GetResult()`, `Thread.Sleep` (`await Task.Delay`), and calls of sockets, files and databases that wait.",
    closer: closer::WAITS,
    causes: &["logging", "n_plus_one", "n_plus_one_calls", "slow_queries"],
    evidence: Evidence { sections: &["stacks-waits", "waits", "stacks-cpu"], sort: None },
    example: Example::of("bugs/sync", "bugs/sync-clean", Verdict::Warning)
        .by("Shop.Prices.Answer")
        .about("sync over async"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Samples of a thread with which they are taken as they are.
const LEAST_ROUNDS: u64 = 100;

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, process, .. } = look;
    let sites = &picture.sites;
    // Waits for locks are those of another rule.
    let is_worker = |site: u32| {
        sites.has(site, &[Is::PoolWorker]) && !sites.has(site, &[Is::Locks]) && sites.own_method(site).is_some()
    };
    let has_waits = !process.waits.is_empty() || picture.has("waits");
    let mut windows = Windows::default();
    let mut waits: Vec<(u32, f64)> = Vec::new();
    for (site, load) in process.waits.iter().filter(|(site, _)| is_worker(**site)) {
        windows.join(&load.times);
        waits.push((*site, load.times.total));
    }
    let by_waits = windows.worst(look.recording_ns());
    // Thread.Sleep, sockets and files write no event of a wait, nor do any before .NET 9; the sampler sees such threads outside of
    // managed code.
    let rounds = process.rounds();
    let samples = process.waiting.iter();
    let samples = samples.filter(|(site, _)| is_worker(**site) && !sites.has(**site, &[Is::WorksInNative]));
    let samples: Vec<(u32, f64)> = samples.map(|(site, count)| (*site, *count as f64)).collect();
    let by_samples = samples.iter().fold(0.0, |sum, (_, count)| sum + count) / rounds.max(1) as f64;
    let few = Few::sum(by_samples, rounds, LEAST_ROUNDS, "samples of a thread");
    let is_by_waits = has_waits && by_waits * 2.0 >= few.as_ref().map_or(by_samples, |few| few.least);
    let few = few.filter(|_| !is_by_waits);
    let (value, blocked) = if is_by_waits { (by_waits, waits) } else { (by_samples, samples) };
    let rows = if is_by_waits { process.waits.values().map(|load| load.count).sum() } else { rounds };
    let most = sites.most(blocked.iter().copied());
    let is_on_tasks = |most: &Most| {
        let its = blocked.iter().filter(|(site, _)| sites.own_method(*site) == Some(&most.method));
        let on_tasks: f64 = its.filter(|(site, _)| sites.has(*site, &[Is::TaskWait])).map(|(_, amount)| amount).sum();
        on_tasks * 2.0 > most.amount
    };
    let on_tasks = most.as_ref().is_some_and(is_on_tasks);
    let at = most.as_ref().and_then(|most| {
        let its = blocked.iter().filter(|(site, _)| sites.own_method(*site) == Some(&most.method));
        let longest = its.max_by(|a, b| a.1.total_cmp(&b.1));
        longest.and_then(|(site, _)| sites.leaf(*site)).filter(|leaf| *leaf != most.method)
    });
    let what = match at {
        _ if on_tasks => "waits for tasks to end (sync over async)".to_owned(),
        Some(leaf) => format!("waits, most of it in {leaf}"),
        None => "waits".to_owned(),
    };
    let sentence = match &most {
        Some(Most { method, inlined, .. }) => {
            format!("{} thread pool workers blocked on average: {method}{inlined} {what}.", words::three(value))
        }
        None => "No worker of the thread pool waits in your code.".to_owned(),
    };
    let own_method = most.map(|most| most.method);
    let evidence = look.sql(match is_by_waits {
        true => {
            "SELECT own_method, source, sum(how_often) AS how_often, sum(total_ms) AS total_ms, max(longest_ms) AS longest_ms \
             FROM waits_by_site WHERE {process} AND own_method IS NOT NULL GROUP BY ALL ORDER BY total_ms DESC LIMIT 10"
        }
        false => {
            "SELECT own_method, sum(external_samples) AS samples FROM cpu_by_site WHERE {process} AND own_method IS NOT NULL \
             GROUP BY ALL ORDER BY samples DESC LIMIT 10"
        }
    });
    let subject = own_method.is_some().then(|| if on_tasks { "sync over async" } else { "waits" }.to_owned());
    Figure { value, rows, few, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Wait};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        let site = made.site(&[
            "System.Threading.ThreadPoolWorkQueue.Dispatch()",
            "Shop.Prices.Answer(int)",
            "System.Threading.Tasks.Task`1[int].GetResultCore(bool)",
        ]);
        for n in 0..60 {
            let row = Wait {
                start_ts_ns: n * S,
                end_ts_ns: Some(n * S + ns(4 * S)),
                process_id: 7,
                callsite_id: site,
                ..Wait::default()
            };
            made.tables.add(&row);
        }
    }
}
