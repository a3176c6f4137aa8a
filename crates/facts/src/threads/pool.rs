//! The thread pool: how many workers it has and why, and how long work waits for one.

use crate::fact::{ThreadPool, ThreadPoolWork};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolAction {
    /// Something of the pool, by this word of the table.
    Pool(&'static str),
    /// A work item (`work` or `io`) is queued.
    Queued(&'static str, &'static str),
    /// A worker takes it.
    Taken(&'static str, &'static str),
}

/// Work items that wait, at most; past it all are reported as they are.
const MAX_QUEUED: usize = 1 << 17;

/// Processes that are kept when nothing waits in them, so that the next item finds its memory.
const MAX_IDLE: usize = 64;

/// Processes whose number of workers is known, at most.
const MAX_POOLS: usize = 1 << 12;

/// Values of ThreadAdjustmentReasonMap.
const STARVATION: u32 = 6;
const COOPERATIVE_BLOCKING: u32 = 8;

/// Work items by kind and id.
type Queue = Map<(&'static str, u64), ThreadPoolWork>;

/// The work items that wait.
#[derive(Debug, Default)]
pub struct Pool {
    /// By process: a loss in one shall not look at the items of all others.
    queued: Map<ProcessKey, Queue>,
    count: usize,
    /// The number of workers that each process wants, or has.
    workers: Map<ProcessKey, u32>,
    /// Items that were reported before they were taken, because too many waited.
    dropped: u64,
}

impl Pool {
    fn pool(&mut self, kind: &'static str, input: &Input<'_>, sink: &mut impl FactSink) {
        let mut row = pool(kind, input);
        let (process, now) = (input.process(), row.worker_count);
        let before = self.workers.get(&process).copied();
        match kind {
            "adjustment" => {
                row.starvation = match row.reason_number {
                    Some(STARVATION) => Some(true),
                    // One reason both adds workers and takes them away again.
                    Some(COOPERATIVE_BLOCKING) => now.zip(before).map(|(now, before)| now > before),
                    _ => Some(false),
                };
                self.want(process, now);
            }
            // The workers that exist are those that were wanted, as long as no adjustment says more.
            "worker_start" if before.is_none() => self.want(process, now),
            _ => {}
        }
        sink.add(&row);
    }

    fn want(&mut self, process: ProcessKey, workers: Option<u32>) {
        if let Some(workers) = workers.filter(|_| self.workers.len() < MAX_POOLS || self.workers.contains_key(&process))
        {
            self.workers.insert(process, workers);
        }
    }

    /// Events of a process (`None`: of any) were lost (`is_lost`), or the recording ends. Any thread may have taken an
    /// item in the gap, and queued another one with its id.
    fn take_all(&mut self, process: Option<ProcessKey>, is_lost: bool, sink: &mut impl FactSink) {
        match process {
            Some(process) => drop(self.workers.remove(&process)),
            None => self.workers.clear(),
        }
        let lost: Vec<Queue> = match process {
            Some(process) => self.queued.remove(&process).into_iter().collect(),
            None => self.queued.drain().map(|(_, queue)| queue).collect(),
        };
        let mut rows: Vec<_> = lost.into_iter().flatten().map(|(_, row)| row).collect();
        self.count -= rows.len();
        rows.sort_unstable_by_key(|row| (row.queue_ts_ns, row.process_id, row.work_id, row.kind));
        rows.iter_mut().for_each(|row| row.touches_gap |= is_lost);
        sink.add(rows.as_slice());
    }
}

const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";

impl Tracker for Pool {
    type Action = PoolAction;
    const EVENTS: Events<PoolAction> = &[
        (RUNTIME, "ThreadPoolWorkerThreadStart", PoolAction::Pool("worker_start")),
        (RUNTIME, "ThreadPoolWorkerThreadStop", PoolAction::Pool("worker_stop")),
        (RUNTIME, "ThreadPoolWorkerThreadWait", PoolAction::Pool("worker_wait")),
        (RUNTIME, "ThreadPoolWorkerThreadRetirementStart", PoolAction::Pool("retirement_start")),
        (RUNTIME, "ThreadPoolWorkerThreadRetirementStop", PoolAction::Pool("retirement_stop")),
        (RUNTIME, "ThreadPoolWorkerThreadAdjustmentSample", PoolAction::Pool("sample")),
        (RUNTIME, "ThreadPoolWorkerThreadAdjustmentAdjustment", PoolAction::Pool("adjustment")),
        (RUNTIME, "ThreadPoolWorkerThreadAdjustmentStats", PoolAction::Pool("stats")),
        (RUNTIME, "ThreadPoolMinMaxThreads", PoolAction::Pool("min_max")),
        (RUNTIME, "ThreadPoolWorkingThreadCount", PoolAction::Pool("working_count")),
        (RUNTIME, "IOThreadCreate", PoolAction::Pool("io_create")),
        (RUNTIME, "IOThreadTerminate", PoolAction::Pool("io_terminate")),
        (RUNTIME, "IOThreadRetire", PoolAction::Pool("io_retire")),
        (RUNTIME, "IOThreadUnretire", PoolAction::Pool("io_unretire")),
        (RUNTIME, "ThreadPoolEnqueue", PoolAction::Queued("work", "WorkID")),
        (RUNTIME, "ThreadPoolDequeue", PoolAction::Taken("work", "WorkID")),
        (RUNTIME, "ThreadPoolIOEnqueue", PoolAction::Queued("io", "NativeOverlapped")),
        (RUNTIME, "ThreadPoolIODequeue", PoolAction::Taken("io", "NativeOverlapped")),
        (FRAMEWORK, "ThreadPoolEnqueueWork", PoolAction::Queued("work", "workID")),
        (FRAMEWORK, "ThreadPoolDequeueWork", PoolAction::Taken("work", "workID")),
    ];

    fn event(&mut self, action: PoolAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        match action {
            PoolAction::Pool(kind) => self.pool(kind, input, sink),
            PoolAction::Queued(kind, field) => {
                let work_id = input.number(field);
                if self.count >= MAX_QUEUED {
                    self.dropped += self.count as u64;
                    self.take_all(None, false, sink);
                }
                let row = ThreadPoolWork { queue_ts_ns: input.ts_ns(), kind, work_id, ..input.row() };
                // The id is given out again: the item that had it before was taken unseen.
                let queue = self.queued.entry(input.process()).or_default();
                match queue.insert((kind, work_id), row) {
                    Some(before) => sink.add(&before),
                    None => self.count += 1,
                }
            }
            PoolAction::Taken(kind, field) => {
                let many = self.queued.len() > MAX_IDLE;
                let Some(queue) = self.queued.get_mut(&input.process()) else { return };
                let key = (kind, input.number(field));
                // Nothing is taken before it was queued: where time goes back, this is about another item.
                if queue.get(&key).is_some_and(|row| row.queue_ts_ns <= input.ts_ns())
                    && let Some(mut row) = queue.remove(&key)
                {
                    self.count -= 1;
                    if many && queue.is_empty() {
                        self.queued.remove(&input.process());
                    }
                    row.start_ts_ns = Some(input.ts_ns());
                    row.worker_thread_id = input.thread_id();
                    sink.add(&row);
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.take_all(cut.process, cut.is_lost(), sink);
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many queued work items; their starts are missing in the table thread_pool_work";
        vec![Dropped { code: "too_many_work_items", count: self.dropped, message }]
    }
}

fn pool(kind: &'static str, input: &Input<'_>) -> ThreadPool {
    let first = |names: &[&str]| names.iter().find_map(|name| input.fields.small(name));
    ThreadPool {
        kind,
        worker_count: match kind {
            "working_count" => first(&["Count"]),
            _ => first(&["ActiveWorkerThreadCount", "NewWorkerThreadCount", "MinWorkerThreads"]),
        },
        retired_worker_count: first(&["RetiredWorkerThreadCount", "MaxWorkerThreads"]),
        io_count: first(&["IOThreadCount", "MinIOCompletionThreads"]),
        retired_io_count: first(&["RetiredIOThreads", "MaxIOCompletionThreads"]),
        reason_number: first(&["Reason"]),
        reason: input.name_of("ThreadAdjustmentReasonMap", "Reason"),
        throughput: input.float("Throughput").or(input.float("AverageThroughput")),
        starvation: None,
        ..input.row()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event as made_up};

    #[test]
    fn workers_that_are_added_because_none_is_free_are_starvation() {
        let mut found = Vec::new();
        let mut pool = Pool::default();
        let mut adjust = |pool: &mut Pool, kind, field, workers: u64, reason: u64| {
            let mut sink = Each(|fact: &Fact<'_>| {
                if let Fact::ThreadPool(rows) = fact {
                    found.extend(rows.iter().map(|row| row.starvation));
                }
            });
            let fields = [(field, Given::Number(workers)), ("Reason", Given::Number(reason))];
            made_up(PoolAction::Pool(kind), 1, &fields, |input| {
                pool.event(PoolAction::Pool(kind), input, &mut Shared::default(), &mut sink)
            });
        };
        let goal = "NewWorkerThreadCount";
        adjust(&mut pool, "adjustment", goal, 3, 8);
        adjust(&mut pool, "adjustment", goal, 4, 8);
        adjust(&mut pool, "adjustment", goal, 2, 8);
        adjust(&mut pool, "adjustment", goal, 5, 3);
        adjust(&mut pool, "adjustment", goal, 6, 6);
        adjust(&mut pool, "worker_start", "ActiveWorkerThreadCount", 3, 0);
        adjust(&mut pool, "adjustment", goal, 5, 8);
        pool.cut(&Cut::lost(0), &mut Each(|_: &Fact<'_>| {}));
        adjust(&mut pool, "adjustment", goal, 9, 8);
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(found, [None, yes, no, no, yes, None, no, None]);
    }
}
