//! The time of requests: on the processor, in waits, locks, queries and calls of the threads that worked for them, as
//! the view `request_time` has it.

use std::collections::BTreeMap;

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;
use tracequet_trace::map::Map;

use super::work::{Activity, Kind, Work, id_of, query_text};
use crate::metrics::{Metric, Missing, metrics};
use crate::subjects::processor::{State, is_of_runtime};
use crate::subjects::waits::{LockWait, Wait, each_leaf};

/// Times of threads that are kept.
const MAX_TIMES: usize = 1 << 20;

/// A request that is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Whether it came in.
    pub is_server: bool,
    /// OS process id.
    pub process: u64,
    /// OS thread id.
    pub thread: u64,
    /// Whether its thread also ended it.
    pub is_of_thread: bool,
    /// The activity id.
    pub activity: Option<String>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
}

impl Asked {
    /// Whether a thread can be known to work for it.
    fn is_known(&self) -> bool {
        self.activity.is_some() || self.is_of_thread
    }
}

/// The time of a request by what it was spent on, in nanoseconds; `None` is not recorded, or cannot be distinguished
/// from other work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// By the samples of the threads that worked for it.
    pub cpu_ns: Option<u64>,
    /// Waits of these threads, but for locks.
    pub wait_ns: Option<u64>,
    /// Waits of these threads for locks.
    pub lock_ns: Option<u64>,
    /// Queries of databases; together, of those at the same time.
    pub query_ns: Option<u64>,
    /// Requests of HttpClient; together, of those at the same time.
    pub call_ns: Option<u64>,
    /// The time that its async methods awaited, which may lie in the others.
    pub await_ns: Option<u64>,
}

tracequet_dataset::row! {
    struct Stretch of thread_activity { process_id, thread_id, start_ts_ns, end_ts_ns, activity_id, activity_path }
}

tracequet_dataset::row! {
    struct Sample of cpu_sample { process_id, thread_id, ts_ns, kind, sample_count }
}

tracequet_dataset::row! {
    struct Rate of trace { sampling_ns }
}

tracequet_dataset::row! {
    struct Provider of session_provider { provider_name, arguments }
}

/// Whether an activity lies in another one, or is it: ids of EventSource are paths such as `//1/34/2`.
fn lies_in(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '$']))
}

/// A request, and the times in which a thread worked for it, in order.
type Worked = (usize, Vec<(i64, i64)>);

/// The times in which threads worked for requests.
#[derive(Debug, Default)]
struct Times {
    /// By process and thread.
    of_threads: Map<(u64, u64), Vec<Worked>>,
    /// The path of the activity of each request.
    paths: Vec<Option<String>>,
    /// Paths of activities that lie in requests, by id.
    inner: Map<String, String>,
}

