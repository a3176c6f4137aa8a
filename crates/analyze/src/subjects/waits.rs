//! Waits: for locks, for what the runtime's other waits are for, and of tasks.

use crate::prelude::*;
use std::collections::BTreeSet;

use super::sites::{Is, Sites};

/// Tasks that are known to wait for others.
const MOST_TASKS: usize = 1 << 20;

row! {
    /// A wait for a lock that another thread held.
    pub struct LockWait of contention {
        process_id, thread_id, callsite_id, start_ts_ns, end_ts_ns, duration_ns, kind, lock_id
    }
}

row! {
    /// Another wait of a thread, for an event, a monitor and the like.
    pub struct Wait of wait {
        process_id, thread_id, callsite_id, start_ts_ns, end_ts_ns, duration_ns, touches_gap, source
    }
}

row! {
    /// A task waited.
    pub struct TaskWait of async_wait {
        process_id, source, task_id, awaited_task_id, kind, start_ts_ns, duration_ns, activity_path
    }
}

/// Beginnings of the names of methods that a lock and its report are made of: a wait belongs to the method that called
/// it, as in the view `contention_by_site`.
pub const OF_LOCKS: [&str; 3] =
    ["System.Threading.Monitor.", "System.Threading.Lock.", "System.Diagnostics.Tracing.NativeRuntimeEventSource."];

/// Waits, or other things that take time. One that did not end in the recording counts, and has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// The number of waits, with those that did not end.
    pub count: u64,
    /// Of those that ended, in nanoseconds.
    pub total_ns: u64,
    /// The longest that ended; `None` when none did.
    pub longest_ns: Option<u64>,
    /// The waits that did not end in the recording.
    pub not_ended: u64,
}

impl Waited {
    /// Adds a wait of this many nanoseconds.
    pub fn add(&mut self, duration_ns: Option<i64>) {
        self.count += 1;
        match duration_ns.map(|ns| ns.max(0).cast_unsigned()) {
            Some(ns) => {
                self.total_ns = self.total_ns.saturating_add(ns);
                self.longest_ns = self.longest_ns.max(Some(ns));
            }
            None => self.not_ended += 1,
        }
    }

    /// Adds other waits.
    pub fn join(&mut self, other: &Waited) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.not_ended = self.not_ended.saturating_add(other.not_ended);
    }

    /// The time of those that ended, if any did.
    pub fn total(&self) -> Option<u64> {
        self.longest_ns.map(|_| self.total_ns)
    }
}

/// A task: process, whether the async profiler reports it, number.
pub type Task = (u64, bool, u64);

/// The task of a number that a source reports.
pub fn task(process_id: u64, source: &str, number: Option<u64>) -> Option<Task> {
    Some((process_id, source == "async_profiler", number?))
}

impl TaskWait<'_> {
    /// The task that waited.
    pub fn task(&self) -> Option<Task> {
        task(self.process_id, self.source, self.task_id)
    }

    /// The task that it waited for.
    pub fn awaited(&self) -> Option<Task> {
        task(self.process_id, self.source, self.awaited_task_id)
    }
}

/// Calls `take` with each wait for something that does not itself wait for another task, as the view `blocked_on` has
/// them.
pub fn each_leaf(recording: &Recording<'_>, mut take: impl FnMut(&TaskWait<'_>)) -> Result<()> {
    let mut waiting: Set<Task> = Set::default();
    recording.each_recorded::<TaskWait<'_>>(|row| {
        waiting.extend(row.task().filter(|_| waiting.len() < MOST_TASKS));
    })?;
    recording.each_recorded::<TaskWait<'_>>(|row| {
        if row.awaited().is_none_or(|awaited| !waiting.contains(&awaited)) {
            take(&row);
        }
    })?;
    Ok(())
}

row! {
    /// How long a task was without a thread.
    pub(crate) struct TaskTime of async_task {
        process_id, source, task_id, parent_task_id, kind, method, callsite_id, activity_id, ts_ns, end_ts_ns, waiting_ns, resume_count
    }
}

impl TaskTime<'_> {
    /// Whether it is an async method.
    pub(crate) fn is_method(&self) -> bool {
        matches!(self.kind, Some("state_machine" | "runtime"))
    }
}

/// Tasks, and waits of tasks, whose times are known.
const MOST_TIMES: usize = 1 << 17;

