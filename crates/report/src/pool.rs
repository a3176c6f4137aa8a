//! The thread pool: how many workers, why their number changed, and how long work waited for one.

use tracequet_analyze::present::units::{counted, duration};
use tracequet_analyze::present::{Cell, Table, escaped, numbers, words};
use tracequet_analyze::subjects::pool::{self, percentile};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

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
        let heads = [
            words("reason", "Why the number of workers was changed, in the runtime's words"),
            numbers("times", "How often"),
            numbers("least", "Workers, at least"),
            numbers("most", "Workers, at most"),
            numbers("last s", "When for the last time, in seconds since the recording began"),
        ];
        let mut table = Table::new("pool-table", &heads);
        for (reason, of_reason) in &adjusted {
            table.row(vec![
                Cell::text(reason),
                Cell::count(of_reason.times),
                Cell::count(of_reason.least.map(u64::from)),
                Cell::count(of_reason.most.map(u64::from)),
                Cell::moment(of_reason.last_ns),
            ]);
        }
        html += &table.html("Changes of the number of workers");
    } else if events > 0 {
        html += &format!(
            "<p class=\"note\">{}</p>\n",
            escaped(&format!(
                "{} of the pool; the number of workers was not changed.",
                counted(events, "event", "events")
            ))
        );
    }
    let points: Vec<(i64, f64)> = workers.into_iter().map(|(ts_ns, count)| (ts_ns, count.into())).collect();
    let most = points.iter().fold(0.0, |most: f64, (_, workers)| most.max(*workers));
    let words = format!("workers, at most {most}");
    let line = Line { name: "Thread pool".into(), words, class: "g1", points, is_step: true };
    Ok(Some(Pool { html, line: Some(line).filter(|line| !line.points.is_empty()) }))
}
