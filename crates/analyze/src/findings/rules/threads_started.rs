//! Threads are started one by one, each for a little work.

use crate::findings::prelude::*;
use crate::findings::shared::at_start;
use crate::samples::least_part;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "threads_started",
    title: "A thread is started for each piece of work",
    about: "Threads are started one after the other, each for a little work: to start one takes longer than much of what it does, and \
        it has a stack of its own.",
    measure: "Threads that began later than a second after the start of the recording, divided by the time. Your method that was sampled most while \
        it started a thread is named, or else the one that most of them were seen in. In less than five seconds it is no warning.",
    unit: "count/s",
    info: 10.0,
    warning: 50.0,
    needs: &["workers"],
    record: "threadpool,cpu",
    advice: "Give the work to the thread pool (`Task.Run`), or to one thread that lives on and takes it from a channel, in place of \
        `new Thread` and `TaskCreationOptions.LongRunning`.",
    evidence: Evidence { sections: &["threads", "stacks-cpu"], sort: None },
    query: "SELECT thread_id, name, first_ts_ns / 1e9 AS first_s, (last_ts_ns - first_ts_ns) / 1e6 AS seen_ms FROM thread WHERE {process} \
        ORDER BY first_ts_ns DESC LIMIT 100",
    example: Example::of("habits/spawns", "habits/spawns-clean", Verdict::Warning).by("Depot.Letters.Send"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Seconds with which the figure is taken as it is. Of fewer there is no warning.
const LEAST_SECONDS: f64 = 5.0;

fn judge(look: &Look<'_>) -> Judged {
    let process = look.process;
    let rows = process.started.len() as u64;
    let value = look.per_second(rows as f64);
    // A program starts threads that stay when it starts.
    let is_short = look.seconds() < LEAST_SECONDS;
    let lack = look.too_short(LEAST_SECONDS * 1e9, "a program starts threads when it starts");
    let few = is_short.then(|| Few { least: at_start(value * least_part(rows), &RULE), lack });
    let at_most = is_short.then_some(60.0);
    let sites = &look.picture.sites;
    // A method that starts a thread is sampled while it waits for it to run. Without such samples, the methods that the new
    // threads run are taken.
    let starting = process.running.iter().chain(&process.waiting);
    let starting = starting.filter(|(site, _)| sites.has(**site, &[Is::StartsThread]));
    let starter = sites.most(starting.map(|(site, count)| (*site, *count as f64)));
    let seen = process.started.iter().filter_map(|thread| process.thread_sites.get(thread)).map(|site| (*site, 1.0));
    let most = starter.or_else(|| sites.most(seen)).filter(|_| value >= 1.0);
    let own_method = most.map(|most| words::without_lambda(&most.method).to_owned());
    let by = own_method.as_ref().map_or(String::new(), |method| format!(", most of them by {method}"));
    let sentence = format!("{rows} threads were started, {} a second{by}.", words::three(value));
    // Threads are rows without these events, too, though not all of them.
    let rows = if look.picture.has("workers") { rows } else { 0 };
    Figure { value, rows, at_most, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, Thread};

    use crate::findings::tests::story::{MS, Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Letters.Send()"]);
        for n in 0..(6000.0 * x) as i64 {
            let (thread_id, first_ts_ns) = (100 + n.cast_unsigned(), 2 * S + n * 9 * MS);
            made.tables.add(&Thread { process_id: 7, thread_id, first_ts_ns, ..Thread::default() });
            if n % 10 == 0 {
                made.samples(thread_id, 1, |_| (site, "managed"));
            }
        }
    }
}
