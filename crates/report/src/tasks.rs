//! Asynchronous work: tasks by method, and what they waited for.

use std::collections::HashSet;

use tracequet_analyze::subjects::waits::{Task, Waited, each_leaf, task};

use crate::prelude::*;
use crate::read::span;
use crate::subjects::{Groups, Largest};

/// Tasks whose methods are kept.
const MAX_TASKS: usize = 1 << 20;

/// The method of a task where it is not known.
const UNNAMED: &str = "(not recorded)";

tracequet_dataset::row! {
    struct TaskRow of async_task {
        process_id,
        source,
        task_id,
        kind,
        method,
        running_ns,
        waiting_ns,
        created_ts_ns,
        end_ts_ns,
        thread_switch_count,
        outcome,
    }
}

#[derive(Debug, Default)]
struct Work {
    tasks: u64,
    running_ns: Option<u64>,
    waiting_ns: Option<u64>,
    longest_ns: Option<u64>,
    thread_switches: u64,
    not_ended: u64,
    failed: u64,
}

/// The part. `None` when no task is recorded.
pub(crate) fn tasks(recording: &Recording<'_>) -> Result<Option<String>> {
    let mut groups: Groups<Work> = Groups::new();
    let mut methods: Map<Task, String> = Map::default();
    let (mut rows, mut sources) = (0u64, HashSet::new());
    recording.each_recorded::<TaskRow<'_>>(|row| {
        rows += 1;
        let (task, method) = (task(row.process_id, row.source, Some(row.task_id)), word(row.method));
        sources.extend(task.map(|(_, is_of_profiler, _)| is_of_profiler));
        if let Some((task, method)) = task.zip(method).filter(|_| methods.len() < MAX_TASKS) {
            methods.insert(task, method.to_owned());
        }
        let work = groups.of([method.unwrap_or(UNNAMED), row.kind.unwrap_or_default(), row.source]);
        work.tasks += 1;
        add(&mut work.running_ns, row.running_ns.map(span));
        add(&mut work.waiting_ns, row.waiting_ns.map(span));
        if let Some((from, to)) = row.created_ts_ns.zip(row.end_ts_ns) {
            work.longest_ns = work.longest_ns.max(Some(span(to.saturating_sub(from))));
        }
        work.thread_switches += u64::from(row.thread_switch_count);
        work.not_ended += u64::from(row.end_ts_ns.is_none());
        work.failed += u64::from(row.outcome == Some("failed"));
    })?;
    let waits = waits(recording, &methods)?;
    if rows == 0 && waits.is_none() {
        return Ok(None);
    }
    let mut html = String::new();
    if rows > 0 {
        let Largest { rows: largest, of, .. } = groups.largest(|work| work.waiting_ns.unwrap_or_default());
        let table = table!("tasks-table", &largest, |(names, work)| {
            let name =
                |place: usize| Cell::optional(names.get(place).map(String::as_str).filter(|name| !name.is_empty()));
        } {
            words("method", "Of a chain of async methods the outermost one") => name(0),
            words("kind", "What runs it: runtime, state_machine (by the C# compiler), or task (a work item)") =>
                name(1),
            words("by", "Who reports it: tpl (TplEventSource) or async_profiler (.NET 11)") => name(2),
            numbers("tasks", "How many there were") => Cell::count(work.tasks),
            numbers("waiting", "How long they had no thread: they awaited something, or waited for a worker") =>
                Cell::span(work.waiting_ns),
            numbers("running", "How long they had a thread after they first waited") => Cell::span(work.running_ns),
            numbers("longest", "From creation to end") => Cell::span(work.longest_ns),
            numbers("switches", "How often they went on on another thread") => Cell::count(work.thread_switches),
            numbers("not ended", "Of which the end is not in the recording") => Cell::count(work.not_ended),
            numbers("failed", "Of which the outcome is a failure") => Cell::count(work.failed),
        });
        let mut about = rows_note(largest.len(), of, ["kind by method", "kinds by method"], "the longest waits");
        about += " The time that a method runs before it first waits is in none of them.";
        if sources.len() > 1 {
            about += " Both sources may report the same work: take one.";
        }
        html += &(note(&about) + &table.html("Asynchronous work by method"));
    }
    html += &waits.unwrap_or_default();
    Ok(Some(html))
}

/// What tasks waited for that does not itself wait for another task, as the view `blocked_on` has it. `None` when no
/// wait is recorded.
fn waits(recording: &Recording<'_>, methods: &Map<Task, String>) -> Result<Option<String>> {
    let mut groups: Groups<Waited> = Groups::new();
    let mut rows = 0u64;
    each_leaf(recording, |row| {
        rows += 1;
        let name = |task: Option<Task>| task.and_then(|task| methods.get(&task)).map_or(UNNAMED, String::as_str);
        groups.of([name(row.task()), name(row.awaited()), row.kind]).add(row.duration_ns);
    })?;
    if rows == 0 {
        return Ok(None);
    }
    let Largest { rows: largest, of, .. } = groups.largest(|waited| waited.total_ns);
    let table = table!("awaits-table", &largest, |(names, waited)| {
        let name = |place: usize| Cell::optional(names.get(place).map(String::as_str));
    } {
        words("method", "Of the task that waited") => name(0),
        words("waited for", "The task at the end of the chain that it waited for") => name(1),
        words("kind", "async, or blocking: a thread stood still in Task.Wait, Task.Result and the like") => name(2),
        numbers("waits", "How many") => Cell::count(waited.count),
        numbers("together", "Their sum") => Cell::span(waited.total()),
        numbers("longest", "The longest of them") => Cell::span(waited.longest_ns),
        numbers("not ended", "Of which the end is not in the recording") => Cell::count(waited.not_ended),
    });
    let about = format!(
        "{} for something that does not wait for another task. {}",
        counted(rows, "wait", "waits"),
        rows_note(largest.len(), of, ["kind", "kinds"], "the most time")
    );
    let table = table.html("What asynchronous work waited for");
    Ok(Some(format!("<h3>What it waited for</h3>\n{}{table}", note(&about))))
}
