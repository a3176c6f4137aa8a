//! Async methods of requests that wait again and again, and which methods they wait for.

use std::collections::{BTreeMap, BTreeSet};

use crate::subjects::requests::{Id, Work, id_of};
use crate::subjects::waits::TaskTime;

/// Tasks that are kept, call sites of `Task.Delay`, and tasks at one that wait for it.
const MOST: usize = 1 << 16;
const MOST_SITES: usize = 1 << 10;
const MOST_PARENTS: usize = 1 << 12;

/// A method that is there for longer serves a stream, such as a WebSocket.
const LONGEST_NS: i64 = 5_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Task {
    id: u64,
    parent: u64,
    /// The call site of its beginning, and the number of its name.
    method: (u32, u32),
    activity: Id,
    start_ns: i64,
    duration_ns: i64,
    waiting_ns: f64,
    resumed: u64,
}

/// Runs of an async method within requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Loop {
    pub(super) runs: u64,
    /// How often they went on behind a wait.
    pub(super) resumed: u64,
    pub(super) waiting_ns: f64,
    /// How often async methods ran that they waited for, by call site.
    pub(super) asked: BTreeMap<u32, u64>,
}

/// All of a process.
#[derive(Debug, Default)]
pub(super) struct Loops {
    tasks: Vec<Task>,
    /// By call site and number of the name, once all were seen.
    pub(super) of_requests: BTreeMap<(u32, u32), Loop>,
    /// Waits of `Task.Delay` that belong to no activity, by call site.
    pub(super) delays: BTreeMap<u32, Delays>,
}

/// Waits of `Task.Delay` at a call site.
#[derive(Debug, Default)]
pub(super) struct Delays {
    count: u64,
    parents: BTreeSet<u64>,
}

impl Delays {
    /// How many there are, where one task waits ten times and more: a loop.
    pub(super) fn in_loops(&self) -> f64 {
        if self.count >= 10 * self.parents.len() as u64 { self.count as f64 } else { 0.0 }
    }
}

impl Loops {
    /// A task, with the number of its name.
    pub(super) fn see(&mut self, row: &TaskTime<'_>, name: u32) {
        let (site, activity) = (row.callsite_id, id_of(row.activity_id));
        if row.method == Some("Task.Delay")
            && activity == 0
            && (self.delays.len() < MOST_SITES || self.delays.contains_key(&site))
        {
            let delays = self.delays.entry(site).or_default();
            delays.count += 1;
            if delays.parents.len() < MOST_PARENTS {
                delays.parents.insert(row.parent_task_id.unwrap_or_default());
            }
        }
        let Some(end_ns) = row.end_ts_ns.filter(|_| row.is_method() && activity != 0 && self.tasks.len() < MOST) else {
            return;
        };
        self.tasks.push(Task {
            id: row.task_id,
            parent: row.parent_task_id.unwrap_or_default(),
            method: (site, name),
            activity,
            start_ns: row.ts_ns,
            duration_ns: end_ns.saturating_sub(row.ts_ns),
            waiting_ns: row.waiting_ns.unwrap_or_default().max(0) as f64,
            resumed: u64::from(row.resume_count),
        });
    }

    /// All were seen, and so were the requests.
    pub(super) fn finish(&mut self, work: &Work) {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.retain(|task| task.duration_ns <= LONGEST_NS && work.is_of_request(task.activity, task.start_ns));
        let method_of: BTreeMap<u64, (u32, u32)> = tasks.iter().map(|task| (task.id, task.method)).collect();
        for task in tasks {
            let of_method = self.of_requests.entry(task.method).or_default();
            of_method.runs += 1;
            of_method.resumed = of_method.resumed.saturating_add(task.resumed);
            of_method.waiting_ns += task.waiting_ns;
            if let Some(parent) = method_of.get(&task.parent) {
                *self.of_requests.entry(*parent).or_default().asked.entry(task.method.0).or_default() += 1;
            }
        }
    }
}
