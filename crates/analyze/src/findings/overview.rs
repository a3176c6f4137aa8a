//! Where the time and the memory of a recording went: the summary above all findings. It needs no rule.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;
use tracequet_trace::map::Map;

use crate::metrics::{Metric, is_recorded, metrics};
use crate::present::units::{count, counted, duration, real, share, size, span};
use crate::present::{Document, Sentence};
use crate::subjects::allocations;
use crate::subjects::compiling::Compilation;
use crate::subjects::pool::percentile;
use crate::subjects::processor::{Processor, Samples};
use crate::subjects::requests::{Asked, Request, Spent, Worked, each_request, source_of, sources, spent};
use crate::subjects::sites::Sites;
use crate::subjects::waits::{Awaits, LockWait, TaskTime, TaskWait, Wait};

/// Methods and routes that are named.
const NAMED: usize = 5;
const ROUTES: usize = 3;
/// Requests of which the summary says what they spent their time on.
pub const SLOWEST: usize = 20;

/// Call sites, and requests, that are summed.
const MOST_SITES: usize = 1 << 20;
const MOST_REQUESTS: u64 = 1 << 20;
const MOST_ROUTES: usize = 1 << 12;

/// A method with a smaller part is not named.
const LEAST_PART: f64 = 0.01;

/// The tables that a summary is made of, beside those of metrics.
pub const TABLES: [&str; 14] = [
    "trace", "metric", "callsite", "frame", "cpu_sample", "allocation", "contention", "wait", "async_task",
    "async_wait", "exception", "method_compilation", "activity", "thread_activity",
];

/// A topic of the summary.
#[derive(Debug)]
pub struct Topic {
    /// The name, such as `processor`.
    pub name: &'static str,
    /// The figures and names of the topic.
    pub sentence: Sentence,
    /// The own methods with most of it, and their parts of it.
    pub methods: Vec<(String, f64)>,
}

/// The summary of a recording.
#[derive(Debug, Default)]
pub struct Overview {
    /// Topics that were recorded, in a fixed order.
    pub topics: Vec<Topic>,
    /// Topics of which nothing was recorded, each with the name of `collect --for` that records it.
    pub not_recorded: Vec<(&'static str, &'static str)>,
}

/// Topics, the metrics that say whether they were recorded, and what records them.
const ASKED: [(&str, &str, &str); 8] = [
    ("processor", "cpu.samples", "cpu"),
    ("allocations", "allocation.bytes", "allocations"),
    ("pauses", "gc.pause.total", "gc"),
    ("locks", "contention.count", "contention"),
    ("waits", "wait.count", "threadpool"),
    ("exceptions", "exception.count", "exceptions"),
    ("compiling", "jit.foreground.count", "jit"),
    ("requests", "request.server.count", "requests"),
];

tracequet_dataset::row!(struct Trace of trace { duration_ns, processor_count });

tracequet_dataset::row!(struct Thrown of exception { callsite_id });

/// Amounts by call site.
#[derive(Debug, Default)]
struct BySite {
    sites: Map<u32, f64>,
    all: f64,
}

impl BySite {
    fn add(&mut self, site: u32, amount: f64) {
        self.all += amount;
        if self.sites.len() < MOST_SITES || self.sites.contains_key(&site) {
            *self.sites.entry(site).or_default() += amount;
        }
    }

    /// The own methods with most, their parts of all, and whether it may be methods that are inlined into them.
    fn methods(self, sites: &Sites) -> Vec<(String, f64, bool)> {
        let mut amounts: Vec<(u32, f64)> = self.sites.into_iter().collect();
        amounts.sort_by_key(|(site, _)| *site);
        let parts = sites.ranked(amounts).into_iter();
        let parts = parts.map(|most| (most.method, most.amount / self.all.max(1.0), most.is_unsure));
        parts.take(NAMED).filter(|(_, part, _)| *part >= LEAST_PART).collect()
    }
}

