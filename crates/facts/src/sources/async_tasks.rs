//! Asynchronous work: which tasks there are, when they run on which thread, and what they wait for.
//!
//! ```text
//!  task      created ....... resumed == suspended ...... resumed ===== completed
//!                 waiting        running       waiting       running
//! ```
//! Two sources say it. The async profiler of .NET 11 (`async_buffer`) has the logical call stack of each task. Earlier
//! runtimes have the events of `TplEventSource`: TraceOperationBegin and End around each async method that waits,
//! TraceSynchronousWorkBegin and End around each time that it goes on, TaskScheduled, TaskStarted and TaskCompleted of
//! other work, TaskWaitBegin and End of what it awaits. Threads run tasks within each other: the innermost has the
//! time.

use std::rc::Rc;

use tracequet_trace::map::Set;
use tracequet_trace::time::FILE_TIME_UNIX_EPOCH;

use super::async_buffer::{Buffer, Kind, Lengths, Record, Stack, Step};
use super::tasks::PROVIDER as TPL;
use crate::code::methods::Names;
use crate::code::written;
use crate::fact::{AsyncCallsite, AsyncTask, AsyncWait, CallsiteId};
use crate::prelude::*;
use crate::threads::activity_path;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncTasksAction {
    /// A buffer of the async profiler.
    Buffer,
    /// A task is queued.
    Scheduled,
    /// A thread begins to run a task that is no async method.
    Started,
    /// The task ends.
    Completed,
    /// A task awaits another one, or a thread waits for one.
    WaitBegin,
    /// The wait is over.
    WaitEnd,
    /// An async method waits for the first time, or another operation begins.
    OperationBegin,
    /// The operation has ended.
    OperationEnd,
    /// A task goes on on a thread.
    WorkBegin,
    /// The task waits again, or has ended.
    WorkEnd,
}

/// Tasks that are followed, at most; waits that go on; threads; processes with a profiler.
const MAX_TASKS: usize = 1 << 17;
const MAX_WAITS: usize = 1 << 16;
const MAX_THREADS: usize = 1 << 14;
const MAX_PROCESSES: usize = 1 << 12;
/// Tasks that have ended and wait for the names of their methods.
const MAX_NAMELESS: usize = 1 << 16;
/// Tasks that a thread runs within each other.
const MAX_NESTED: usize = 1 << 10;
/// Bytes of names of operations.
const MAX_NAMES: usize = 8 << 20;
/// Addresses of call stacks that tasks keep, together.
const MAX_FRAMES: usize = 1 << 22;
/// Frames of a stack to which others are appended: each time all of it is looked at.
const MAX_DEPTH: usize = 1 << 8;
/// Events of buffers that wait to be put in order, and addresses of stacks in them.
const MAX_UNSETTLED: usize = 1 << 18;
const MAX_UNSETTLED_FRAMES: usize = 1 << 21;
/// Damaged buffers that are reported one by one.
const MAX_REPORTED: u64 = 64;

/// CausalitySynchronousWork.Execution: the work is that of the task itself.
const EXECUTION: u64 = 2;
/// TaskWaitBehavior.Synchronous.
const SYNCHRONOUS: u64 = 1;

tracequet_trace::worded! {
    /// The reporter of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    enum Source {
        Profiler = "async_profiler",
        Tpl = "tpl",
    }
    fn word;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    process: ProcessKey,
    source: Source,
    id: u64,
}

/// A task that has not ended, or runs still.
#[derive(Debug, Default)]
struct Task {
    /// The row as far as it is known, but for the method.
    row: AsyncTask<'static>,
    method: Option<Rc<str>>,
    /// The outermost frame of its call stack.
    root: Option<u64>,
    last_thread: Option<u64>,
    /// Since when it has no thread; `None` when it has one, or nothing is known.
    off_since: Option<i64>,
    /// The number of stacks of threads that it is on.
    on: u32,
    /// The stack that was sent last.
    frames: Option<Rc<[u64]>>,
    /// The number of losses before it.
    losses: u64,
}

/// The event that put a task on a thread: its end belongs to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Resume,
    Started,
    Work,
}

/// A task on a thread.
#[derive(Debug)]
struct Run {
    key: Key,
    by: By,
    since_ns: i64,
    /// The number of reports of its own work within it that have no end yet.
    within: u32,
    /// Since when it had waited, and on which thread that began.
    waited_since: Option<(i64, u64)>,
    /// The logical call stack, the innermost frame first.
    frames: Vec<u64>,
    /// The number of frames that have ended.
    done: usize,
    /// That of what is left, and that of all.
    callsite_id: CallsiteId,
    first_callsite_id: CallsiteId,
}

/// The tasks that a thread runs, the innermost last.
#[derive(Debug, Default)]
struct Thread {
    runs: Vec<Run>,
    /// Since when the innermost has the time.
    since_ns: i64,
    losses: u64,
}

