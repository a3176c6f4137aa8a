//! Threads by what they did with their time, and how many processors were at work: recordings with context switches.

use tracequet_analyze::present::units::count;
use tracequet_analyze::present::{Cell, cut, numbers, table, words};
use tracequet_analyze::profile::Labels;
use tracequet_analyze::subjects::processor::State;
use tracequet_analyze::subjects::waits::{LockWait, Reason, Reasons, Wait};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;
use tracequet_trace::map::Map;

use crate::document::{note, rows_note};
use crate::handlers::Handlers;
use crate::read::span;
use crate::selection::{Item, NONE, Nodes, Rows, Selection, Thread};
use crate::timeline::{BUCKETS, Line};

/// Threads that are kept, and rows of the table.
const MAX_THREADS: usize = 64 << 10;
const MAX_ROWS: usize = 200;

tracequet_dataset::row! {
    struct ThreadTime of thread_time { process_id, thread_id, callsite_id, state, start_ts_ns, duration_ns }
}

tracequet_dataset::row! {
    struct Sample of cpu_sample { process_id, thread_id, callsite_id, ts_ns, kind }
}

#[derive(Debug, Default)]
struct Times {
    running_ns: u64,
    ready_ns: u64,
    blocked_ns: u64,
    switches: u64,
    longest_ns: u64,
}

/// The part, and the line of the timeline.
pub(crate) struct Threads {
    pub html: String,
    pub line: Option<Line>,
}

/// Reads what threads did. `None` without context switches.
pub(crate) fn threads(recording: &Recording<'_>, labels: &Labels, end_ns: i64) -> Result<Option<Threads>> {
    let mut found: Map<(u64, u64), Times> = Map::default();
    let mut busy = vec![0u64; BUCKETS];
    let (end, mut left_out) = (end_ns.max(1), 0u64);
    recording.each_recorded::<ThreadTime<'_>>(|row| {
        let ns = span(row.duration_ns);
        if row.state == "running" {
            spread(&mut busy, row.start_ts_ns, ns, end);
        }
        let key = (row.process_id, row.thread_id);
        if found.len() >= MAX_THREADS && !found.contains_key(&key) {
            left_out += 1;
            return;
        }
        let times = found.entry(key).or_default();
        let sum = match row.state {
            "running" => {
                times.switches += 1;
                &mut times.running_ns
            }
            "ready" => &mut times.ready_ns,
            _ => {
                times.longest_ns = times.longest_ns.max(ns);
                &mut times.blocked_ns
            }
        };
        *sum = sum.saturating_add(ns);
    })?;
    if found.is_empty() {
        return Ok(None);
    }
    let of = found.len();
    let mut rows: Vec<((u64, u64), Times)> = found.into_iter().collect();
    rows.sort_by_key(|(key, times)| (std::cmp::Reverse(times.running_ns), *key));
    rows.truncate(MAX_ROWS);
    let time = |ns: u64| Cell::span(ns);
    let table = table!("threads-table", &rows, |((process, thread), times)| {
        let name = match labels.process(*process) {
            Some(name) => format!("{} ({process})", cut(name, 100)),
            // Threads that the recording says no process of.
            None if *process == u64::from(u32::MAX) => "unknown process".to_owned(),
            None => process.to_string(),
        };
    } {
        words("process", "Name and id") => Cell::text(&name),
        words("thread", "Name, where it is recorded") =>
            Cell::optional(labels.thread((*process, *thread)).map(|name| cut(name, 100))),
        numbers("id", "Of the thread") => Cell::id(*thread),
        numbers("running", "On a processor") => time(times.running_ns),
        numbers("ready", "Waiting for a processor") => time(times.ready_ns),
        numbers("blocked", "Waiting for anything else") => time(times.blocked_ns),
        numbers("longest", "The longest time that it was blocked") => time(times.longest_ns),
        numbers("runs", "How often it came to a processor") => Cell::count(times.switches),
    });
    let mut about = rows_note(rows.len(), of, ["thread", "threads"], "the most time on a processor");
    if left_out > 0 {
        about += &format!(" {} more rows are beyond what a page reads.", count(left_out));
    }
    let part_ns = end as f64 / BUCKETS as f64;
    let middle = |place: usize| (i128::from(end) * (2 * place as i128 + 1) / (2 * BUCKETS as i128)) as i64;
    let points: Vec<(i64, f64)> =
        busy.iter().enumerate().map(|(place, ns)| (middle(place), *ns as f64 / part_ns)).collect();
    let most = points.iter().fold(0.0, |most: f64, (_, value)| most.max(*value));
    let words = format!("busy at the same time, at most {most:.1}");
    let line = Line { name: "Processors".into(), words, class: "c0", points, ..Line::default() };
    let html = note(&about) + &table.html("Threads");
    Ok(Some(Threads { html, line: Some(line).filter(|_| most > 0.0) }))
}