/// The recording with what all topics need of it, read once.
struct Reader<'r> {
    recording: &'r Recording<'r>,
    metrics: Vec<Metric>,
    sites: Sites,
    duration_ns: i64,
    processors: u64,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value)
    }

    fn counter(&self, figure: &str, name: &str) -> Option<f64> {
        self.value(&format!("counter.{figure}[System.Runtime/{name}]"))
    }

    fn topic(&self, name: &'static str, sentence: String, by_site: BySite) -> Topic {
        let methods = by_site.methods(&self.sites);
        let mut sentence = Sentence::from(sentence);
        for (place, (method, part, is_unsure)) in methods.iter().enumerate() {
            let before = if place == 0 { "; most in " } else { ", " };
            let or_others = if *is_unsure { " (or methods inlined into it)" } else { "" };
            sentence = sentence.words(before).text(method).words(format!("{or_others} {}", share(*part)));
        }
        Topic { name, sentence, methods: methods.into_iter().map(|(method, part, _)| (method, part)).collect() }
    }

    fn processor(&self) -> Result<Option<Topic>> {
        if self.value("cpu.samples").unwrap_or_default() <= 0.0 {
            return Ok(None);
        }
        let processor = Processor::of(self.recording)?;
        let mut by_site = BySite::default();
        processor.each(self.recording, Samples::Running, |sample| {
            by_site.add(sample.callsite_id, sample.weight as f64);
            Ok(())
        })?;
        let of = if self.processors > 0 {
            format!(", on {}", counted(self.processors, "processor", "processors"))
        } else {
            String::new()
        };
        let mut sentence = if processor.is_time() {
            format!("{} threads ran or wanted to on average{of}", real(by_site.all / self.duration_ns.max(1) as f64))
        } else {
            format!("{}{of}", counted(by_site.all as u64, "sample of a thread that ran", "samples of threads that ran"))
        };
        if let Some(usage) = self.counter("mean", "cpu-usage") {
            sentence += &format!("; the process had {} of their time by the runtime's counter", share(usage / 100.0));
        }
        Ok(Some(self.topic("processor", sentence, by_site)))
    }

    fn allocations(&self) -> Result<Option<Topic>> {
        let Some(bytes) = self.value("allocation.bytes").filter(|bytes| *bytes > 0.0) else { return Ok(None) };
        let mut by_site = BySite::default();
        allocations::each(self.recording, |row| {
            by_site.add(row.callsite_id, row.allocation_bytes.unwrap_or_default() as f64);
            Ok(())
        })?;
        let rate = size(self.value("allocation.rate").unwrap_or_default() as u64);
        Ok(Some(self.topic("allocations", format!("{}, {rate} a second", size(bytes as u64)), by_site)))
    }

    fn pauses(&self) -> Option<Topic> {
        let total = self.value("gc.pause.total").filter(|total| *total > 0.0)?;
        let [all, of_full] = ["gc.count", "gc.count.gen2"].map(|name| self.value(name).unwrap_or_default() as u64);
        let [longest, part] = ["gc.pause.max", "gc.pause.share"].map(|name| self.value(name).unwrap_or_default());
        let sentence = format!(
            "{}, {of_full} of gen 2; {} in pauses, {} of the time, the longest {}",
            counted(all, "GC", "GCs"),
            duration(total as i64),
            share(part),
            duration(longest as i64)
        );
        Some(Topic { name: "pauses", sentence: sentence.into(), methods: Vec::new() })
    }

    /// Tasks of async methods that wait for what has no name.
    fn awaits(&self) -> Result<Option<Topic>> {
        let mut awaits = Awaits::default();
        self.recording.each_recorded::<TaskTime<'_>>(|row| awaits.task(&row))?;
        self.recording.each_recorded::<TaskWait<'_>>(|row| awaits.wait(&row))?;
        let (mut by_site, mut tasks) = (BySite::default(), 0);
        for ((_, site), waiting) in awaits.by_site() {
            tasks += waiting.tasks;
            by_site.add(site, waiting.ns as f64);
        }
        let sentence = format!(
            "{} without a thread for {} in all, but for waits for other methods and Task.Delay",
            counted(tasks, "task", "tasks"),
            span(by_site.all as u64)
        );
        Ok((tasks > 0).then(|| self.topic("awaits", sentence, by_site)))
    }

    /// Waits, or other things that take time, by where they are.
    fn times(
        &self,
        name: &'static str,
        [one, many]: [&str; 2],
        read: impl FnOnce(&mut dyn FnMut(u32, Option<i64>)) -> Result<bool>,
    ) -> Result<Option<Topic>> {
        let (mut by_site, mut all) = (BySite::default(), 0u64);
        read(&mut |site, ns| {
            all += 1;
            by_site.add(site, ns.unwrap_or_default().max(0) as f64);
        })?;
        let sentence = format!("{} of {} in all", counted(all, one, many), span(by_site.all as u64));
        Ok((all > 0).then(|| self.topic(name, sentence, by_site)))
    }

    fn exceptions(&self) -> Result<Option<Topic>> {
        let mut by_site = BySite::default();
        self.recording.each_recorded::<Thrown<'_>>(|row| by_site.add(row.callsite_id, 1.0))?;
        let all = by_site.all;
        Ok((all > 0.0).then(|| {
            let rate = real(all / (self.duration_ns.max(1) as f64 / 1e9));
            self.topic("exceptions", format!("{}, {rate} a second", count(all as u64)), by_site)
        }))
    }

    fn threads(&self) -> Option<Topic> {
        let workers =
            self.value("threadpool.workers.max").or_else(|| self.counter("max", "threadpool-thread-count"))?;
        let mut sentence = format!("up to {}", counted(workers as u64, "worker of the pool", "workers of the pool"));
        if let Some(queued) = self.counter("max", "threadpool-queue-length").filter(|queued| *queued > 0.0) {
            sentence += &format!(", up to {} waiting for one", counted(queued as u64, "work item", "work items"));
        }
        if let Some(starved) = self.value("threadpool.starvation.count").filter(|count| *count > 0.0) {
            let times = counted(starved as u64, "time", "times");
            sentence += &format!("; {times} one was added because all were busy");
        }
        Some(Topic { name: "threads", sentence: sentence.into(), methods: Vec::new() })
    }
}