/// A wait that goes on.
#[derive(Clone, Copy, Debug)]
struct OpenAsyncWait {
    row: AsyncWait<'static>,
    losses: u64,
}

/// The profiler of a process, as far as it is known.
#[derive(Debug, Default)]
struct Profiler {
    lengths: Lengths,
    /// Ticks of a second, a moment in ticks, and the same in 100 ns since 1601.
    clock: Option<(u64, u64, u64)>,
}

/// An event of a buffer that waits for earlier ones of other threads.
#[derive(Debug)]
struct Unsettled {
    ts_ns: i64,
    of: ThreadKey,
    losses: u64,
    step: Step,
}

type ThreadKey = (ProcessKey, Source, u64);

/// The tasks of a recording.
#[derive(Debug, Default)]
pub struct AsyncTasks {
    tasks: Map<Key, Task>,
    threads: Map<ThreadKey, Thread>,
    waits: Map<Key, Vec<OpenAsyncWait>>,
    open_waits: usize,
    /// The task that each async method awaits: the method goes on when the wait is over, whether or not the event of
    /// that is recorded.
    awaits: Map<Key, u64>,
    profilers: Map<ProcessKey, Profiler>,
    /// Tasks that have ended and wait for the names of their methods.
    nameless: Vec<(Key, Task)>,
    kept_frames: usize,
    /// Names of operations, each once, and their bytes.
    names: Set<Rc<str>>,
    name_bytes: usize,
    /// Events of buffers that are not in the order of time yet: a thread hands in its buffer when it is full, or some
    /// time later.
    unsettled: Vec<Unsettled>,
    unsettled_frames: usize,
    /// The number of losses, and of those before the events of buffers that are settled.
    losses: u64,
    settled_losses: u64,
    last_ns: i64,
    damaged: u64,
    unkept: u64,
}

impl Task {
    fn row<'t>(&'t self, method: Option<&'t str>) -> AsyncTask<'t> {
        let row: AsyncTask<'t> = self.row;
        AsyncTask { method, ..row }
    }

    /// Notes that the task had no thread until now.
    fn waited(&mut self, ts_ns: i64) -> Option<i64> {
        let since = self.off_since.take()?;
        let waited = ts_ns.saturating_sub(since).max(0);
        self.row.waiting_ns = Some(self.row.waiting_ns.unwrap_or_default().saturating_add(waited));
        Some(since)
    }

    /// Notes that the task had a thread from one time to another. Returns until when it ran.
    fn ran(&mut self, since_ns: i64, until_ns: i64) -> i64 {
        // Work of a thread behind the end of a task is work for those that waited for it.
        let until_ns = self.row.end_ts_ns.map_or(until_ns, |end_ns| until_ns.min(end_ns));
        let ran = until_ns.saturating_sub(since_ns).max(0);
        self.row.running_ns = Some(self.row.running_ns.unwrap_or_default().saturating_add(ran));
        until_ns
    }
}

impl AsyncTasks {
    /// The number of losses before the events that are looked at now.
    fn losses(&self, source: Source) -> u64 {
        if source == Source::Profiler { self.settled_losses } else { self.losses }
    }

    /// Puts the events of all buffers in order. Called when there are no more, while call stacks can be added.
    pub fn settle(&mut self, shared: &mut Shared, sink: &mut impl FactSink) {
        self.settle_some(usize::MAX, shared, sink);
        self.settled_losses = self.losses;
    }

    /// Puts the events of buffers in order, and follows the first of them.
    fn settle_some(&mut self, count: usize, shared: &mut Shared, sink: &mut impl FactSink) {
        let mut all = std::mem::take(&mut self.unsettled);
        // Events of a thread keep their order.
        all.sort_by_key(|event| event.ts_ns);
        self.unsettled = all.split_off(count.min(all.len()));
        self.unsettled_frames = self.unsettled.iter().map(|event| frames_in(&event.step)).sum();
        for Unsettled { ts_ns, of, losses, step } in all {
            self.settled_losses = self.settled_losses.max(losses);
            self.record(step, of, ts_ns, shared, sink);
        }
    }

    /// A task, if there is room for it.
    fn task(&mut self, key: Key, ts_ns: i64, thread_id: u64) -> Option<&mut Task> {
        if self.tasks.len() >= MAX_TASKS && !self.tasks.contains_key(&key) {
            self.unkept += 1;
            return None;
        }
        let losses = self.losses(key.source);
        let (process_id, task_id, source) = (key.process.id, key.id, key.source.word());
        let row = AsyncTask { ts_ns, thread_id, process_id, task_id, source, ..AsyncTask::default() };
        let new = || Task { row, losses, ..Task::default() };
        Some(self.tasks.entry(key).or_insert_with(new))
    }

