//! The time of requests: on the processor, in waits, locks, queries and calls of the threads that worked for them, as
//! the view `request_time` has it.

use super::route::route;
use super::work::{Activity, Kind, Work, id_of, query_text};
use super::worked::{Asked, MAX_TIMES, Worked, lies_in};
use crate::metrics::{is_recorded, metrics};
use crate::prelude::*;
use crate::subjects::allocations::{self, Allocation};
use crate::subjects::processor::{State, is_of_runtime};
use crate::subjects::sites::Sites;
use crate::subjects::waits::{LockWait, Wait, each_leaf};

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
    /// Bytes that these threads allocated, by the samples of allocations.
    pub allocated: Option<u64>,
}

row!(struct Sample of cpu_sample { process_id, thread_id, callsite_id, ts_ns, kind, sample_count });

row!(struct Rate of trace { sampling_ns });

row!(struct Provider of session_provider { provider_name, arguments });

/// A kind of time, or of bytes, that is added up; and what else a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// On the processor.
    Cpu,
    /// A wait, but for a lock.
    Wait,
    /// A wait for a lock.
    Lock,
    /// A query of a database.
    Query,
    /// A request of HttpClient.
    Call,
    /// A wait of an async method, without a thread.
    Await,
    /// An allocation. Its amount is bytes.
    Allocation,
    /// Another activity, which is in no sum.
    Span,
}

/// The number of kinds that are added up.
const SHARES: usize = 7;

/// A piece of a request.
#[derive(Clone, Debug)]
pub struct Part {
    /// The place of the request among those that were asked for.
    pub request: usize,
    /// The kind.
    pub share: Share,
    /// OS thread id; `None` of what has no thread.
    pub thread_id: Option<u64>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// What the sum of its kind has of it: nanoseconds, or bytes.
    pub amount: u64,
    /// The own method on its stack.
    pub own_method: Option<String>,
    /// The statement, the address or the name, where it has one.
    pub text: String,
    callsite: u32,
}

/// The pieces of requests, in no order.
#[derive(Debug, Default)]
pub struct Parts {
    /// All that there is room for.
    pub all: Vec<Part>,
    /// The number of those without room.
    pub left_out: u64,
}

/// Parts that are kept.
const MAX_PARTS: usize = 1 << 16;

/// Sums in the making.
struct Sums<'a> {
    asked: &'a [Asked],
    worked: &'a Worked,
    all: Vec<[u64; SHARES]>,
    /// The parts of the first requests, and how many these are.
    parts: Parts,
    parted: usize,
    /// Of a request and thread the last part on the processor.
    last_cpu: Map<(usize, u64), usize>,
}

impl Sums<'_> {
    /// Adds an amount to a request, and its part.
    fn add(&mut self, request: usize, share: Share, start_ns: i64, amount: i64, from: From<'_>) {
        let amount = amount.max(0).cast_unsigned();
        if let Some(sum) = self.all.get_mut(request).and_then(|sums| sums.get_mut(share as usize)) {
            *sum = sum.saturating_add(amount);
        }
        if request >= self.parted {
            return;
        }
        let parts = &mut self.parts;
        let From { thread_id, callsite, text } = from;
        if share == Share::Cpu {
            // Samples one behind the other are one part.
            let last = self.last_cpu.get(&(request, thread_id.unwrap_or_default()));
            if let Some(last) = last.and_then(|last| parts.all.get_mut(*last)) {
                let end = last.start_ns.saturating_add(last.amount.cast_signed());
                if last.callsite == callsite && start_ns.saturating_sub(end).unsigned_abs() <= 1 {
                    last.amount = last.amount.saturating_add(amount);
                    return;
                }
            }
            self.last_cpu.insert((request, thread_id.unwrap_or_default()), parts.all.len());
        }
        if parts.all.len() >= MAX_PARTS || (amount == 0 && share == Share::Cpu) {
            parts.left_out += u64::from(amount > 0);
            return;
        }
        let text = text.to_owned();
        parts.all.push(Part { request, share, thread_id, start_ns, amount, own_method: None, text, callsite });
    }

    /// A time of a thread belongs to the requests that the thread works for at its start.
    fn add_time(&mut self, share: Share, thread: (u64, u64), from: i64, to: Option<i64>, callsite: u32) {
        let Some(to) = to else { return };
        let worked = self.worked;
        for place in worked.at(thread, from) {
            let end = self.asked.get(place).map_or(0, |request| request.end_ns);
            let of = From { thread_id: Some(thread.1), callsite, text: "" };
            self.add(place, share, from, to.min(end).saturating_sub(from), of);
        }
    }

    /// A sample of a thread that stands for a time from a moment on.
    fn add_sample(&mut self, thread: (u64, u64), ts_ns: i64, from: i64, ns: i64, callsite: u32) {
        let worked = self.worked;
        for place in worked.at(thread, ts_ns) {
            self.add(place, Share::Cpu, from, ns, From { thread_id: Some(thread.1), callsite, text: "" });
        }
    }
}