/// A route of requests that came in.
#[derive(Debug)]
pub struct SlowRoute {
    route: String,
    requests: usize,
    /// 99 of 100 took at most this long, in nanoseconds.
    slow_ns: u64,
}

impl SlowRoute {
    /// The slowest routes of these, each with its durations in order.
    pub fn most(mut routes: Vec<(&str, &[u64])>) -> Vec<SlowRoute> {
        routes.retain(|(_, times)| !times.is_empty());
        routes.sort_by_key(|(route, times)| (std::cmp::Reverse(percentile(times, 99)), *route));
        let of = |(route, times): (&str, &[u64])| SlowRoute {
            route: route.to_owned(),
            requests: times.len(),
            slow_ns: percentile(times, 99).unwrap_or_default(),
        };
        routes.into_iter().take(ROUTES).map(of).collect()
    }
}

/// The topic of requests that came in: how many, the slowest routes, and what the slowest requests spent their time on.
pub fn of_requests(count: u64, routes: &[SlowRoute], slowest: &[(Asked, Spent)]) -> Topic {
    let mut sentence = Sentence::from(counted(count, "request", "requests"));
    for (at, SlowRoute { route, requests, slow_ns }) in routes.iter().enumerate() {
        let before = if at == 0 { "; the slowest routes: " } else { ", " };
        sentence = sentence.words(before).text(route).words(format!(" (99 % of {requests} in {})", span(*slow_ns)));
    }
    Topic { name: "requests", sentence: sentence.words(of_slowest(slowest)), methods: Vec::new() }
}