    fn create(&mut self, key: Key, ts_ns: i64, thread_id: u64, parent: Option<u64>) -> Option<&mut Task> {
        let task = self.task(key, ts_ns, thread_id)?;
        if parent.is_some() {
            task.row.parent_task_id = parent;
        }
        if task.row.created_ts_ns.is_none() {
            task.row.created_ts_ns = Some(ts_ns);
            task.last_thread.get_or_insert(thread_id);
            if task.on == 0 && task.row.resume_count == 0 {
                task.off_since = Some(ts_ns);
            }
        }
        Some(task)
    }

    /// The thread, without what it ran before the last loss.
    fn thread(&mut self, key: ThreadKey) -> Option<&mut Thread> {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&key) {
            self.unkept += 1;
            return None;
        }
        let losses = self.losses(key.1);
        let thread = self.threads.entry(key).or_default();
        if thread.losses != losses {
            thread.losses = losses;
            for run in std::mem::take(&mut thread.runs) {
                if let Some(task) = self.tasks.get_mut(&run.key) {
                    task.on = task.on.saturating_sub(1);
                }
            }
        }
        Some(thread)
    }

    /// Gives the time until now to the task that runs innermost on a thread.
    fn segment(&mut self, key: ThreadKey, ts_ns: i64, complete: bool, sink: &mut impl FactSink) {
        let Some(thread) = self.threads.get_mut(&key) else { return };
        let since_ns = std::mem::replace(&mut thread.since_ns, ts_ns);
        let nesting = u32::try_from(thread.runs.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let Some(run) = thread.runs.last() else { return };
        let until_ns = self.tasks.get_mut(&run.key).map_or(ts_ns, |task| task.ran(since_ns, ts_ns));
        if since_ns < until_ns {
            sink.add(&AsyncCallsite {
                start_ts_ns: since_ns,
                end_ts_ns: until_ns,
                complete: complete || until_ns < ts_ns,
                process_id: key.0.id,
                thread_id: key.2,
                task_id: run.key.id,
                source: run.key.source.word(),
                nesting,
                callsite_id: run.callsite_id,
            });
        }
    }

    /// A task goes on on a thread.
    fn enter(&mut self, of: ThreadKey, key: Key, by: By, ts_ns: i64, sink: &mut impl FactSink) {
        let Some(thread) = self.thread(of) else { return };
        // The event and the stack of the same resumption.
        if by == By::Resume && thread.runs.last().is_some_and(|run| run.key == key) {
            return;
        }
        // The work of a task that the thread has started is the same run.
        if by == By::Work
            && let Some(run) = thread.runs.last_mut().filter(|run| run.key == key)
        {
            run.within = run.within.saturating_add(1);
            return;
        }
        if thread.runs.len() >= MAX_NESTED {
            self.unkept += 1;
            return;
        }
        self.segment(of, ts_ns, true, sink);
        self.wait_of_is_over(key, of.2, ts_ns, sink);
        let Some(task) = self.task(key, ts_ns, of.2) else { return };
        let waited_since = task.waited(ts_ns);
        task.row.first_resumed_ts_ns.get_or_insert(ts_ns);
        task.row.resume_count = task.row.resume_count.saturating_add(1);
        let before = task.last_thread.replace(of.2);
        task.row.thread_switch_count =
            task.row.thread_switch_count.saturating_add(u32::from(before.is_some_and(|before| before != of.2)));
        task.on += 1;
        if let Some(thread) = self.threads.get_mut(&of) {
            thread.runs.push(Run {
                key,
                by,
                since_ns: ts_ns,
                within: 0,
                waited_since: waited_since.map(|since_ns| (since_ns, before.unwrap_or(of.2))),
                frames: Vec::new(),
                done: 0,
                callsite_id: 0,
                first_callsite_id: 0,
            });
        }
    }

    /// The innermost run that `is_it` leaves its thread, and what is within it. `ends`: its task has ended.
    fn leave(&mut self, of: ThreadKey, ts_ns: i64, is_it: impl Fn(&Run) -> bool, ends: bool, sink: &mut impl FactSink) {
        let Some(at) = self.thread(of).and_then(|thread| thread.runs.iter().rposition(is_it)) else { return };
        self.segment(of, ts_ns, true, sink);
        let left = self.threads.get_mut(&of).map(|thread| thread.runs.split_off(at)).unwrap_or_default();
        for (number, run) in left.into_iter().enumerate() {
            self.left(&run, of.2, ts_ns, sink);
            let Some(task) = self.tasks.get_mut(&run.key) else { continue };
            task.on = task.on.saturating_sub(1);
            let is_over = task.row.end_ts_ns.is_some() && task.on == 0;
            let ends = ends && number == 0;
            if task.row.end_ts_ns.is_none() && task.on == 0 && !ends {
                task.off_since = Some(ts_ns);
            }
            if ends {
                self.end(run.key, ts_ns, None, sink);
            } else if is_over {
                self.report(run.key, sink);
            }
        }
    }

    /// Ends the last work of a thread: its task waits again, or has ended.
    fn work_ends(&mut self, of: ThreadKey, ts_ns: i64, sink: &mut impl FactSink) {
        let Some(thread) = self.thread(of) else { return };
        let last = thread.runs.iter_mut().rev().find(|run| run.by == By::Work || run.within > 0);
        if let Some(run) = last.filter(|run| run.within > 0) {
            run.within -= 1;
            return;
        }
        self.leave(of, ts_ns, |run| run.by == By::Work, false, sink);
    }

    /// The wait of a task before a run, when its call stack is known.
    fn left(&self, run: &Run, thread_id: u64, end_ns: i64, sink: &mut impl FactSink) {
        if run.key.source != Source::Profiler || run.since_ns > end_ns {
            return;
        }
        let Some((since_ns, began_on)) = run.waited_since else { return };
        let callsite_id = if run.first_callsite_id != 0 {
            run.first_callsite_id
        } else {
            self.tasks.get(&run.key).map_or(0, |task| task.row.callsite_id)
        };
        sink.add(&AsyncWait {
            start_ts_ns: since_ns,
            end_ts_ns: Some(run.since_ns),
            process_id: run.key.process.id,
            task_id: Some(run.key.id),
            source: run.key.source.word(),
            kind: "async",
            thread_id: began_on,
            end_thread_id: Some(thread_id),
            callsite_id,
            touches_gap: self.tasks.get(&run.key).is_some_and(|task| task.losses != self.settled_losses),
            ..AsyncWait::default()
        });
    }

    /// A task has ended.
    fn end(&mut self, key: Key, ts_ns: i64, outcome: Option<&'static str>, sink: &mut impl FactSink) {
        let Some(task) = self.tasks.get_mut(&key) else { return };
        task.waited(ts_ns);
        task.row.end_ts_ns.get_or_insert(ts_ns);
        task.row.outcome = task.row.outcome.or(outcome);
        if task.on == 0 {
            self.report(key, sink);
        }
    }

    /// The row of a task, at once or when its method has its name.
    fn report(&mut self, key: Key, sink: &mut impl FactSink) {
        let Some(mut task) = self.tasks.remove(&key) else { return };
        task.row.touches_gap |= task.losses != self.losses(key.source);
        self.kept_frames -= task.frames.take().map_or(0, |frames| frames.len());
        if task.root.is_some() && self.nameless.len() < MAX_NAMELESS {
            self.nameless.push((key, task));
        } else {
            sink.add(&task.row(task.method.as_deref()));
        }
    }

    /// Gives the tasks that have ended the names of their methods, and their rows. Called when all methods are known.
    pub fn name(&mut self, names: &Names<'_>, sink: &mut impl FactSink) {
        for (key, task) in std::mem::take(&mut self.nameless) {
            let (mut text, ts_ns) = (String::new(), task.row.first_resumed_ts_ns.unwrap_or(task.row.ts_ns));
            let is_known = task.root.is_some_and(|root| names.push(&mut text, key.process, root, ts_ns));
            sink.add(&task.row(is_known.then_some(text.as_str()).or(task.method.as_deref())));
        }
    }

    /// Keeps the stack of a task, or gives the one that was kept.
    fn keep(&mut self, key: Key, stack: Stack, kind: Kind, of: ThreadKey, ts_ns: i64, shared: &mut Shared) -> Vec<u64> {
        let kept = self.kept_frames;
        let Some(task) = self.task(key, ts_ns, of.2) else { return stack.frames };
        task.row.kind.get_or_insert(kind.word());
        if stack.frames.is_empty() {
            return task.frames.as_ref().map_or_else(Vec::new, |frames| frames.to_vec());
        }
        let before = task.frames.take().map_or(0, |frames| frames.len());
        let has_room = kept - before + stack.frames.len() <= MAX_FRAMES;
        if has_room {
            task.frames = Some(stack.frames.as_slice().into());
        }
        if task.row.callsite_id == 0 {
            task.root = stack.frames.last().copied();
            task.row.callsite_id = shared.callsites.intern_logical(&stack.frames, key.process, ts_ns);
        }
        self.kept_frames = kept - before + if has_room { stack.frames.len() } else { 0 };
        stack.frames
    }

    /// The innermost run of a thread has this call stack.
    fn set_frames(&mut self, of: ThreadKey, frames: Vec<u64>, ts_ns: i64, shared: &mut Shared) {
        let Some(run) = self.threads.get_mut(&of).and_then(|thread| thread.runs.last_mut()) else { return };
        (run.frames, run.done) = (frames, 0);
        run.callsite_id = shared.callsites.intern_logical(&run.frames, of.0, ts_ns);
        if run.first_callsite_id == 0 {
            run.first_callsite_id = run.callsite_id;
        }
    }

    /// Methods of the innermost run of a thread have ended.
    fn frames_end(&mut self, of: ThreadKey, count: u32, ts_ns: i64, shared: &mut Shared, sink: &mut impl FactSink) {
        let has_frames = |thread: &Thread| thread.runs.last().is_some_and(|run| run.done < run.frames.len());
        if !self.thread(of).is_some_and(|thread| has_frames(thread)) {
            return;
        }
        self.segment(of, ts_ns, true, sink);
        let Some(run) = self.threads.get_mut(&of).and_then(|thread| thread.runs.last_mut()) else { return };
        run.done = run.done.saturating_add(count as usize).min(run.frames.len());
        let left = run.frames.get(run.done..).unwrap_or_default();
        run.callsite_id = shared.callsites.intern_logical(left, of.0, ts_ns);
    }

    fn record(&mut self, step: Step, of: ThreadKey, ts_ns: i64, shared: &mut Shared, sink: &mut impl FactSink) {
        let key = |id| Key { process: of.0, source: Source::Profiler, id };
        match step {
            Step::Create { kind, parent, id } => {
                if let Some(task) = self.create(key(id), ts_ns, of.2, (parent != 0).then_some(parent)) {
                    task.row.kind.get_or_insert(kind.word());
                }
            }
            Step::CreateStack { kind, stack } => {
                let parent = stack.parent.filter(|parent| *parent != 0);
                let key = key(stack.id);
                self.create(key, ts_ns, of.2, parent);
                self.keep(key, stack, kind, of, ts_ns, shared);
            }
            Step::Resume { kind, id } => {
                self.enter(of, key(id), By::Resume, ts_ns, sink);
                if let Some(task) = self.tasks.get_mut(&key(id)) {
                    task.row.kind.get_or_insert(kind.word());
                }
            }
            Step::ResumeStack { kind, stack } => {
                let key = key(stack.id);
                self.enter(of, key, By::Resume, ts_ns, sink);
                let frames = self.keep(key, stack, kind, of, ts_ns, shared);
                self.set_frames(of, frames, ts_ns, shared);
            }
            Step::AppendStack { kind, stack } => {
                let key = key(stack.id);
                let top = self.thread(of).and_then(|thread| thread.runs.last_mut()).filter(|run| run.key == key);
                let Some(run) = top.filter(|run| run.frames.len() < MAX_DEPTH && !stack.frames.is_empty()) else {
                    return;
                };
                let (done, mut frames) = (run.done, std::mem::take(&mut run.frames));
                frames.extend(stack.frames);
                frames.truncate(MAX_DEPTH);
                self.segment(of, ts_ns, true, sink);
                if let Some(task) = self.tasks.get_mut(&key) {
                    // The callers that are known now belong to the stack of the task.
                    task.row.callsite_id = 0;
                }
                let stack = Stack { frames: frames.clone(), ..stack };
                self.keep(key, stack, kind, of, ts_ns, shared);
                self.set_frames(of, frames, ts_ns, shared);
                self.frames_end(of, u32::try_from(done).unwrap_or(u32::MAX), ts_ns, shared, sink);
            }
            Step::SuspendStack { kind, stack } => {
                self.keep(key(stack.id), stack, kind, of, ts_ns, shared);
            }
            Step::Suspend => self.leave(of, ts_ns, |_| true, false, sink),
            Step::Complete => self.leave(of, ts_ns, |_| true, true, sink),
            Step::CompleteMethod => self.frames_end(of, 1, ts_ns, shared, sink),
            Step::Unwind { frames } => self.frames_end(of, frames, ts_ns, shared, sink),
            Step::Reset => {
                let first = self.thread(of).and_then(|thread| thread.runs.first()).map(|run| run.key);
                if first.is_some() {
                    self.segment(of, ts_ns, true, sink);
                    // A task that went on is not known to wait or to have ended.
                    let runs = self.threads.get_mut(&of).map(|thread| std::mem::take(&mut thread.runs));
                    for run in runs.into_iter().flatten() {
                        self.left(&run, of.2, ts_ns, sink);
                        if let Some(task) = self.tasks.get_mut(&run.key) {
                            task.on = task.on.saturating_sub(1);
                            task.row.touches_gap = true;
                        }
                    }
                }
            }
            Step::Clock { .. } | Step::Other => {}
        }
    }

    fn buffer(&mut self, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let process = input.process();
        let payload = input.event.raw.payload;
        let length = payload.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let bytes = payload.get(4..).unwrap_or_default();
        let whole = length.and_then(|length| bytes.get(..length));
        let (mut count, mut first) = (0u64, None);
        if whole.is_none() {
            count += 1;
            first = Some((0, "the event is shorter than its buffer"));
        }
        let has_room = self.profilers.len() < MAX_PROCESSES || self.profilers.contains_key(&process);
        let known = has_room.then(|| self.profilers.entry(process).or_default());
        let mut lengths = known.map(|profiler| std::mem::take(&mut profiler.lengths)).unwrap_or_default();
        match Buffer::new(whole.unwrap_or(bytes)) {
            Ok(mut buffer) => {
                let of = (process, Source::Profiler, buffer.thread_id);
                while let Some(found) = buffer.next(&mut lengths) {
                    match found {
                        Ok(Record { step: Step::Clock { frequency, ticks, file_time }, .. }) => {
                            if let Some(profiler) = self.profilers.get_mut(&process) {
                                let frequency = frequency.or(profiler.clock.map(|(frequency, ..)| frequency));
                                profiler.clock = frequency.map(|frequency| (frequency, ticks, file_time));
                            }
                        }
                        Ok(Record { step: Step::Other, .. }) => {}
                        Ok(Record { ticks, step }) => {
                            match self.ns(ticks, process, input.ts_ns(), shared.clock.as_ref()) {
                                Some(ts_ns) => {
                                    self.unsettled_frames += frames_in(&step);
                                    self.unsettled.push(Unsettled { ts_ns, of, losses: self.losses, step });
                                }
                                None => {
                                    count += 1;
                                    first.get_or_insert((0, "an event has a time behind that of its buffer"));
                                }
                            }
                        }
                        Err(damage) => {
                            count += 1;
                            first.get_or_insert((damage.offset, damage.message));
                        }
                    }
                }
                count += buffer.missing().saturating_sub(1);
            }
            Err(damage) => {
                count += 1;
                first.get_or_insert((damage.offset, damage.message));
            }
        }
        if let Some(profiler) = self.profilers.get_mut(&process) {
            profiler.lengths = lengths;
        }
        if let Some((offset, message)) = first {
            self.damaged += 1;
            if self.damaged <= MAX_REPORTED {
                let message = format!("a buffer of the async profiler is damaged at its byte {offset}: {message}");
                sink.problem(&Problem::loss("damaged_async_buffer", input.offset(), message).count(count));
            }
            // Threads may have gone on unseen.
            self.losses += 1;
        }
        if self.unsettled.len() >= MAX_UNSETTLED || self.unsettled_frames >= MAX_UNSETTLED_FRAMES {
            self.settle_some(self.unsettled.len() / 2, shared, sink);
        }
    }

    /// The time of an event in a buffer that was written at `written_ns`.
    fn ns(&mut self, ticks: i64, process: ProcessKey, written_ns: i64, clock: Option<&Clock>) -> Option<i64> {
        let clock = clock?;
        let known = self.profilers.get(&process).and_then(|profiler| profiler.clock);
        let ns = match known {
            // Another clock than that of the recording.
            Some((frequency, at, file_time)) if frequency != 0 && frequency != clock.frequency.unsigned_abs() => {
                let utc_ns = (i128::from(file_time) - i128::from(FILE_TIME_UNIX_EPOCH)) * 100;
                let since = (i128::from(ticks) - i128::from(at)) * 1_000_000_000 / i128::from(frequency);
                i64::try_from(utc_ns + since - i128::from(clock.sync_utc_ns)).ok()?
            }
            _ => clock.since_start(ticks)?,
        };
        // The clocks may differ by a second; a buffer is written behind its events.
        (ns.saturating_sub(1_000_000_000) <= written_ns && ns > i64::MIN / 4).then(|| ns.min(written_ns))
    }

    fn wait_begins(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let (process, ts_ns) = (input.process(), input.ts_ns());
        let key = |id| Key { process, source: Source::Tpl, id };
        let number = |name| Some(input.number(name)).filter(|id| *id != 0);
        let Some(awaited) = number("TaskID") else { return };
        let is_blocking = input.number("Behavior") == SYNCHRONOUS;
        let goes_on = number("ContinueWithTaskID").filter(|_| !is_blocking);
        let waiter = goes_on.or_else(|| number("OriginatingTaskID"));
        if let Some(task) = self.tasks.get_mut(&key(awaited)).filter(|_| goes_on.is_some() && goes_on != Some(awaited))
        {
            task.row.parent_task_id = goes_on;
        }
        let activity_id = input.event.raw.labels.activity_id;
        let row = AsyncWait {
            start_ts_ns: ts_ns,
            process_id: process.id,
            task_id: waiter,
            awaited_task_id: Some(awaited),
            source: Source::Tpl.word(),
            kind: if is_blocking { "blocking" } else { "async" },
            thread_id: input.thread_id(),
            callsite_id: input.callsite_id,
            activity_id,
            ..AsyncWait::default()
        };
        if self.open_waits >= MAX_WAITS {
            self.unkept += 1;
            return add_wait(row, sink);
        }
        self.open_waits += 1;
        if let Some(waiter) = goes_on {
            self.awaits.insert(key(waiter), awaited);
        }
        self.waits.entry(key(awaited)).or_default().push(OpenAsyncWait { row, losses: self.losses });
    }

    fn wait_ends(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let key = Key { process: input.process(), source: Source::Tpl, id: input.number("TaskID") };
        let Some(open) = self.waits.get(&key) else { return };
        // Waiters that go on are called in the order in which they came; a thread ends its own wait.
        let of_thread = |open: &OpenAsyncWait| open.row.kind == "blocking" && open.row.thread_id == input.thread_id();
        let at = open.iter().position(of_thread).unwrap_or_default();
        self.wait_is_over(key, at, input.thread_id(), input.ts_ns(), sink);
    }

    /// A task goes on: what it awaited is over.
    fn wait_of_is_over(&mut self, waiter: Key, thread_id: u64, ts_ns: i64, sink: &mut impl FactSink) {
        let Some(awaited) = self.awaits.remove(&waiter) else { return };
        let key = Key { id: awaited, ..waiter };
        let is_it = |open: &OpenAsyncWait| open.row.task_id == Some(waiter.id);
        if let Some(at) = self.waits.get(&key).and_then(|open| open.iter().position(is_it)) {
            self.wait_is_over(key, at, thread_id, ts_ns, sink);
        }
    }

    /// One of those that wait for a task goes on.
    fn wait_is_over(&mut self, key: Key, at: usize, thread_id: u64, ts_ns: i64, sink: &mut impl FactSink) {
        let Some(open) = self.waits.get_mut(&key).filter(|open| at < open.len()) else { return };
        let ended = open.remove(at);
        if open.is_empty() {
            self.waits.remove(&key);
        }
        self.open_waits -= 1;
        if let Some(waiter) = ended.row.task_id {
            self.awaits.remove(&Key { id: waiter, ..key });
        }
        let row = AsyncWait { end_ts_ns: Some(ts_ns), end_thread_id: Some(thread_id), ..ended.row };
        add_wait(AsyncWait { touches_gap: ended.losses != self.losses, ..row }, sink);
    }

    /// A name that others may have, too; `None` when there are too many.
    fn name_of(&mut self, text: &str) -> Option<Rc<str>> {
        if let Some(known) = self.names.get(text) {
            return Some(Rc::clone(known));
        }
        if self.name_bytes.saturating_add(text.len()) > MAX_NAMES {
            self.unkept += 1;
            return None;
        }
        self.name_bytes += text.len();
        let name: Rc<str> = text.into();
        self.names.insert(Rc::clone(&name));
        Some(name)
    }

    fn operation_begins(&mut self, input: &Input<'_>, key: Key) {
        let name = input.text("OperationName");
        let (kind, name) = match name.split_once(": ") {
            Some(("Async", name)) => (Some("state_machine"), name),
            Some(("Task", name)) => (Some("task"), name),
            _ => (None, name),
        };
        let mut method = String::new();
        if kind == Some("state_machine") {
            written::push(&mut method, name, "MoveNext");
        } else {
            written::push(&mut method, "", name);
        }
        let end = method.char_indices().nth(MAX_NAME).map_or(method.len(), |(at, _)| at);
        method.truncate(end);
        let method = self.name_of(&method);
        let Some(task) = self.create(key, input.ts_ns(), input.thread_id(), None) else { return };
        task.row.kind = task.row.kind.or(kind);
        task.method = task.method.take().or(method);
        about(task, input);
    }
}