/// States of threads, by the numbers that the script knows them by.
#[derive(Clone, Copy)]
enum Does {
    Runs = 0,
    /// Ready, and waiting for a processor.
    IsReady = 1,
    /// Outside of managed code, where it waits or runs native code.
    IsOutside = 2,
    /// Waits for one of [`Reason`], from this number on.
    Waits = 3,
}

/// Times that are held as they are; where there are more, they become sums of parts of the time.
const MAX_TIMES: usize = 12_000;

/// Times of threads in the making: thread, start, length, state.
#[derive(Default)]
pub(crate) struct Lanes {
    times: Vec<(Thread, i64, u64, u32)>,
    rows: Option<Rows>,
}

impl Lanes {
    /// Adds the states of each thread to a selection. Returns a sentence on where they come from, `None` without any, and `with_handlers` the
    /// work of the pool's workers as HTML.
    pub(crate) fn read(
        recording: &Recording<'_>,
        selection: &mut Selection,
        end_ns: i64,
        with_handlers: bool,
    ) -> Result<(Option<&'static str>, Option<String>)> {
        let (mut lanes, mut reasons) = (Lanes::default(), Reasons::read(recording)?);
        let mut handlers = with_handlers.then(Handlers::default);
        let mut has_switches = false;
        recording.each_recorded::<ThreadTime<'_>>(|row| {
            has_switches = true;
            let does = match row.state {
                "running" => Does::Runs as u32,
                "ready" => Does::IsReady as u32,
                _ => Does::Waits as u32 + reasons.of(row.callsite_id).0 as u32,
            };
            let thread = (row.process_id, row.thread_id);
            lanes.add(selection, thread, row.start_ts_ns, span(row.duration_ns), does, end_ns);
        })?;
        // A wait that did not end lasts until the recording does.
        let until = |from: i64, to: Option<i64>| span(to.unwrap_or(end_ns).saturating_sub(from));
        if !has_switches {
            recording.each_recorded::<Wait<'_>>(|row| {
                let (thread, (reason, is_worker)) = ((row.process_id, row.thread_id), reasons.of(row.callsite_id));
                if is_worker {
                    selection.workers.insert(thread);
                    handlers.iter_mut().for_each(|handlers| handlers.wait(row.callsite_id, row.duration_ns));
                }
                let (does, ns) = (Does::Waits as u32 + reason as u32, until(row.start_ts_ns, row.end_ts_ns));
                lanes.add(selection, thread, row.start_ts_ns, ns, does, end_ns);
            })?;
            recording.each_recorded::<LockWait<'_>>(|row| {
                if let Some(handlers) = handlers.as_mut().filter(|_| reasons.of(row.callsite_id).1) {
                    handlers.wait(row.callsite_id, row.duration_ns);
                }
                let (does, thread) = (Does::Waits as u32 + Reason::Lock as u32, (row.process_id, row.thread_id));
                lanes.add(selection, thread, row.start_ts_ns, until(row.start_ts_ns, row.end_ts_ns), does, end_ns);
            })?;
        }
        let has_times = lanes.rows.is_some() || !lanes.times.is_empty();
        let states = lanes.finish(selection, end_ns);
        selection.add("states", states, &LINES)?;
        let mut sampled = Rows::by_parts(end_ns, Nodes::default());
        let mut has_samples = false;
        recording.each_recorded::<Sample<'_>>(|row| {
            let (thread, state) = ((row.process_id, row.thread_id), State::of(row.kind));
            let (reason, is_worker) = reasons.of(row.callsite_id);
            if is_worker {
                selection.workers.insert(thread);
                handlers.iter_mut().for_each(|handlers| handlers.sample(row.callsite_id, state == State::Running));
            }
            let group = match state {
                _ if has_switches => return,
                State::Running => Does::Runs as u32,
                State::Waiting if reason == Reason::Other => Does::IsOutside as u32,
                State::Waiting => Does::Waits as u32 + reason as u32,
                _ => return,
            };
            has_samples = true;
            sampled.add_of(selection, Item { thread, ts_ns: row.ts_ns, group, count: 1, ..Item::default() }, NONE);
        })?;
        selection.add("sampled", sampled, &LINES)?;
        let says = Some(match (has_switches, has_times, has_samples) {
            (true, ..) => "What each thread did, by its switches: exact.",
            (_, true, true) => {
                "What each thread did. Waits are those that the runtime reports, with their exact times. The rest is what samples of the runtime show: outside of managed code a thread nearly always waits, but native code may run."
            }
            (_, true, false) => {
                "When threads waited, as the runtime reports it. Without samples nothing says when they ran."
            }
            (_, false, true) => {
                "What samples show of each thread: outside of managed code it nearly always waits, but native code may run. What for is what its call stack says."
            }
            _ => return Ok((None, None)),
        });
        Ok((says, handlers.and_then(|handlers| handlers.html(&reasons))))
    }

    fn add(&mut self, selection: &mut Selection, thread: Thread, start_ns: i64, ns: u64, does: u32, end_ns: i64) {
        if let Some(rows) = &mut self.rows {
            return pieces(rows, selection, (thread, start_ns, ns, does), end_ns);
        }
        self.times.push((thread, start_ns, ns, does));
        if self.times.len() > MAX_TIMES {
            let mut rows = Rows::by_parts(end_ns, Nodes::default());
            self.times.drain(..).for_each(|time| pieces(&mut rows, selection, time, end_ns));
            self.rows = Some(rows);
        }
    }

    fn finish(self, selection: &mut Selection, end_ns: i64) -> Rows {
        let mut rows = self.rows.unwrap_or_else(|| Rows::new(end_ns, Nodes::default()));
        for (thread, ts_ns, ns, group) in self.times {
            rows.add_of(selection, Item { thread, ts_ns, group, count: 1, amount: Some(ns), ..Item::default() }, NONE);
        }
        rows
    }
}

