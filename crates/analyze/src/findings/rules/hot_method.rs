//! A few own methods take most of busy processors.

use std::collections::BTreeMap;

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "hot_method",
    title: "A few methods take most of the processor",
    about: "Few of your methods take most of busy processors: a loop in a loop, a hash code that many keys share, a search from \
        the start each time.",
    measure: "Samples of threads that ran in the three own methods with most of them, each with 10 % or more, divided by all \
        of threads that ran; times the share of the processors that these threads had or wanted. At least 100 samples. It is \
        a warning only where work waited for a worker of the thread pool meanwhile (the counter `threadpool-queue-length` is \
        above the number of processors on average); else a program may work as hard as it likes.",
    unit: "share",
    info: 0.30,
    warning: 0.60,
    needs: &["samples"],
    record: "cpu,counters",
    advice: "Look for work that grows with the square of its input in the method that is named: search in a `HashSet<T>` or \
        `Dictionary<TKey, TValue>` in place of a list, let `GetHashCode` tell keys apart, keep results that are asked for \
        again.",
    closer: closer::PROCESSOR,
    evidence: Evidence { sections: &["stacks-cpu"], sort: None },
    query: "SELECT own_method, method, samples FROM cpu_by_site WHERE {process} AND own_method IS NOT NULL ORDER BY samples DESC LIMIT 20",
    example: Example::of("habits/hot", "habits/hot-clean", Verdict::Warning).by("Depot.Register.Count"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Samples for a verdict, methods that count, and the least part of one.
const LEAST: u64 = 100;
const MOST_METHODS: usize = 3;
const LEAST_PART: f64 = 0.1;

fn judge(look: &Look<'_>) -> Judged {
    let process = look.process;
    let running: u64 = process.running.values().sum();
    let seen: u64 = process.thread_samples.values().sum();
    if seen < LEAST {
        return Judged::too_few(seen, LEAST, "samples of threads");
    }
    // A lambda belongs to the method that has it.
    let mut methods: BTreeMap<String, (f64, String)> = BTreeMap::new();
    for most in look.picture.sites.ranked(process.running.iter().map(|(site, count)| (*site, *count as f64))) {
        let written = words::without_lambda(&most.method).to_owned();
        methods.entry(written).or_insert((0.0, most.inlined)).0 += most.amount;
    }
    let mut methods: Vec<(String, (f64, String))> = methods.into_iter().collect();
    methods.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let of_running = |amount: f64| amount / (running as f64).max(1.0);
    methods.retain(|(_, (amount, _))| of_running(*amount) >= LEAST_PART);
    methods.truncate(MOST_METHODS);
    let threads = look.threads_running();
    let processors = (look.picture.processors as f64).max(1.0);
    let part: f64 = methods.iter().map(|(_, (amount, _))| of_running(*amount)).sum();
    let value = part * (threads / processors).min(1.0);
    let named: Vec<String> = methods
        .iter()
        .map(|(method, (amount, inlined))| format!("{method}{inlined} {}", words::percent(of_running(*amount))))
        .collect();
    let is_late = process.queue.mean().is_some_and(|queued| queued > processors);
    let late = match process.queue.mean().filter(|_| is_late) {
        Some(queued) => {
            format!(" {} work items waited for a worker meanwhile, on average.", words::three(queued.round()))
        }
        None => String::new(),
    };
    let looks_for = methods.first().map_or(String::new(), |(method, (amount, _))| looks_for(look, method, *amount));
    let sentence = match named.is_empty() {
        true => "No method of your own takes much of the processor.".to_owned(),
        false => format!(
            "{} threads ran or wanted to on average, on {processors} processors: {} of their time.{looks_for}{late}",
            words::three(threads),
            named.join(", ")
        ),
    };
    let own_method = methods.into_iter().next().map(|(method, _)| method);
    let at_most = (!is_late).then_some(60.0);
    Figure { value, rows: seen, at_most, own_method, sentence, ..Figure::default() }.into()
}

/// The type of the keys that a method looks for in half of its samples.
fn looks_for(look: &Look<'_>, method: &str, amount: f64) -> String {
    let sites = &look.picture.sites;
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    for (site, count) in &look.process.running {
        let is_its = sites.own_method(*site).is_some_and(|own| words::without_lambda(own) == method);
        if let Some(key) = sites.looks_for(*site).filter(|_| is_its) {
            *keys.entry(key).or_default() += count;
        }
    }
    let most = keys.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count as f64 * 2.0 >= amount);
    most.map_or(String::new(), |(key, _)| {
        format!(" Most of it looks for a key of type {key}: see its GetHashCode and Equals.")
    })
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        made.trace.processor_count = 2;
        let hot = made.site(&["Shop.Register.Count()"]);
        for thread_id in [1, 2, 3] {
            made.samples(
                thread_id,
                1000,
                |n| if f64::from(n) < 1000.0 * x { (hot, "managed") } else { (0, "external") },
            );
        }
        made.queue_counters(|_| 100.0);
    }
}