/// Where a part comes from.
#[derive(Clone, Copy)]
struct From<'t> {
    thread_id: Option<u64>,
    callsite: u32,
    text: &'t str,
}

/// The time that each of the requests spent, by when threads worked for them, and the parts that the sums of the first ones are made of.
/// `server` reports requests that came in: provider and name.
pub fn spent(
    recording: &Recording<'_>,
    asked: &[Asked],
    worked: &Worked,
    server: Option<(&str, &str)>,
    parted: usize,
) -> Result<(Vec<Spent>, Parts)> {
    let (parts, last_cpu) = (Parts::default(), Map::default());
    let mut sums = Sums { asked, worked, all: vec![[0; SHARES]; asked.len()], parts, parted, last_cpu };
    let known = metrics(recording)?;
    let is_recorded = |name: &str| is_recorded(&known, name);
    let has_time = samples(recording, &mut sums)?;
    recording.each_recorded::<Wait<'_>>(|row| {
        sums.add_time(Share::Wait, (row.process_id, row.thread_id), row.start_ts_ns, row.end_ts_ns, row.callsite_id);
    })?;
    recording.each_recorded::<LockWait<'_>>(|row| {
        sums.add_time(Share::Lock, (row.process_id, row.thread_id), row.start_ts_ns, row.end_ts_ns, row.callsite_id);
    })?;
    if recording.has::<Allocation<'_>>() {
        allocations::each(recording, |row| {
            let bytes = row.allocation_bytes.unwrap_or_default().min(i64::MAX as u64).cast_signed();
            let from = From {
                thread_id: Some(row.thread_id),
                callsite: row.callsite_id,
                text: row.type_name.unwrap_or_default(),
            };
            for place in sums.worked.at((row.process_id, row.thread_id), row.ts_ns) {
                sums.add(place, Share::Allocation, row.ts_ns, bytes, from);
            }
            Ok(())
        })?;
    }
    let has_queries = sent(recording, &mut sums)? || are_asked(recording)?;
    let has_awaits = awaits(recording, &mut sums, server)?;
    let recorded = [
        is_recorded("cpu.samples") && has_time,
        is_recorded("wait.count"),
        is_recorded("contention.count"),
        has_queries,
        is_recorded("request.client.count"),
        has_awaits,
        is_recorded("allocation.bytes"),
    ];
    let of = asked.iter().zip(&sums.all).map(|(request, sums)| {
        let [cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns, allocated] = std::array::from_fn(|of| {
            let is_recorded = recorded.get(of).copied().unwrap_or_default() && request.is_known();
            sums.get(of).copied().filter(|_| is_recorded)
        });
        // Only activities say whose an await is.
        let await_ns = await_ns.filter(|_| request.is_server && request.activity.is_some());
        Spent { cpu_ns, wait_ns, lock_ns, query_ns, call_ns, await_ns, allocated }
    });
    let (of, mut parts) = (of.collect(), sums.parts);
    if !parts.all.is_empty() {
        let sites = Sites::read(recording)?;
        for part in &mut parts.all {
            part.own_method = sites.own_method(part.callsite).map(str::to_owned);
        }
    }
    Ok((of, parts))
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
            Kind::Query => Share::Query,
            Kind::Call(_) => Share::Call,
            Kind::Other if sums.parted > 0 => Share::Span,
            _ => return,
        };
        has_queries |= kind == Kind::Query;
        let parent = id_of(row.parent_activity_id);
        let is_inside = |work: &Work| of != Share::Span && work.is_inside(kind, parent, row.start_ts_ns);
        if work.get(&row.process_id).is_some_and(is_inside) {
            return;
        }
        let to = row.duration_ns.map(|ns| row.start_ts_ns.saturating_add(ns));
        for place in sums.worked.at((row.process_id, row.thread_id), row.start_ts_ns) {
            let Some((request, to)) = sums.asked.get(place).zip(to) else { continue };
            // A call does not call itself.
            if request.start_ns != row.start_ts_ns || request.activity.as_deref() != row.activity_id {
                let amount = to.min(request.end_ns).saturating_sub(row.start_ts_ns);
                let [start, end] = [row.start_fields, row.end_fields].map(Option::unwrap_or_default);
                let text = match of {
                    _ if place >= sums.parted => None,
                    Share::Query => query_text(start, end),
                    Share::Call => Some(route(start, end)).filter(|text| !text.is_empty()),
                    _ => None,
                };
                let text = text.as_deref().unwrap_or(row.name);
                let from = From { thread_id: Some(row.thread_id), callsite: row.callsite_id, text };
                sums.add(place, of, row.start_ts_ns, amount, from);
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
        let wanted = path.filter(|path| sums.worked.paths.iter().flatten().any(|outer| lies_in(path, outer)));
        if let Some(path) = wanted.filter(|_| waits.len() < MAX_TIMES) {
            waits.push((row.process_id, row.start_ts_ns, row.duration_ns.unwrap_or_default(), path.to_owned()));
        }
    })?;
    let Some((provider, name)) = server.filter(|_| is_recorded) else { return Ok(is_recorded) };
    // Requests that came in and lie in those that are asked for: when they ran, and the path of their activity.
    let mut inner: Vec<(u64, i64, i64, String)> = Vec::new();
    recording.each_recorded::<Activity<'_>>(|row| {
        let path = row.activity_id.and_then(|id| sums.worked.inner.get(id));
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
            let outer = sums.worked.paths.get(place).and_then(Option::as_deref);
            let is_its = request.is_server
                && request.process == *process
                && outer.is_some_and(|outer| holds(request.start_ns, request.end_ns, outer))
                && last.is_none_or(|last| last <= request.start_ns);
            if is_its {
                sums.add(place, Share::Await, *ts_ns, *ns, From { thread_id: None, callsite: 0, text: "" });
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
    let mut last: Map<(u64, u64), (i64, bool, u32)> = Map::default();
    let mut has_time = false;
    recording.each_recorded::<Sample<'_>>(|row| {
        let (thread, ts_ns, site) = ((row.process_id, row.thread_id), row.ts_ns, row.callsite_id);
        if is_of_runtime(row.kind) {
            has_time = true;
            let is_busy = State::of(row.kind) == State::Running;
            if let Some((before, was_busy, site_before)) = last.insert(thread, (ts_ns, is_busy, site)) {
                let half = ts_ns.saturating_sub(before).max(0) / 2;
                sums.add_sample(thread, before, before, if was_busy { half } else { 0 }, site_before);
                sums.add_sample(thread, ts_ns, ts_ns.saturating_sub(half), if is_busy { half } else { 0 }, site);
            }
        } else if let (None | Some("thread"), Some(interval_ns)) = (row.kind, interval_ns) {
            has_time = true;
            let ns = interval_ns.saturating_mul(row.sample_count.max(1).into());
            sums.add_sample(thread, ts_ns, ts_ns.saturating_sub(ns / 2), ns, site);
        }
    })?;
    Ok(has_time)
}
