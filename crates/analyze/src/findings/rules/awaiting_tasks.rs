//! Many tasks wait at one place, such as for a semaphore.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "awaiting_tasks",
    title: "Many tasks wait at one place",
    about: "Many asynchronous methods wait at once for what has no name in the recording, such as a semaphore, a channel or a connection: \
        one waits for the other, or something outside is slow.",
    measure: "The average number of tasks of async methods that had no thread: the sum of their waits, divided by the time. Waits for \
        other methods and for `Task.Delay` do not count. The figure is that of your method with the longest sum. At least 20 tasks. It is no \
        warning by itself: a server that waits for another one looks the same.",
    unit: "count",
    info: 20.0,
    warning: 200.0,
    needs: &["async_tasks"],
    record: "async",
    advice: "If they wait for a `SemaphoreSlim`, a channel or an async lock: let fewer of them need it, hold it for less time (never over a \
        call to another service), or give it more room.",
    causes: &["blocked_workers", "queue_delay"],
    evidence: Evidence { sections: &["async"], sort: Some("waiting") },
    query: "SELECT s.own_method, count(*) AS tasks, sum(t.waiting_ns) / 1e6 AS waiting_ms, max(t.waiting_ns) / 1e6 AS longest_ms \
        FROM async_task t JOIN site s ON s.trace_id = t.trace_id AND s.callsite_id = t.callsite_id \
        WHERE {process of t} AND t.kind IN ('state_machine', 'runtime') GROUP BY ALL ORDER BY waiting_ms DESC NULLS LAST LIMIT 20",
    example: Example::of("habits/outbox", "habits/outbox-clean", Verdict::Info).by("Depot.Outbox.Send"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Tasks without which nothing is said.
const LEAST_TASKS: u64 = 20;

fn judge(look: &Look<'_>) -> Judged {
    let awaiting = &look.process.awaiting;
    let tasks: u64 = awaiting.values().map(|waiting| waiting.tasks).sum();
    if tasks < LEAST_TASKS {
        return Judged::too_few(tasks, LEAST_TASKS, "tasks of async methods");
    }
    let most = look.picture.sites.most(awaiting.iter().map(|(site, waiting)| (*site, waiting.ns as f64)));
    let ns = most.as_ref().map_or(0.0, |most| most.amount);
    let value = ns / (look.seconds() * 1e9).max(1.0);
    let sentence = match &most {
        Some(most) => format!(
            "On average {} tasks of {}{} wait at once for what has no name in the recording, {} in all.",
            words::three(value),
            most.method,
            most.inlined,
            words::time(ns)
        ),
        None => "No task of your own code waits.".to_owned(),
    };
    let own_method = most.map(|most| most.method);
    Figure { value, rows: tasks, at_most: Some(60.0), own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{AsyncTask, AsyncWait, FactSink};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Outbox.Send()", "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start()"]);
        let task = AsyncTask {
            process_id: 7,
            source: "tpl",
            kind: Some("state_machine"),
            callsite_id: site,
            ..AsyncTask::default()
        };
        for task_id in 1..=1000 {
            let waiting_ns = Some(10 * S + (x * 20.0) as i64 * S);
            made.tables.add(&AsyncTask { task_id, method: Some("Send"), waiting_ns, ..task });
            // Ten seconds of it are in Task.Delay.
            let delay = task_id + 10_000;
            made.tables.add(&AsyncTask { task_id: delay, method: Some("Task.Delay"), kind: None, ..task });
            made.tables.add(&AsyncWait {
                process_id: 7,
                task_id: Some(task_id),
                awaited_task_id: Some(delay),
                source: "tpl",
                kind: "async",
                end_ts_ns: Some(10 * S),
                ..AsyncWait::default()
            });
        }
    }
}
