//! What requests spent their time on: the processor, waits, locks and calls of the threads that worked for them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tracequet_analyze::subjects::processor::{State, is_of_runtime};
use tracequet_analyze::subjects::requests::query_text;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::read::{Row, each};
use crate::tasks::{LEAF, each_leaf};

/// Times of threads that are kept.
const MAX_TIMES: usize = 1 << 20;

/// A request that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Whether it came in.
    pub is_server: bool,
    pub process: u64,
    pub thread: u64,
    /// Whether its thread also ended it.
    pub is_of_thread: bool,
    pub activity: Option<String>,
    pub start_ns: i64,
    pub end_ns: i64,
}

impl Asked {
    /// Whether a thread can be known to work for it.
    fn is_known(&self) -> bool {
        self.activity.is_some() || self.is_of_thread
    }
}

/// What a request spent its time on, in nanoseconds; `None` is not recorded, or cannot be distinguished from other work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub cpu_ns: Option<u64>,
    pub wait_ns: Option<u64>,
    pub lock_ns: Option<u64>,
    pub query_ns: Option<u64>,
    pub call_ns: Option<u64>,
    /// What its async methods awaited, which may lie in the others.
    pub await_ns: Option<u64>,
}

/// Who reports them: provider and name of the activities; `None` when they are not recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sources<'s> {
    /// Requests that came in.
    pub server: Option<(&'s str, &'s str)>,
    /// Calls of HTTP.
    pub client: Option<(&'s str, &'s str)>,
    /// Queries of databases.
    pub queries: Option<(&'s str, &'s str)>,
}

/// Whether the fields of an activity are those of a query.
pub(crate) fn is_query(start: Option<&str>, end: Option<&str>) -> bool {
    query_text(start.unwrap_or_default(), end.unwrap_or_default()).is_some()
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
    of_threads: HashMap<(u64, u64), Vec<Worked>, RandomState>,
    /// Activities that lie in requests, and their paths.
    activities: HashMap<String, Inner, RandomState>,
    /// The path of the activity of each request.
    paths: Vec<Option<String>>,
}

/// An activity that lies in requests.
#[derive(Debug, Default)]
struct Inner {
    requests: Vec<usize>,
    path: Option<String>,
}