/// How long tasks of async methods were without a thread, but for the time in which they waited for work that has a name in the recording:
/// another method, `Task.Delay`. What is left is a wait for a semaphore, a channel, a connection, or for a worker.
#[derive(Debug, Default)]
pub(crate) struct Awaits {
    /// Call site and time.
    tasks: BTreeMap<Task, (u32, u64)>,
    named: BTreeSet<Task>,
    waits: Vec<(Task, Task, u64)>,
}

/// Tasks, and how long they waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) tasks: u64,
    pub(crate) ns: u64,
}

impl Awaits {
    pub(crate) fn task(&mut self, row: &TaskTime<'_>) {
        let Some(task) = task(row.process_id, row.source, Some(row.task_id)) else { return };
        if row.method.is_some() && self.named.len() < MOST_TIMES {
            self.named.insert(task);
        }
        if let Some(ns) = row.waiting_ns.filter(|_| row.is_method() && self.tasks.len() < MOST_TIMES) {
            self.tasks.insert(task, (row.callsite_id, ns.max(0).cast_unsigned()));
        }
    }

    pub(crate) fn wait(&mut self, row: &TaskWait<'_>) {
        if let (Some(task), Some(awaited), Some(ns)) = (row.task(), row.awaited(), row.duration_ns)
            && self.waits.len() < MOST_TIMES
        {
            self.waits.push((task, awaited, ns.max(0).cast_unsigned()));
        }
    }

    /// By process and call site. Where both sources report, what the async profiler does.
    pub(crate) fn by_site(&self) -> BTreeMap<(u64, u32), Waiting> {
        let is_of_profiler = self.tasks.keys().any(|(_, is_of_profiler, _)| *is_of_profiler);
        let mut within: BTreeMap<Task, u64> = BTreeMap::new();
        for (task, _, ns) in self.waits.iter().filter(|(_, awaited, _)| self.named.contains(awaited)) {
            let sum = within.entry(*task).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let mut found: BTreeMap<(u64, u32), Waiting> = BTreeMap::new();
        for (task, (site, ns)) in self.tasks.iter().filter(|(task, _)| task.1 == is_of_profiler) {
            let waiting = found.entry((task.0, *site)).or_default();
            waiting.tasks += 1;
            waiting.ns = waiting.ns.saturating_add(ns.saturating_sub(within.get(task).copied().unwrap_or_default()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_an_end_has_no_time() {
        let mut waited = Waited::default();
        waited.add(None);
        assert_eq!((waited.count, waited.total(), waited.not_ended), (1, None, 1));
        [Some(5), Some(-3), Some(7)].into_iter().for_each(|ns| waited.add(ns));
        assert_eq!((waited.count, waited.total(), waited.longest_ns), (4, Some(12), Some(7)));
    }
}

/// What a thread that stands still waits for, by its call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A lock that another thread holds.
    Lock,
    /// The end of a task: `Task.Wait`, `Task.Result` and the like.
    Task,
    /// The end of `Thread.Sleep`.
    Sleep,
    /// A file or a socket.
    Io,
    /// Something to do: a worker of the pool without work.
    Work,
    /// Anything else, or the stack does not say it.
    Other,
}

/// What threads wait for at the call sites of a recording.
#[derive(Debug)]
pub struct Reasons {
    sites: Sites,
    known: Map<u32, (Reason, bool)>,
}

impl Reasons {
    /// Reads the call stacks of a recording.
    pub fn read(recording: &Recording<'_>) -> Result<Reasons> {
        Ok(Reasons { sites: Sites::read(recording)?, known: Map::default() })
    }

    /// The own methods on the stack of a call site, the innermost first.
    pub fn own_path(&self, callsite: u32) -> Vec<&str> {
        self.sites.own_path(callsite)
    }

    /// The reason why a thread waits at a call site, and whether the thread is a worker of the thread pool.
    pub fn of(&mut self, callsite: u32) -> (Reason, bool) {
        let sites = &self.sites;
        *self.known.entry(callsite).or_insert_with(|| {
            let is = |is: Is| sites.has(callsite, &[is]);
            let reason = match () {
                () if is(Is::Locks) => Reason::Lock,
                () if is(Is::Sleeps) => Reason::Sleep,
                () if is(Is::TaskWait) => Reason::Task,
                () if is(Is::Idles) => Reason::Work,
                () if is(Is::DoesIo) => Reason::Io,
                () => Reason::Other,
            };
            (reason, is(Is::PoolWorker))
        })
    }
}