/// Characters of the name of an operation that are kept.
const MAX_NAME: usize = 1 << 10;

/// Adds the other fields of the event that creates a task.
fn about(task: &mut Task, input: &Input<'_>) {
    if task.row.callsite_id == 0 {
        task.row.callsite_id = input.callsite_id;
    }
    if task.row.activity_id.is_none() {
        task.row.activity_id = input.event.raw.labels.activity_id;
    }
}

/// The number of addresses that an event holds.
fn frames_in(step: &Step) -> usize {
    match step {
        Step::CreateStack { stack, .. }
        | Step::ResumeStack { stack, .. }
        | Step::SuspendStack { stack, .. }
        | Step::AppendStack { stack, .. } => stack.frames.len(),
        _ => 0,
    }
}

fn add_wait(row: AsyncWait<'_>, sink: &mut impl FactSink) {
    let path = activity_path::path(&row.activity_id, row.process_id);
    sink.add(&AsyncWait { activity_path: path.as_deref(), ..row });
}

impl Tracker for AsyncTasks {
    type Action = AsyncTasksAction;
    const EVENTS: Events<AsyncTasksAction> = &[
        ("System.Runtime.CompilerServices.AsyncProfilerEventSource", "AsyncEvents", AsyncTasksAction::Buffer),
        // The provider's name in previews.
        ("System.Runtime.CompilerServices.AsyncProfilerBufferedEventSource", "AsyncEvents", AsyncTasksAction::Buffer),
        (TPL, "TaskScheduled", AsyncTasksAction::Scheduled),
        (TPL, "TaskStarted", AsyncTasksAction::Started),
        (TPL, "TaskCompleted", AsyncTasksAction::Completed),
        (TPL, "TaskWaitBegin", AsyncTasksAction::WaitBegin),
        (TPL, "TaskWaitEnd", AsyncTasksAction::WaitEnd),
        (TPL, "TraceOperationBegin", AsyncTasksAction::OperationBegin),
        (TPL, "TraceOperationEnd", AsyncTasksAction::OperationEnd),
        (TPL, "TraceSynchronousWorkBegin", AsyncTasksAction::WorkBegin),
        (TPL, "TraceSynchronousWorkEnd", AsyncTasksAction::WorkEnd),
    ];