impl Times {
    fn read(recording: &Recording<'_>, asked: &[Asked]) -> Result<Times> {
        let mut times = Times::default();
        for (place, request) in asked.iter().enumerate().filter(|(_, request)| request.activity.is_none()) {
            if request.is_of_thread {
                times.add((request.process, request.thread), place, (request.start_ns, request.end_ns));
            }
        }
        let mut paths: Vec<Option<String>> = vec![None; asked.len()];
        let wanted = |process: Option<u64>, id: Option<&str>, request: &Asked| {
            id.is_some() && process == Some(request.process) && request.activity.as_deref() == id
        };
        each(recording, "thread_activity", &["process_id", "activity_id", "activity_path"], |row| {
            for (request, path) in asked.iter().zip(&mut paths).filter(|(_, path)| path.is_none()) {
                if wanted(row.number(0), row.text(1), request) {
                    *path = row.word(2).map(str::to_owned);
                }
            }
        })?;
        let mut kept = 0;
        let columns = ["process_id", "thread_id", "start_ts_ns", "end_ts_ns", "activity_id", "activity_path"];
        each(recording, "thread_activity", &columns, |row| {
            let (Some(from), Some(to)) = (row.signed(2), row.signed(3)) else { return };
            for (place, (request, path)) in asked.iter().zip(&paths).enumerate() {
                if from > request.end_ns || to < request.start_ns || row.number(0) != Some(request.process) {
                    continue;
                }
                let is_its = wanted(row.number(0), row.text(4), request)
                    || path.as_deref().zip(row.word(5)).is_some_and(|(outer, path)| lies_in(path, outer));
                if is_its && kept < MAX_TIMES {
                    kept += 1;
                    let key = (request.process, row.number(1).unwrap_or_default());
                    times.add(key, place, (from.max(request.start_ns), to.min(request.end_ns)));
                    let of = times.activities.entry(row.text(4).unwrap_or_default().to_owned()).or_default();
                    if !of.requests.contains(&place) {
                        of.requests.push(place);
                    }
                    if of.path.is_none() {
                        of.path = row.word(5).map(str::to_owned);
                    }
                }
            }
        })?;
        for requests in times.of_threads.values_mut() {
            requests.iter_mut().for_each(|(_, times)| times.sort_unstable());
        }
        times.paths = paths;
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

/// What each of the requests spent its time on.
pub(crate) fn spent(recording: &Recording<'_>, asked: &[Asked], sources: &Sources<'_>) -> Result<Vec<Spent>> {
    let times = Times::read(recording, asked)?;
    let mut sums = vec![[0u64; 6]; asked.len()];
    let mut add = |sum: usize, place: usize, ns: i64| {
        if let Some(sum) = sums.get_mut(place).and_then(|sums| sums.get_mut(sum)) {
            *sum = sum.saturating_add(ns.max(0) as u64);
        }
    };
    let end = |place: usize| asked.get(place).map_or(0, |request| request.end_ns);
    let mut recorded = [false; 6];
    recorded[0] = samples(recording, &times, |place, ns| add(0, place, ns))?;
    // A row with process, thread, start and end belongs to the requests that its thread works for at its start.
    let mut add_row = |sum: usize, row: &Row<'_>| {
        let (Some(from), Some(to)) = (row.signed(2), row.signed(3)) else { return };
        let thread = (row.number(0).unwrap_or_default(), row.number(1).unwrap_or_default());
        times.at(thread, from).for_each(|place| add(sum, place, to.min(end(place)).saturating_sub(from)));
    };
    for (sum, table) in [(1, "wait"), (2, "contention")] {
        let mut rows = 0u64;
        each(recording, table, &["process_id", "thread_id", "start_ts_ns", "end_ts_ns"], |row| {
            rows += 1;
            add_row(sum, row);
        })?;
        if let Some(recorded) = recorded.get_mut(sum) {
            *recorded = rows > 0;
        }
    }
    if let Some((provider, name)) = sources.queries {
        recorded[3] = true;
        let columns = [
            "process_id",
            "thread_id",
            "start_ts_ns",
            "end_ts_ns",
            "provider_name",
            "name",
            "start_fields",
            "end_fields",
        ];
        each(recording, "activity", &columns, |row| {
            let is_of_source = row.text(4) == Some(provider) && row.text(5) == Some(name);
            if is_of_source && is_query(row.text(6), row.text(7)) {
                add_row(3, row);
            }
        })?;
    }
    if let Some((provider, name)) = sources.client {
        recorded[4] = true;
        let columns = ["provider_name", "name", "start_ts_ns", "end_ts_ns", "activity_id"];
        each(recording, "activity", &columns, |row| {
            if row.text(0) != Some(provider) || row.text(1) != Some(name) {
                return;
            }
            let (Some(from), Some(to)) = (row.signed(2), row.signed(3)) else { return };
            for place in row.text(4).and_then(|id| times.activities.get(id)).iter().flat_map(|of| &of.requests) {
                let Some(request) = asked.get(*place) else { continue };
                // A call does not call itself.
                let is_itself = row.text(4) == request.activity.as_deref();
                if !is_itself && (request.start_ns..=request.end_ns).contains(&from) {
                    add(4, *place, to.min(request.end_ns).saturating_sub(from));
                }
            }
        })?;
    }
    recorded[5] = awaits(recording, asked, &times, sources.server, |place, ns| add(5, place, ns))?;
    let of = asked.iter().zip(&sums).map(|(request, sums)| {
        let [cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns] = std::array::from_fn(|sum| {
            let is_recorded = recorded.get(sum).copied().unwrap_or_default() && request.is_known();
            sums.get(sum).copied().filter(|_| is_recorded)
        });
        // Only activities say whose an await is.
        let await_ns = await_ns.filter(|_| request.is_server && request.activity.is_some());
        Spent { cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns }
    });
    Ok(of.collect())
}

/// Adds what the async methods of requests that came in awaited, as the view `request_time` does: a wait belongs to the request in whose
/// activity it lies, and of those that lie in each other to the one that began last. Returns whether a wait is recorded.
fn awaits(
    recording: &Recording<'_>,
    asked: &[Asked],
    times: &Times,
    server: Option<(&str, &str)>,
    mut add: impl FnMut(usize, i64),
) -> Result<bool> {
    let mut is_recorded = false;
    each(recording, "async_wait", &["start_ts_ns"], |_| is_recorded = true)?;
    let Some((provider, name)) = server.filter(|_| is_recorded) else { return Ok(is_recorded) };
    // Of each request those that lie in it: when they ran, and the path of their activity.
    let mut inner: Vec<Vec<(i64, i64, &str)>> = vec![Vec::new(); asked.len()];
    let columns = ["provider_name", "name", "start_ts_ns", "end_ts_ns", "activity_id", "process_id"];
    each(recording, "activity", &columns, |row| {
        let (Some(from), Some(to), Some(id)) = (row.signed(2), row.signed(3), row.text(4)) else { return };
        let Some(of) = times.activities.get(id).filter(|_| row.text(0) == Some(provider) && row.text(1) == Some(name))
        else {
            return;
        };
        for place in &of.requests {
            if let (Some(request), Some(inner), Some(path)) = (asked.get(*place), inner.get_mut(*place), &of.path) {
                let is_inner =
                    from > request.start_ns && from <= request.end_ns && row.number(5) == Some(request.process);
                inner.extend(is_inner.then_some((from, to, path.as_str())));
            }
        }
    })?;
    each_leaf(recording, &["kind", "start_ts_ns", "duration_ns", "activity_path"], |row, _| {
        let (Some("async"), Some(ts_ns), Some(path)) = (row.text(LEAF), row.signed(LEAF + 1), row.word(LEAF + 3))
        else {
            return;
        };
        for (place, ((request, own), inner)) in asked.iter().zip(&times.paths).zip(&inner).enumerate() {
            let lies_in_it = |from: i64, to: i64, outer: &str| (from..=to).contains(&ts_ns) && lies_in(path, outer);
            let is_its = own.as_ref().is_some_and(|own| lies_in_it(request.start_ns, request.end_ns, own));
            let is_of_process = row.number(0) == Some(request.process) && request.is_server;
            if is_of_process && is_its && !inner.iter().any(|(from, to, outer)| lies_in_it(*from, *to, outer)) {
                add(place, row.signed(LEAF + 2).unwrap_or_default());
            }
        }
    })?;
    Ok(true)
}

/// Adds the time of CPU samples. A sample of the runtime's sampler stands for the time up to halfway to the samples of its thread before
/// and behind it, another one for the interval of the recording. Returns whether there is one whose time is known.
fn samples(recording: &Recording<'_>, times: &Times, mut add: impl FnMut(usize, i64)) -> Result<bool> {
    let mut interval_ns = None;
    each(recording, "trace", &["sampling_ns"], |row| interval_ns = row.signed(0).filter(|ns| *ns > 0))?;
    // Of each thread the last sample of the runtime.
    let mut last: HashMap<(u64, u64), (i64, bool), RandomState> = HashMap::default();
    let mut has_time = false;
    each(recording, "cpu_sample", &["process_id", "thread_id", "ts_ns", "kind", "sample_count"], |row| {
        let thread = (row.number(0).unwrap_or_default(), row.number(1).unwrap_or_default());
        let ts_ns = row.signed(2).unwrap_or_default();
        let kind = row.text(3);
        if is_of_runtime(kind) {
            has_time = true;
            let is_busy = State::of(kind) == State::Running;
            if let Some((before, was_busy)) = last.insert(thread, (ts_ns, is_busy)) {
                let half = ts_ns.saturating_sub(before).max(0) / 2;
                if was_busy {
                    times.at(thread, before).for_each(|place| add(place, half));
                }
                if is_busy {
                    times.at(thread, ts_ns).for_each(|place| add(place, half));
                }
            }
        } else if let (None | Some("thread"), Some(interval_ns)) = (kind, interval_ns) {
            has_time = true;
            let many = row.signed(4).unwrap_or(1).max(1);
            times.at(thread, ts_ns).for_each(|place| add(place, interval_ns.saturating_mul(many)));
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