impl Times {
    fn read(recording: &Recording<'_>, asked: &[Asked]) -> Result<Times> {
        let mut times = Times { paths: vec![None; asked.len()], ..Times::default() };
        for (place, request) in asked.iter().enumerate().filter(|(_, request)| request.activity.is_none()) {
            if request.is_of_thread {
                times.add((request.process, request.thread), place, (request.start_ns, request.end_ns));
            }
        }
        let is_of = |row: &Stretch<'_>, request: &Asked| {
            row.process_id == request.process
                && row.activity_id.is_some()
                && request.activity.as_deref() == row.activity_id
        };
        recording.each_recorded::<Stretch<'_>>(|row| {
            for (request, path) in asked.iter().zip(&mut times.paths).filter(|(_, path)| path.is_none()) {
                if is_of(&row, request) {
                    *path = row.activity_path.filter(|path| !path.is_empty()).map(str::to_owned);
                }
            }
        })?;
        let mut kept = 0;
        recording.each_recorded::<Stretch<'_>>(|row| {
            let (from, to) = (row.start_ts_ns, row.end_ts_ns);
            for (place, request) in asked.iter().enumerate() {
                if from > request.end_ns || to < request.start_ns || row.process_id != request.process {
                    continue;
                }
                let outer = times.paths.get(place).and_then(Option::as_deref);
                let is_inner = outer.zip(row.activity_path).is_some_and(|(outer, path)| lies_in(path, outer));
                if (is_of(&row, request) || is_inner) && kept < MAX_TIMES {
                    kept += 1;
                    let key = (request.process, row.thread_id);
                    times.add(key, place, (from.max(request.start_ns), to.min(request.end_ns)));
                    if let Some((id, path)) = row.activity_id.zip(row.activity_path)
                        && !times.inner.contains_key(id)
                    {
                        times.inner.insert(id.to_owned(), path.to_owned());
                    }
                }
            }
        })?;
        for requests in times.of_threads.values_mut() {
            requests.iter_mut().for_each(|(_, times)| times.sort_unstable());
        }
        Ok(times)
    }

    fn add(&mut self, thread: (u64, u64), place: usize, time: (i64, i64)) {
        let requests = self.of_threads.entry(thread).or_default();
        match requests.iter_mut().find(|(known, _)| *known == place) {
            Some((_, times)) => times.push(time),
            None => requests.push((place, vec![time])),
        }
    }

    /// The requests that a thread worked for at a moment.
    fn at(&self, thread: (u64, u64), ts_ns: i64) -> impl Iterator<Item = usize> {
        let requests = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let is_in = move |times: &[(i64, i64)]| {
            let after = times.partition_point(|(from, _)| *from <= ts_ns);
            times.get(..after).and_then(<[_]>::last).is_some_and(|(_, to)| ts_ns < *to)
        };
        requests.iter().filter(move |(_, times)| is_in(times)).map(|(place, _)| *place)
    }
}

/// A kind of time that is added up.
#[derive(Clone, Copy, Debug)]
enum Of {
    Cpu,
    Wait,
    Lock,
    Query,
    Call,
    Await,
}

/// Sums in the making.
struct Sums<'a> {
    asked: &'a [Asked],
    times: Times,
    all: Vec<[u64; 6]>,
}

impl Sums<'_> {
    fn add(&mut self, of: Of, place: usize, ns: i64) {
        if let Some(sum) = self.all.get_mut(place).and_then(|sums| sums.get_mut(of as usize)) {
            *sum = sum.saturating_add(ns.max(0).cast_unsigned());
        }
    }

    /// A time of a thread belongs to the requests that the thread works for at its start.
    fn add_time(&mut self, of: Of, thread: (u64, u64), from: i64, to: Option<i64>) {
        let Some(to) = to else { return };
        for place in self.times.at(thread, from).collect::<Vec<_>>() {
            let end = self.asked.get(place).map_or(0, |request| request.end_ns);
            self.add(of, place, to.min(end).saturating_sub(from));
        }
    }

    /// A moment of a thread that stands for a time.
    fn add_moment(&mut self, thread: (u64, u64), ts_ns: i64, ns: i64) {
        for place in self.times.at(thread, ts_ns).collect::<Vec<_>>() {
            self.add(Of::Cpu, place, ns);
        }
    }
}

/// The time that each of the requests spent. `server` reports those that came in: provider and name.
pub fn spent(recording: &Recording<'_>, asked: &[Asked], server: Option<(&str, &str)>) -> Result<Vec<Spent>> {
    let times = Times::read(recording, asked)?;
    let mut sums = Sums { asked, times, all: vec![[0; 6]; asked.len()] };
    let known = metrics(recording)?;
    let is_recorded = |name: &str| {
        let is_known = |metric: &Metric| metric.value.is_some() || metric.missing == Some(Missing::Empty);
        known.iter().any(|metric| metric.name == name && is_known(metric))
    };
    let has_time = samples(recording, &mut sums)?;
    recording.each_recorded::<Wait<'_>>(|row| {
        sums.add_time(Of::Wait, (row.process_id, row.thread_id), row.start_ts_ns, row.end_ts_ns);
    })?;
    recording.each_recorded::<LockWait<'_>>(|row| {
        sums.add_time(Of::Lock, (row.process_id, row.thread_id), row.start_ts_ns, row.end_ts_ns);
    })?;
    let has_queries = sent(recording, &mut sums)? || are_asked(recording)?;
    let has_awaits = awaits(recording, &mut sums, server)?;
    let recorded = [
        is_recorded("cpu.samples") && has_time,
        is_recorded("wait.count"),
        is_recorded("contention.count"),
        has_queries,
        is_recorded("request.client.count"),
        has_awaits,
    ];
    let of = asked.iter().zip(&sums.all).map(|(request, sums)| {
        let [cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns] = std::array::from_fn(|of| {
            let is_recorded = recorded.get(of).copied().unwrap_or_default() && request.is_known();
            sums.get(of).copied().filter(|_| is_recorded)
        });
        // Only activities say whose an await is.
        let await_ns = await_ns.filter(|_| request.is_server && request.activity.is_some());
        Spent { cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns }
    });
    Ok(of.collect())
}