/// The line of each state: its number.
const LINES: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Adds a time to the sums of the parts that it covers.
fn pieces(rows: &mut Rows, selection: &mut Selection, time: (Thread, i64, u64, u32), end_ns: i64) {
    let (thread, start_ns, ns, group) = time;
    each_part(BUCKETS, start_ns, ns, end_ns, |_, from, covered| {
        let amount = Some(covered);
        rows.add_of(selection, Item { thread, ts_ns: from, group, count: 1, amount, ..Item::default() }, NONE);
    });
}

/// Adds a time to the parts of the axis that it covers.
fn spread(parts: &mut [u64], start_ns: i64, ns: u64, end_ns: i64) {
    each_part(parts.len(), start_ns, ns, end_ns, |place, _, covered| {
        if let Some(sum) = parts.get_mut(place) {
            *sum = sum.saturating_add(covered);
        }
    });
}

/// The parts of the axis that a time covers: place, start of what it covers, and how much.
fn each_part(count: usize, start_ns: i64, ns: u64, end_ns: i64, mut take: impl FnMut(usize, i64, u64)) {
    let (count, end) = (count as i128, i128::from(end_ns.max(1)));
    let from = i128::from(start_ns).clamp(0, end);
    let to = (i128::from(start_ns) + i128::from(ns)).clamp(from, end);
    for place in from * count / end..count {
        let (low, high) = (end * place / count, end * (place + 1) / count);
        if low >= to {
            break;
        }
        let covered = to.min(high) - from.max(low);
        if covered > 0 {
            take(place as usize, from.max(low) as i64, covered as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_spread_over_the_parts_that_it_covers() {
        let mut parts = [0u64; 4];
        spread(&mut parts, 50, 200, 400);
        assert_eq!(parts, [50, 100, 50, 0]);
        spread(&mut parts, -100, u64::MAX, 400);
        assert_eq!(parts, [150, 200, 150, 100]);
        spread(&mut parts, 400, 5, 400);
        assert_eq!(parts, [150, 200, 150, 100]);
    }
}