/// Reads the requests that came in.
fn requests(recording: &Recording<'_>) -> Result<Option<Topic>> {
    let chosen @ [Some(_), _] = sources(recording)? else { return Ok(None) };
    let mut shown = Requests::default();
    each_request(recording, chosen, |side, row| {
        if side == 0 && shown.requests < MOST_REQUESTS {
            shown.add(row);
        }
    })?;
    let asked: Vec<Asked> = shown.slowest.iter().map(|(_, asked)| asked.clone()).collect();
    let worked = Worked::read(recording, &asked, &[])?;
    let (spent, _) = spent(recording, &asked, &worked, source_of(chosen, 0), 0)?;
    shown.routes.values_mut().for_each(|times| times.sort_unstable());
    let routes = shown.routes.iter().map(|(route, times)| (route.as_str(), times.as_slice())).collect();
    let slowest: Vec<(Asked, Spent)> = asked.into_iter().zip(spent).collect();
    Ok(Some(of_requests(shown.requests, &SlowRoute::most(routes), &slowest)))
}

/// The requests that came in.
#[derive(Default)]
struct Requests {
    requests: u64,
    routes: BTreeMap<String, Vec<u64>>,
    slowest: Vec<(i64, Asked)>,
}

impl Requests {
    fn add(&mut self, row: &Request<'_>) {
        self.requests += 1;
        let Some(duration_ns) = row.duration_ns else { return };
        let route = row.route();
        if self.routes.len() < MOST_ROUTES || self.routes.contains_key(&route) {
            self.routes.entry(route).or_default().push(duration_ns.max(0).cast_unsigned());
        }
        let rank = self.slowest.partition_point(|(ns, _)| *ns >= duration_ns);
        if rank < SLOWEST {
            self.slowest.insert(rank, (duration_ns, row.asked(0)));
            self.slowest.truncate(SLOWEST);
        }
    }
}

/// `; the 20 slowest waited 80.1 %, were on the processor 3.20 %, 16.7 % is unexplained`.
fn of_slowest(slowest: &[(Asked, Spent)]) -> String {
    let took = slowest.iter().map(|(asked, _)| asked.end_ns.saturating_sub(asked.start_ns));
    let all: i64 = took.fold(0, i64::saturating_add);
    if all <= 0 {
        return String::new();
    }
    let sum = |of: fn(&Spent) -> Option<u64>| {
        slowest.iter().filter_map(|(_, spent)| of(spent)).fold(0, u64::saturating_add) as f64
    };
    let parts = [
        ("on the processor", sum(|spent| spent.cpu_ns)),
        ("in waits", sum(|spent| spent.wait_ns)),
        ("in locks", sum(|spent| spent.lock_ns)),
        ("in queries", sum(|spent| spent.query_ns)),
        ("in calls", sum(|spent| spent.call_ns)),
        ("in awaits", sum(|spent| spent.await_ns)),
    ];
    let named = parts.iter().filter(|(_, ns)| *ns / all as f64 >= LEAST_PART);
    let named: Vec<String> = named.map(|(name, ns)| format!("{} {name}", share(ns / all as f64))).collect();
    // Awaits may lie in the others, and calls at the same time overlap.
    let known = parts.iter().map(|(_, ns)| ns).sum::<f64>().min(all as f64);
    let known_words = if named.is_empty() { String::new() } else { named.join(", ") + ", " };
    format!("; the {} slowest: {known_words}{} unexplained", slowest.len(), share(1.0 - known / all as f64))
}

impl Overview {
    /// The summary of a recording. A part whose rows are too many for the memory is left out.
    pub fn of(recording: &Recording<'_>) -> Result<Overview> {
        Overview::with(recording, requests(recording))
    }