/// Whether the session asked for queries, so that none means 0.
fn are_asked(recording: &Recording<'_>) -> Result<bool> {
    let mut are = false;
    recording.each_recorded::<Provider<'_>>(|row| {
        let names = ["SqlClient", "EntityFrameworkCore", "[AS]"];
        are |= row.provider_name == "Microsoft-Diagnostics-DiagnosticSource"
            && row.arguments.is_some_and(|arguments| names.iter().any(|name| arguments.contains(name)));
    })?;
    Ok(are)
}

/// Adds queries and calls. One that lies in another counts there: several report the same. Returns whether there is a
/// query.
fn sent(recording: &Recording<'_>, sums: &mut Sums<'_>) -> Result<bool> {
    let mut work: BTreeMap<u64, Work> = BTreeMap::new();
    let kind_of = |row: &Activity<'_>| {
        let [start, end] = [row.start_fields, row.end_fields].map(Option::unwrap_or_default);
        Kind::of(row.provider_name, row.name, query_text(start, end).is_some())
    };
    recording.each_recorded::<Activity<'_>>(|row| work.entry(row.process_id).or_default().add(&row, kind_of(&row)))?;
    work.values_mut().for_each(Work::finish);
    let mut has_queries = false;
    recording.each_recorded::<Activity<'_>>(|row| {
        let kind = kind_of(&row);
        let of = match kind {
            Kind::Query => Of::Query,
            Kind::Call(_) => Of::Call,
            _ => return,
        };
        has_queries |= kind == Kind::Query;
        let parent = id_of(row.parent_activity_id);
        if work.get(&row.process_id).is_some_and(|work| work.is_inside(kind, parent, row.start_ts_ns)) {
            return;
        }
        let to = row.duration_ns.map(|ns| row.start_ts_ns.saturating_add(ns));
        for place in sums.times.at((row.process_id, row.thread_id), row.start_ts_ns).collect::<Vec<_>>() {
            let Some((request, to)) = sums.asked.get(place).zip(to) else { continue };
            // A call does not call itself.
            if request.start_ns != row.start_ts_ns || request.activity.as_deref() != row.activity_id {
                sums.add(of, place, to.min(request.end_ns).saturating_sub(row.start_ts_ns));
            }
        }
    })?;
    Ok(has_queries)
}

