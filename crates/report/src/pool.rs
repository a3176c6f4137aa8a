//! The thread pool: how many workers, why their number changed, and how long work waited for one.

use std::collections::BTreeMap;

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::html::{Cell, Rows, escaped, numbers, words};
use crate::read::each;
use crate::requests::percentile;
use crate::timeline::Line;
use crate::units::{count, counted, duration, moment};

/// Values of workers, and times of waiting, that are held.
const MAX_POINTS: usize = 1 << 20;

#[derive(Debug, Default)]
struct Adjusted {
    times: u64,
    least: Option<u64>,
    most: Option<u64>,
    last_ns: i64,
}

/// The part, and the line of the timeline.
pub(crate) struct Pool {
    pub html: String,
    pub line: Option<Line>,
}

/// Reads the thread pool. `None` when nothing of it is recorded.
pub(crate) fn pool(recording: &Recording<'_>) -> Result<Option<Pool>> {
    let (mut active, mut goals) = (Vec::<(i64, f64)>::new(), Vec::<(i64, f64)>::new());
    let mut adjusted: BTreeMap<String, Adjusted> = BTreeMap::new();
    let (mut rows, mut starved) = (0u64, 0u64);
    each(recording, "thread_pool", &["ts_ns", "kind", "worker_count", "reason", "starvation"], |row| {
        rows += 1;
        let ts_ns = row.signed(0).unwrap_or_default();
        starved += u64::from(row.is(4));
        let workers = row.number(2);
        match row.text(1).unwrap_or_default() {
            "adjustment" => {
                if adjusted.len() < 100 {
                    let of_reason = adjusted.entry(row.text(3).unwrap_or("unknown").to_owned()).or_default();
                    of_reason.times += 1;
                    of_reason.least = of_reason.least.into_iter().chain(workers).min();
                    of_reason.most = of_reason.most.max(workers);
                    of_reason.last_ns = of_reason.last_ns.max(ts_ns);
                }
                goals.extend(workers.filter(|_| goals.len() < MAX_POINTS).map(|workers| (ts_ns, workers as f64)));
            }
            "worker_start" | "worker_stop" | "worker_wait" => {
                active.extend(workers.filter(|_| active.len() < MAX_POINTS).map(|workers| (ts_ns, workers as f64)));
            }
            _ => {}
        }
    })?;
    let (mut waits, mut items) = (Vec::new(), 0u64);
    each(recording, "thread_pool_work", &["wait_ns"], |row| {
        items += 1;
        waits.extend(row.number(0).filter(|_| waits.len() < MAX_POINTS));
    })?;
    if rows + items == 0 {
        return Ok(None);
    }
    let starvation = match starved {
        0 => "No starvation: the pool never added a worker because all were busy.".to_owned(),
        n => {
            format!("Starvation: {} because all were busy.", counted(n, "worker was added", "times workers were added"))
        }
    };
    let mut html = if rows > 0 { format!("<p>{starvation}</p>\n") } else { String::new() };
    if !waits.is_empty() {
        waits.sort_unstable();
        let at = |percent| duration(percentile(&waits, percent).unwrap_or_default() as i64);
        html += &format!(
            "<p>{} waited for a worker: half at most {}, 99 % at most {}, the longest {}.</p>\n",
            counted(waits.len() as u64, "work item", "work items"),
            at(50),
            at(99),
            at(100)
        );
    }
    if !adjusted.is_empty() {
        let heads = [
            words("reason", "Why the number of workers was changed, in the runtime's words"),
            numbers("times", "How often"),
            numbers("least", "Workers, at least"),
            numbers("most", "Workers, at most"),
            numbers("last s", "When for the last time, in seconds since the recording began"),
        ];
        let mut table = Rows::new("pool-table", &heads);
        for (reason, of_reason) in &adjusted {
            table.row(vec![
                Cell::text(Some(reason)),
                Cell::number(Some(of_reason.times), count),
                Cell::number(of_reason.least, count),
                Cell::number(of_reason.most, count),
                Cell::signed(Some(of_reason.last_ns), moment),
            ]);
        }
        html += &table.html("Changes of the number of workers");
    } else if rows > 0 {
        html += &format!(
            "<p class=\"note\">{}</p>\n",
            escaped(&format!(
                "{} of the pool; the number of workers was not changed.",
                counted(rows, "event", "events")
            ))
        );
    }
    let mut points = if active.is_empty() { goals } else { active };
    points.sort_by_key(|(ts_ns, _)| *ts_ns);
    let most = points.iter().fold(0.0, |most: f64, (_, workers)| most.max(*workers));
    let words = format!("workers, at most {most}");
    let line = Line { name: "Thread pool".into(), words, class: "g1", points, is_step: true };
    Ok(Some(Pool { html, line: Some(line).filter(|line| !line.points.is_empty()) }))
}