    /// The summary of a recording whose requests the caller has read.
    pub fn with(recording: &Recording<'_>, requests: Result<Option<Topic>>) -> Result<Overview> {
        let (mut duration_ns, mut processors) = (0, 0);
        recording.each_recorded::<Trace<'_>>(|row| {
            (duration_ns, processors) = (row.duration_ns, row.processor_count);
        })?;
        let metrics = metrics(recording)?;
        let reader = Reader { recording, metrics, sites: Sites::read(recording)?, duration_ns, processors };
        let compiled = |add: &mut dyn FnMut(u32, Option<i64>)| {
            recording.each_recorded::<Compilation<'_>>(|row| {
                if row.is_foreground() {
                    add(row.callsite_id, row.duration_ns);
                }
            })
        };
        let topics = [
            reader.processor(),
            reader.allocations(),
            Ok(reader.pauses()),
            reader.times("locks", ["wait", "waits"], |add| {
                recording.each_recorded::<LockWait<'_>>(|row| add(row.callsite_id, row.duration_ns))
            }),
            reader.times("waits", ["wait", "waits"], |add| {
                recording.each_recorded::<Wait<'_>>(|row| add(row.callsite_id, row.duration_ns))
            }),
            reader.awaits(),
            reader.exceptions(),
            reader.times("compiling", ["method", "methods"], compiled),
            requests,
            Ok(reader.threads()),
        ];
        let mut overview = Overview::default();
        for topic in topics {
            match topic {
                Ok(topic) => overview.topics.extend(topic),
                Err(Error::TooLarge(_) | Error::OverMemory(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let missing = ASKED.iter().filter(|(topic, metric, _)| {
            !is_recorded(&reader.metrics, metric) && !overview.topics.iter().any(|known| known.name == *topic)
        });
        overview.not_recorded = missing.map(|(topic, _, record)| (*topic, *record)).collect();
        Ok(overview)
    }

    /// The topics that were not recorded, with the command that records them.
    pub fn missing(&self) -> Option<String> {
        let (topics, records): (Vec<&str>, Vec<&str>) = self.not_recorded.iter().copied().unzip();
        let command = format!("tracequet collect --for {}", records.join(","));
        (!topics.is_empty()).then(|| format!("{}: {command}", topics.join(", ")))
    }

    /// For people: a line for each topic.
    pub fn document(&self) -> Document {
        let mut out = Document::default();
        for topic in &self.topics {
            let name = match topic.name {
                "processor" => "  processor:   ",
                "allocations" => "  allocations: ",
                "pauses" => "  pauses:      ",
                "locks" => "  locks:       ",
                "waits" => "  waits:       ",
                "awaits" => "  awaits:      ",
                "exceptions" => "  exceptions:  ",
                "compiling" => "  compiling:   ",
                "requests" => "  requests:    ",
                _ => "  threads:     ",
            };
            out.fact(name, topic.sentence.clone());
        }
        if let Some(missing) = self.missing() {
            out.fact("  not recorded: ", missing);
        }
        out
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let topics = self.topics.iter().map(|topic| {
            let methods = topic.methods.iter().map(|(method, part)| json!({ "method": method, "share": part }));
            json!({ "topic": topic.name, "text": topic.sentence.in_text(), "own_methods": methods.collect::<Vec<_>>() })
        });
        let missing = self.not_recorded.iter().map(|(topic, record)| json!({ "topic": topic, "record": record }));
        json!({ "topics": topics.collect::<Vec<_>>(), "not_recorded": missing.collect::<Vec<_>>() })
    }

    /// For a page.
    pub fn html(&self) -> String {
        let mut out = String::from("<dl class=\"facts\">\n");
        let missing = self.missing().map(|missing| ("not recorded", Sentence::from(missing).html()));
        let lines = self.topics.iter().map(|topic| (topic.name, topic.sentence.html()));
        for (name, html) in lines.chain(missing) {
            out += &format!("<div class=\"long\"><dt>{name}</dt><dd>{html}</dd></div>\n");
        }
        out + "</dl>\n"
    }
}