/// Adds what the async methods of requests that came in awaited: a wait belongs to the request in whose activity it
/// lies, and of those that lie in each other to the one that began last. Returns whether a wait is recorded.
fn awaits(recording: &Recording<'_>, sums: &mut Sums<'_>, server: Option<(&str, &str)>) -> Result<bool> {
    let mut waits: Vec<(u64, i64, i64, String)> = Vec::new();
    let mut is_recorded = false;
    each_leaf(recording, |row| {
        is_recorded = true;
        let path = row.activity_path.filter(|path| row.kind == "async" && !path.is_empty());
        let wanted = path.filter(|path| sums.times.paths.iter().flatten().any(|outer| lies_in(path, outer)));
        if let Some(path) = wanted.filter(|_| waits.len() < MAX_TIMES) {
            waits.push((row.process_id, row.start_ts_ns, row.duration_ns.unwrap_or_default(), path.to_owned()));
        }
    })?;
    let Some((provider, name)) = server.filter(|_| is_recorded) else { return Ok(is_recorded) };
    // Requests that came in and lie in those that are asked for: when they ran, and the path of their activity.
    let mut inner: Vec<(u64, i64, i64, String)> = Vec::new();
    recording.each_recorded::<Activity<'_>>(|row| {
        let path = row.activity_id.and_then(|id| sums.times.inner.get(id));
        let path = path.filter(|_| (row.provider_name, row.name) == (provider, name) && inner.len() < MAX_TIMES);
        if let Some((path, ns)) = path.zip(row.duration_ns) {
            inner.push((row.process_id, row.start_ts_ns, row.start_ts_ns.saturating_add(ns), path.clone()));
        }
    })?;
    let asked = sums.asked;
    for (process, ts_ns, ns, path) in &waits {
        let holds = |from: i64, to: i64, outer: &str| (from..=to).contains(ts_ns) && lies_in(path, outer);
        let of_process = inner.iter().filter(|(of, ..)| of == process);
        let last = of_process.filter(|(_, from, to, outer)| holds(*from, *to, outer)).map(|(_, from, ..)| *from).max();
        for (place, request) in asked.iter().enumerate() {
            let outer = sums.times.paths.get(place).and_then(Option::as_deref);
            let is_its = request.is_server
                && request.process == *process
                && outer.is_some_and(|outer| holds(request.start_ns, request.end_ns, outer))
                && last.is_none_or(|last| last <= request.start_ns);
            if is_its {
                sums.add(Of::Await, place, *ns);
            }
        }
    }
    Ok(true)
}

/// Adds the time of CPU samples. A sample of the runtime's sampler stands for the time up to halfway to the samples of
/// its thread before and behind it, another one for the interval of the recording. Returns whether there is one whose
/// time is known.
fn samples(recording: &Recording<'_>, sums: &mut Sums<'_>) -> Result<bool> {
    let mut interval_ns = None;
    recording
        .each_recorded::<Rate<'_>>(|row| interval_ns = Some(row.sampling_ns.cast_signed()).filter(|ns| *ns > 0))?;
    // Of each thread the last sample of the runtime.
    let mut last: Map<(u64, u64), (i64, bool)> = Map::default();
    let mut has_time = false;
    recording.each_recorded::<Sample<'_>>(|row| {
        let (thread, ts_ns) = ((row.process_id, row.thread_id), row.ts_ns);
        if is_of_runtime(row.kind) {
            has_time = true;
            let is_busy = State::of(row.kind) == State::Running;
            if let Some((before, was_busy)) = last.insert(thread, (ts_ns, is_busy)) {
                let half = ts_ns.saturating_sub(before).max(0) / 2;
                for (at, is_busy) in [(before, was_busy), (ts_ns, is_busy)] {
                    sums.add_moment(thread, at, if is_busy { half } else { 0 });
                }
            }
        } else if let (None | Some("thread"), Some(interval_ns)) = (row.kind, interval_ns) {
            has_time = true;
            sums.add_moment(thread, ts_ns, interval_ns.saturating_mul(row.sample_count.max(1).into()));
        }
    })?;
    Ok(has_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_lies_in_those_that_its_path_begins_with() {
        assert!(lies_in("//1/34/2", "//1/34") && lies_in("//1/34", "//1/34") && lies_in("//1/34$7", "//1/34"));
        assert!(!lies_in("//1/345", "//1/34") && !lies_in("//1", "//1/34"));
    }

    #[test]
    fn a_moment_belongs_to_the_requests_that_its_thread_works_for() {
        let mut times = Times::default();
        for (place, time) in [(0, (10, 20)), (0, (30, 40)), (1, (15, 35))] {
            times.add((1, 7), place, time);
        }
        let at = |thread: u64, ts_ns: i64| times.at((1, thread), ts_ns).collect::<Vec<_>>();
        assert_eq!((at(7, 9), at(7, 10), at(7, 16), at(7, 20)), (vec![], vec![0], vec![0, 1], vec![1]));
        assert_eq!((at(7, 30), at(7, 40), at(8, 16)), (vec![0, 1], vec![], vec![]));
    }
}