    fn needs(action: AsyncTasksAction) -> Needs {
        if action == AsyncTasksAction::Buffer { Needs::Header } else { Needs::Fields }
    }

    fn has_callsites(action: AsyncTasksAction) -> bool {
        action == AsyncTasksAction::Buffer
    }

    fn event(&mut self, action: AsyncTasksAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let (ts_ns, process) = (input.ts_ns(), input.process());
        self.last_ns = self.last_ns.max(ts_ns);
        let of = (process, Source::Tpl, input.thread_id());
        let key = Key { process, source: Source::Tpl, id: input.number("TaskID") };
        match action {
            AsyncTasksAction::Buffer => self.buffer(input, shared, sink),
            AsyncTasksAction::Scheduled => {
                let parent = Some(input.number("CreatingTaskID")).filter(|id| *id != 0);
                if let Some(task) = self.create(key, ts_ns, of.2, parent) {
                    task.row.kind.get_or_insert("task");
                    about(task, input);
                }
            }
            AsyncTasksAction::Started => {
                self.enter(of, key, By::Started, ts_ns, sink);
                if let Some(task) = self.tasks.get_mut(&key) {
                    task.row.kind.get_or_insert("task");
                }
            }
            AsyncTasksAction::Completed => {
                let is_failed = input.number("IsExceptional") != 0;
                self.leave(of, ts_ns, |run| run.key == key && run.by == By::Started, false, sink);
                self.end(key, ts_ns, Some(if is_failed { "failed" } else { "completed" }), sink);
            }
            AsyncTasksAction::WaitBegin => self.wait_begins(input, sink),
            AsyncTasksAction::WaitEnd => self.wait_ends(input, sink),
            AsyncTasksAction::OperationBegin => self.operation_begins(input, key),
            AsyncTasksAction::OperationEnd => {
                let outcome = match input.number("Status") {
                    1 => Some("completed"),
                    2 => Some("canceled"),
                    3 => Some("failed"),
                    _ => None,
                };
                // TaskCompleted of the same task may not be recorded.
                self.leave(of, ts_ns, |run| run.key == key && run.by == By::Started, false, sink);
                self.end(key, ts_ns, outcome, sink);
            }
            AsyncTasksAction::WorkBegin if input.number("Work") == EXECUTION => {
                self.enter(of, key, By::Work, ts_ns, sink)
            }
            AsyncTasksAction::WorkEnd if input.number("Work") == EXECUTION => {
                self.work_ends(of, ts_ns, sink);
            }
            AsyncTasksAction::WorkBegin | AsyncTasksAction::WorkEnd => {}
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        if cut.is_lost() {
            self.losses += 1;
            return;
        }
        // The recording ends.
        let mut threads: Vec<ThreadKey> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        let last_ns = self.last_ns;
        for of in threads {
            if self.thread(of).is_some_and(|thread| !thread.runs.is_empty()) {
                self.segment(of, last_ns, false, sink);
            }
            let runs = self.threads.get_mut(&of).map(|thread| std::mem::take(&mut thread.runs));
            runs.into_iter().flatten().for_each(|run| self.left(&run, of.2, last_ns, sink));
        }
        let mut open: Vec<OpenAsyncWait> = self.waits.drain().flat_map(|(_, open)| open).collect();
        open.sort_by_key(|open| (open.row.start_ts_ns, open.row.awaited_task_id, open.row.task_id));
        self.open_waits = 0;
        for OpenAsyncWait { row, losses } in open {
            add_wait(AsyncWait { touches_gap: losses != self.losses, ..row }, sink);
        }
        let mut tasks: Vec<Key> = self.tasks.keys().copied().collect();
        tasks.sort_unstable();
        for key in tasks {
            if let Some(task) = self.tasks.get_mut(&key).filter(|task| key.source == Source::Profiler && task.on == 0)
                && let Some(since_ns) = task.off_since
            {
                let row = AsyncWait { start_ts_ns: since_ns, process_id: key.process.id, ..AsyncWait::default() };
                let row = AsyncWait { task_id: Some(key.id), source: key.source.word(), kind: "async", ..row };
                let (callsite_id, thread_id) = (task.row.callsite_id, task.last_thread.unwrap_or(task.row.thread_id));
                let touches_gap = task.losses != self.settled_losses;
                sink.add(&AsyncWait { callsite_id, thread_id, touches_gap, ..row });
            }
            self.report(key, sink);
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let unreported = self.damaged.saturating_sub(MAX_REPORTED);
        vec![
            Dropped {
                code: "too_many_async_tasks",
                count: self.unkept,
                message: "too many tasks at once; rows missing in the tables async_task, async_callsite and async_wait",
            },
            Dropped {
                code: "damaged_async_buffer",
                count: unreported,
                message: "further buffers of the async profiler are damaged",
            },
        ]
    }
}
