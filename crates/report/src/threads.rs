//! Threads by what they did with their time, and how many processors were at work: recordings with context switches.

use tracequet_analyze::present::units::count;
use tracequet_analyze::present::{Cell, cut, numbers, table, words};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;
use tracequet_trace::map::Map;

use crate::document::{note, rows_note};
use crate::read::{span, word};
use crate::timeline::{BUCKETS, Line};

/// Threads that are kept, and rows of the table.
const MAX_THREADS: usize = 64 << 10;
const MAX_ROWS: usize = 200;

tracequet_dataset::row! {
    struct ThreadTime of thread_time { process_id, thread_id, state, start_ts_ns, duration_ns }
}

tracequet_dataset::row! {
    struct Process of process { process_id, name }
}

tracequet_dataset::row! {
    struct Thread of thread { process_id, thread_id, name }
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
pub(crate) fn threads(recording: &Recording<'_>, end_ns: i64) -> Result<Option<Threads>> {
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
    let mut processes: Map<u64, String> = Map::default();
    recording.each_recorded::<Process<'_>>(|row| {
        if let Some(name) = word(Some(row.name)) {
            processes.insert(row.process_id, cut(name, 100).to_owned());
        }
    })?;
    let mut names: Map<(u64, u64), String> = Map::default();
    recording.each_recorded::<Thread<'_>>(|row| {
        let key = (row.process_id, row.thread_id);
        if let Some(name) = word(row.name).filter(|_| found.contains_key(&key)) {
            names.insert(key, cut(name, 100).to_owned());
        }
    })?;
    let of = found.len();
    let mut rows: Vec<((u64, u64), Times)> = found.into_iter().collect();
    rows.sort_by_key(|(key, times)| (std::cmp::Reverse(times.running_ns), *key));
    rows.truncate(MAX_ROWS);
    let time = |ns: u64| Cell::span(ns);
    let table = table!("threads-table", &rows, |((process, thread), times)| {
        let name = match processes.get(process) {
            Some(name) => format!("{name} ({process})"),
            // Threads that the recording says no process of.
            None if *process == u64::from(u32::MAX) => "unknown process".to_owned(),
            None => process.to_string(),
        };
    } {
        words("process", "Name and id") => Cell::text(&name),
        words("thread", "Name, where it is recorded") =>
            Cell::optional(names.get(&(*process, *thread)).map(String::as_str)),
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
    let line = Line { name: "Processors".into(), words, class: "c0", points, is_step: false };
    let html = note(&about) + &table.html("Threads");
    Ok(Some(Threads { html, line: Some(line).filter(|_| most > 0.0) }))
}

/// Adds a time to the parts of the axis that it covers.
fn spread(parts: &mut [u64], start_ns: i64, ns: u64, end_ns: i64) {
    let count = parts.len() as i128;
    let end = i128::from(end_ns);
    let from = i128::from(start_ns).clamp(0, end);
    let to = (i128::from(start_ns) + i128::from(ns)).clamp(from, end);
    let first = from * count / end;
    for place in first..count {
        let (low, high) = (end * place / count, end * (place + 1) / count);
        if low >= to {
            break;
        }
        if let Some(sum) = parts.get_mut(place as usize) {
            *sum = sum.saturating_add((to.min(high) - from.max(low)).max(0) as u64);
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
