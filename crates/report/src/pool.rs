//! The thread pool: how many workers, why their number changed, and how long work waited for one.

use tracequet_analyze::present::units::duration;
use tracequet_analyze::subjects::pool::{self, percentile};

use crate::prelude::*;
use crate::timeline::Line;

/// The part, and the line of the timeline.
pub(crate) struct Pool {
    pub html: String,
    pub line: Option<Line>,
}

/// Reads the thread pool. `None` when nothing of it is recorded.
pub(crate) fn pool(recording: &Recording<'_>) -> Result<Option<Pool>> {
    let pool::Pool { events, starved, adjusted, workers, items, waits_ns } = pool::Pool::read(recording)?;
    if events + items == 0 {
        return Ok(None);
    }
    let starvation = match starved {
        0 => "No starvation: the pool never added a worker because all were busy.".to_owned(),
        n => {
            format!("Starvation: {} because all were busy.", counted(n, "worker was added", "times workers were added"))
        }
    };
    let mut html = if events > 0 { format!("<p>{starvation}</p>\n") } else { String::new() };
    if !waits_ns.is_empty() {
        let at = |percent| duration(percentile(&waits_ns, percent).unwrap_or_default() as i64);
        html += &format!(
            "<p>{} waited for a worker: half at most {}, 99 % at most {}, the longest {}.</p>\n",
            counted(waits_ns.len() as u64, "work item", "work items"),
            at(50),
            at(99),
            at(100)
        );
    }
    if !adjusted.is_empty() {
        let table = table!("pool-table", &adjusted, |(reason, of_reason)| {
            words("reason", "Why the number of workers was changed, in the runtime's words") => Cell::text(reason),
            numbers("times", "How often") => Cell::count(of_reason.times),
            numbers("least", "Workers, at least") => Cell::count(of_reason.least.map(u64::from)),
            numbers("most", "Workers, at most") => Cell::count(of_reason.most.map(u64::from)),
            numbers("last s", "When for the last time, in seconds since the recording began") =>
                Cell::moment(of_reason.last_ns),
        });
        html += &table.html("Changes of the number of workers");
    } else if events > 0 {
        let events = counted(events, "event", "events");
        html += &note(&format!("{events} of the pool; the number of workers was not changed."));
    }
    let points: Vec<(i64, f64)> = workers.into_iter().map(|(ts_ns, count)| (ts_ns, count.into())).collect();
    let most = points.iter().fold(0.0, |most: f64, (_, workers)| most.max(*workers));
    let words = format!("workers, at most {most}");
    let line = Line { name: "Thread pool".into(), words, class: "g1", points, is_step: true, ..Line::default() };
    Ok(Some(Pool { html, line: Some(line).filter(|line| !line.points.is_empty()) }))
}
