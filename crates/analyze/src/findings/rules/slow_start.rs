//! The program works for long before it answers its first request.

use std::collections::BTreeMap;

use crate::findings::prelude::*;
use crate::findings::stretches::Stretch;
use crate::present::units::counted;
use crate::subjects::sites::{Is, Sites};

pub(super) const RULE: Rule = Rule {
    name: "slow_start",
    title: "The start takes long",
    about: "Your code works for long before the first request is answered, such as in a static constructor, a scan of all types, \
        or code that it makes.",
    measure: "The time in which your code works before the first request of the recording ends. A thread counts while it runs with \
        your code on its stack. The first thread with your code counts also while it is outside of managed code (compiling, \
        loading, files) and goes on later. Time in the host below your code (frames of `Microsoft.AspNetCore` and \
        `Microsoft.Extensions`) does not count. Static constructors count whenever they run: often the first request starts \
        them. Without requests the start ends at the moment behind which the first thread runs for 3 % of its whole time at most; \
        there is no verdict on a program that works on. The runtime has to start during the recording: \
        `tracequet collect --for cpu,requests -- dotnet app.dll`.",
    unit: "ns",
    info: 5e8,
    warning: 1.5e9,
    needs: &["start"],
    record: "cpu,requests",
    advice: "Make what the method makes later and once (`Lazy<T>`), behind the first request or in the background, or read it from a file that \
        the build makes. For regular expressions, serializers and mappings take the source generators (`[GeneratedRegex]`), and publish with \
        `PublishReadyToRun`.",
    closer: closer::WAITING_SAMPLES,
    evidence: Evidence { sections: &["stacks-cpu"], sort: None },
    example: Example { unrecorded: None, ..Example::of("habits/opens", "habits/opens-clean", Verdict::Warning) }
        .by("Depot.Distances..cctor"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// The part of its whole time for which a thread that has come to rest may still run. It has to come to rest within the second part of the
/// time of the samples.
const REST: f64 = 0.03;
const LATEST: f64 = 0.6;

/// Methods that are named, and the least part of one.
const MOST_METHODS: usize = 3;
const LEAST_PART: f64 = 0.1;

fn judge(look: &Look<'_>) -> Judged {
    let (process, sites) = (look.process, &look.picture.sites);
    let stretches = &process.stretches.all;
    let is_own = |stretch: &&Stretch| sites.own_method(stretch.site).is_some();
    let Some(first) = stretches.iter().find(is_own).filter(|_| look.picture.has("start")) else {
        return Judged::too_little("There are no samples of your code of the time in which the program started.");
    };
    let request = process.requests().iter().map(|(start_ns, duration_ns)| start_ns.saturating_add(*duration_ns)).min();
    let known_ns = process.stretches.end_ns();
    let at_rest = rest(stretches, first.thread).filter(|at| (*at as f64) <= known_ns as f64 * LATEST);
    let Some(end_ns) = request.or(at_rest).filter(|end_ns| *end_ns <= known_ns) else {
        return Judged::too_little("When the start ended is not known: there is no request, and the program works on.");
    };
    let (by_site, last_ns) = work(sites, stretches, first.thread, end_ns);
    let value: f64 = by_site.values().sum();
    let ranked = sites.ranked(by_site);
    let part = |amount: f64| amount / value.max(1.0);
    let named = ranked.iter().filter(|most| part(most.amount) >= LEAST_PART).take(MOST_METHODS);
    let named: Vec<String> =
        named.map(|most| format!("{}{} {}", most.method, most.inlined, words::percent(part(most.amount)))).collect();
    let compiled = process.compilations.iter().filter(|(_, start_ns, ..)| *start_ns < end_ns);
    let compiled: Vec<i64> = compiled.map(|(_, start_ns, end_ns, _)| end_ns.saturating_sub(*start_ns)).collect();
    let compiling = match compiled.len() {
        0 => String::new(),
        n => format!(
            " {} compiled meanwhile, {} in all.",
            counted(n as u64, "method was", "methods were"),
            words::time(compiled.iter().sum::<i64>() as f64)
        ),
    };
    let until =
        if request.is_some() { "before the first request was answered" } else { "until the program came to rest" };
    let sentence = format!(
        "The program worked {} in your code {until}, {} after its start{}{}{}.{compiling}",
        words::time(value),
        words::time(end_ns as f64),
        if last_ns > end_ns { ", and in static constructors later" } else { "" },
        if named.is_empty() { "" } else { ": " },
        named.join(", ")
    );
    let own_method = ranked.into_iter().next().map(|most| most.method);
    let evidence = format!(
        "SELECT s.own_method, count(*) AS samples FROM cpu_sample c JOIN site s ON s.trace_id = c.trace_id AND s.callsite_id = c.callsite_id \
         WHERE {} AND c.ts_ns < {last_ns} AND s.own_method IS NOT NULL GROUP BY ALL ORDER BY samples DESC LIMIT 20",
        look.of("c")
    );
    Figure { value, rows: stretches.len() as u64, own_method, sentence, evidence, ..Figure::default() }.into()
}

/// When a thread came to rest: it runs nearly none of the time behind this moment.
fn rest(stretches: &[Stretch], thread: u64) -> Option<i64> {
    let its = || stretches.iter().filter(|stretch| stretch.thread == thread);
    let length = |stretch: &Stretch| stretch.end_ns.saturating_sub(stretch.start_ns) as f64;
    let all_ns = its().next_back()?.end_ns.saturating_sub(its().next()?.start_ns) as f64;
    let mut running_ns = 0.0;
    its().rev().filter(|stretch| stretch.is_running).find_map(|stretch| {
        running_ns += length(stretch);
        (running_ns > all_ns * REST).then_some(stretch.end_ns)
    })
}

/// How long there was work of the start at each call site, and when the last of it ended; of several threads that work at a time the first
/// one counts.
fn work(sites: &Sites, stretches: &[Stretch], first: u64, end_ns: i64) -> (BTreeMap<u32, f64>, i64) {
    let mut by_site: BTreeMap<u32, f64> = BTreeMap::new();
    let mut known_ns = 0;
    for stretch in stretches {
        let is_constructor = sites.is_in_static_constructor(stretch.site);
        let is_early = stretch.start_ns < end_ns
            && (stretch.is_running || (stretch.thread == first && stretch.end_ns < end_ns))
            && sites.own_method(stretch.site).is_some();
        if (is_constructor || is_early) && !sites.calls(stretch.site, Is::Hosts) {
            let until_ns = if is_constructor { stretch.end_ns } else { stretch.end_ns.min(end_ns) };
            *by_site.entry(stretch.site).or_default() +=
                until_ns.saturating_sub(stretch.start_ns.max(known_ns)).max(0) as f64;
            known_ns = known_ns.max(until_ns);
        }
    }
    (by_site, known_ns.max(end_ns))
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Activity, EventType, FactSink};

    use crate::findings::tests::story::{MS, Made, RUNTIME, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let started = EventType {
            provider_name: RUNTIME,
            event_name: "RuntimeInformationStart",
            level: 4,
            event_count: 1,
            ..EventType::default()
        };
        made.tables.add(&started);
        let table = made.site(&["Shop.Program.Main()", "Shop.Distances..cctor()"]);
        let host = made.site(&["Shop.Program.Main()", "Microsoft.AspNetCore.Builder.WebApplication.Run()"]);
        // The last ten seconds before the first request are the host's and a wait.
        made.samples(1, 2000, |n| match n {
            n if f64::from(n) < 500.0 * x => (table, if n % 2 == 0 { "managed" } else { "external" }),
            n if n < 1000 => (host, "managed"),
            _ => (host, "external"),
        });
        let row = Activity {
            start_ts_ns: 12 * S,
            end_ts_ns: Some(12 * S + MS),
            process_id: 7,
            provider_name: "Microsoft.AspNetCore.Hosting",
            name: "Request",
            ..Activity::default()
        };
        made.tables.add(&row);
    }
}
