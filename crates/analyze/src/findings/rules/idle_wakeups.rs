//! Timers and polling wake the program all the time.

use std::collections::BTreeSet;

use crate::findings::prelude::*;
use crate::findings::times::Times;
use crate::subjects::sites::{Is, Most};

pub(super) const RULE: Rule = Rule {
    name: "idle_wakeups",
    title: "Timers and polling wake the program all the time",
    about: "Timers fire, or loops wait for a short time and look again, thousands of times a second: the processor works for \
        nothing most of the time.",
    measure: "The largest of three rates. First, waits for `Task.Delay` in loops outside of requests, at your method with most of \
        them; in a loop, a task waits ten times and more. Second, work items of the thread pool that a timer fired: all that \
        end in a second (the counter `threadpool-completed-items-count`), times the part of the samples of running workers \
        that are below a timer. It counts only with more than five such items for each incoming request, and with such \
        samples in at least ten tenths of a second. Third, waits of threads that look like time-outs, at your method with \
        most of them: 19 of 20 take 0.9 ms or more, and half of them at most twice that.",
    unit: "count/s",
    info: 1000.0,
    warning: 2000.0,
    needs: &["async_tasks", "samples", "waits"],
    record: "async,cpu,threadpool,counters",
    advice: "Wait for what is to come in place of looking for it again and again: a `Channel<T>`, `SemaphoreSlim.WaitAsync`, a \
        `TaskCompletionSource`, a message of the queue or database. Where that cannot be, look less often, and let one timer \
        serve all.",
    closer: closer::PROCESSOR,
    evidence: Evidence { sections: &["stacks-cpu", "async"], sort: None },
    query: "SELECT own_method, method, samples FROM cpu_by_site WHERE {process} AND own_method IS NOT NULL \
        ORDER BY samples DESC LIMIT 20",
    example: Example::of("habits/polls", "habits/polls-clean", Verdict::Warning).by("Depot.Mailbox.Look"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// The least number of tenths of a second in which workers ran what timers fired: one long callback is no polling.
const LEAST_TIMES: usize = 10;
const TIME_NS: i64 = 100_000_000;

/// With this many threads below timers and no counter of work items there is no verdict: how often timers fire is not known.
const LEAST_THREADS: f64 = 0.05;

/// The least part of the samples below timers with which a method is named.
const LEAST_PART: f64 = 0.1;

/// Work items of timers that each request may have: its own time limits and delays.
const OF_REQUEST: f64 = 5.0;

/// No time-out is shorter; of those of one length few take much longer.
const LEAST_NS: f64 = 9e5;
const SPREAD: f64 = 2.0;

/// A rate, the own method, and what it does.
type Rate = (f64, Option<Most>, &'static str);

fn judge(look: &Look<'_>) -> Judged {
    let fired = fired(look);
    let samples_of_timers = fired.of_timers;
    let rates = [delays(look), timers(look, fired), time_outs(look)];
    let is_any = rates.iter().any(|(rate, ..)| *rate >= RULE.info);
    let is_unknown = look.process.queue.completed_per_second().is_none();
    if !is_any && is_unknown && look.threads(samples_of_timers) >= LEAST_THREADS {
        return Judged::too_little("How often timers fire is not known: the runtime's counters were not recorded.");
    }
    let rows = rates.iter().map(|(rate, ..)| *rate).sum::<f64>() * look.seconds();
    let [best, others @ ..] = rates;
    // Delays are counted one by one; of timers the rate is an estimate that has them, too.
    let (value, most, what) =
        others.into_iter().fold(best, |best, other| if other.0 > best.0 * 2.0 { other } else { best });
    let by = most.as_ref().map_or(String::new(), |most| format!(" in {}{}", most.method, most.inlined));
    let sentence = match value {
        0.0 => "No timer fires often, and no loop of your code waits for a short time again and again.".to_owned(),
        _ => format!("{what} about {} times a second{by}.", words::three(value.round())),
    };
    Figure { value, rows: rows as u64, own_method: most.map(|most| most.method), sentence, ..Figure::default() }.into()
}

/// Waits for `Task.Delay` outside of requests, at the own method with most of them.
fn delays(look: &Look<'_>) -> Rate {
    let delays = look.process.loops.delays.iter().map(|(site, delays)| (*site, delays.in_loops()));
    at_most_of_them(look, delays, "`Task.Delay` is waited for")
}

/// The rate of amounts of the whole recording at the own method with most of them.
fn at_most_of_them(look: &Look<'_>, amounts: impl Iterator<Item = (u32, f64)>, what: &'static str) -> Rate {
    let most = look.picture.sites.most(amounts);
    (most.as_ref().map_or(0.0, |most| look.per_second(most.amount)), most, what)
}

/// Work items that timers fired, by samples and counters.
fn timers(look: &Look<'_>, fired: Fired) -> Rate {
    let completed = look.process.queue.completed_per_second().unwrap_or_default();
    let rate = completed * fired.of_timers / fired.of_all.max(1.0);
    let rate = if rate < look.per_second(look.process.requests().len() as f64) * OF_REQUEST { 0.0 } else { rate };
    (rate, fired.most.filter(|_| rate > 0.0), "Timers fire")
}

/// Samples of workers that ran, and those of them below a timer.
struct Fired {
    /// Samples below a timer.
    of_timers: f64,
    /// All samples.
    of_all: f64,
    /// The own method with most of those below a timer: the outermost one, which the timer called.
    most: Option<Most>,
}

fn fired(look: &Look<'_>) -> Fired {
    let (process, sites) = (look.process, &look.picture.sites);
    let running = || process.running.iter().map(|(site, count)| (*site, *count as f64));
    let is_at_work = |site: u32| sites.has(site, &[Is::PoolWorker]) && !sites.has(site, &[Is::Idles]);
    let is_fired = |site: u32| is_at_work(site) && sites.has(site, &[Is::Timers]);
    let fired: Vec<(u32, f64)> = running().filter(|(site, _)| is_fired(*site)).collect();
    let stretches = process.stretches.all.iter().filter(|stretch| stretch.is_running && is_fired(stretch.site));
    let times: BTreeSet<i64> = stretches.map(|stretch| stretch.start_ns.div_euclid(TIME_NS)).collect();
    let of_timers = if times.len() >= LEAST_TIMES { fired.iter().map(|(_, count)| count).sum() } else { 0.0 };
    let of_all: f64 = running().filter(|(site, _)| is_at_work(*site)).map(|(_, count)| count).sum();
    let called = fired.iter().filter_map(|(site, count)| Some((sites.outermost_own(*site)?, *count)));
    Fired { of_timers, of_all, most: sites.most(called).filter(|most| most.amount >= of_timers * LEAST_PART) }
}

/// Waits of threads that end by their time, at the own method with most of them.
fn time_outs(look: &Look<'_>) -> Rate {
    let is_time_out = |of: &Times| of.quantile(0.05) >= LEAST_NS && of.quantile(0.5) <= of.quantile(0.05) * SPREAD;
    let waits = look.process.wait_times.iter().filter(|(_, of)| is_time_out(of));
    at_most_of_them(look, waits.map(|(site, of)| (*site, of.count as f64)), "A wait of a short time ends")
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{AsyncTask, FactSink};

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Mailbox.Look()", "System.Threading.Tasks.Task.Delay()"]);
        for n in 0..(60_000.0 * 3.0 * x) as i64 {
            made.tables.add(&AsyncTask {
                ts_ns: n * MS / 3,
                process_id: 7,
                task_id: n.unsigned_abs(),
                source: "tpl",
                parent_task_id: Some(1),
                method: Some("Task.Delay"),
                callsite_id: site,
                ..AsyncTask::default()
            });
        }
    }
}
