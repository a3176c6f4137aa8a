//! The state of each thread: running, ready, or blocked. Every state that ends is a row of `thread_time`.
//!
//! ```text
//!  switch out, waiting      ReadyThread        switch in           switch out, ready      switch in
//!      |------ blocked ---------|----- ready -----|----- running -----|------ ready ----------|
//! ```

use tracequet_trace::map::Map;

use crate::fact::{CallsiteId, FactSink, ThreadTime};

/// The id that the reader gives for a process that is not known.
pub const NO_PROCESS: u64 = u32::MAX as u64;

/// Threads that are remembered, at most: as many as the reader knows.
const MAX_THREADS: usize = 1 << 18;

/// Values of KTHREAD_STATE.
mod thread_state {
    pub const READY: u64 = 1;
    pub const RUNNING: u64 = 2;
    pub const STANDBY: u64 = 3;
    pub const TERMINATED: u64 = 4;
    pub const WAITING: u64 = 5;
    pub const TRANSITION: u64 = 6;
    pub const DEFERRED_READY: u64 = 7;
    pub const GATE_WAIT: u64 = 8;
    pub const WAITING_FOR_PROCESS: u64 = 9;
}

/// When and where.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Nanoseconds since the recording began.
    pub ts_ns: i64,
    /// Processor number.
    pub processor: u32,
}

/// The end of a wait: when, and by which thread (0: not known).
type Woken = Option<(i64, u64)>;

/// The state of a thread, and since when it has it.
#[derive(Clone, Copy, Debug, Default)]
enum Doing {
    /// Not known.
    #[default]
    Unknown,
    /// The thread runs.
    Running { since: Moment, callsite_id: CallsiteId },
    /// The thread waited, and has been woken perhaps. The beginning of its first wait may be that of the recording.
    Blocked { since_ns: i64, reason: Option<&'static str>, woken: Woken, is_first: bool },
    /// The thread waits for a processor.
    Ready { since_ns: i64, reason: Option<&'static str> },
}

#[derive(Debug, Default)]
struct Thread {
    process_id: u64,
    doing: Doing,
    /// Whether the thread was there when the recording began, and no event has said since what it does: it did not run.
    is_unseen: bool,
}

/// All threads, by OS thread id. The idle threads, which share the id 0, are left out.
#[derive(Debug, Default)]
pub struct ThreadStates {
    threads: Map<u64, Thread>,
    /// Threads of which something became known since the last loss, some of them several times. Most do nothing that is
    /// known: losses that follow each other shall not look at all of them each time.
    touched: Vec<u64>,
    /// The time of the latest event.
    now_ns: i64,
    /// Events of threads for which there was no room.
    pub unkept: u64,
}

impl ThreadStates {
    fn thread(&mut self, thread_id: u64, process_id: u64) -> Option<&mut Thread> {
        if thread_id == 0 {
            return None;
        }
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&thread_id) {
            self.unkept += 1;
            return None;
        }
        let thread = self.threads.entry(thread_id).or_default();
        thread.process_id = process_id;
        Some(thread)
    }

    /// The process of a thread, as far as earlier events showed it; else [`NO_PROCESS`].
    pub fn process_of(&self, thread_id: u64) -> u64 {
        match thread_id {
            0 => 0,
            _ => self.threads.get(&thread_id).map_or(NO_PROCESS, |thread| thread.process_id),
        }
    }

    /// A thread begins. If another one had its id, that one's end was not seen.
    pub fn begins(&mut self, thread_id: u64, process_id: u64, sink: &mut impl FactSink) {
        if let Some(before) = self.threads.remove(&thread_id) {
            before.cut(thread_id, self.now_ns, sink);
        }
        self.thread(thread_id, process_id);
    }

    /// A thread was there when the recording began.
    pub fn listed(&mut self, thread_id: u64, process_id: u64) {
        let is_unseen = !self.threads.contains_key(&thread_id);
        if let Some(thread) = self.thread(thread_id, process_id) {
            thread.is_unseen |= is_unseen;
        }
    }

    /// A thread was thought to run and did not: what it did meanwhile is not known.
    pub fn lost_sight(&mut self, thread_id: u64) {
        if let Some(thread) = self.threads.get_mut(&thread_id) {
            thread.doing = Doing::Unknown;
        }
    }

    /// A thread is switched out, into a state (KTHREAD_STATE) and for a reason. It had run since `first_ns` if that is
    /// known and nothing is known of the thread.
    pub fn stops(
        &mut self,
        thread_id: u64,
        at: Moment,
        first_ns: Option<i64>,
        (state, reason): (u64, Option<&'static str>),
        sink: &mut impl FactSink,
    ) {
        self.now_ns = self.now_ns.max(at.ts_ns);
        let process_id = self.process_of(thread_id);
        let Some(thread) = self.thread(thread_id, process_id) else { return };
        thread.is_unseen = false;
        if let Doing::Running { since, callsite_id } = thread.doing
            && since.processor == at.processor
            && since.ts_ns <= at.ts_ns
        {
            sink.add(&ThreadTime {
                processor: Some(at.processor),
                callsite_id,
                ..thread.row(thread_id, "running", since.ts_ns, at.ts_ns)
            });
        }
        let was_known = thread.is_known();
        if let Some(first_ns) = first_ns.filter(|first_ns| !was_known && *first_ns < at.ts_ns) {
            let row = thread.row(thread_id, "running", first_ns, at.ts_ns);
            sink.add(&ThreadTime { processor: Some(at.processor), complete: false, ..row });
        }
        let since_ns = at.ts_ns;
        thread.doing = match state {
            thread_state::WAITING
            | thread_state::TRANSITION
            | thread_state::GATE_WAIT
            // Whatever made it ready before ended an earlier wait: clocks of processors differ by some hundred
            // nanoseconds.
            | thread_state::WAITING_FOR_PROCESS => Doing::Blocked { since_ns, reason, woken: None, is_first: false },
            thread_state::READY | thread_state::RUNNING | thread_state::STANDBY | thread_state::DEFERRED_READY => {
                Doing::Ready { since_ns, reason }
            }
            _ => Doing::Unknown,
        };
        let becomes_known = !was_known && thread.is_known();
        if state == thread_state::TERMINATED {
            self.threads.remove(&thread_id);
        }
        if becomes_known {
            self.touch(thread_id);
        }
    }

    /// A thread is switched in, and resumes at a call stack.
    pub fn runs(
        &mut self,
        thread_id: u64,
        process_id: u64,
        at: Moment,
        callsite_id: CallsiteId,
        sink: &mut impl FactSink,
    ) {
        self.now_ns = self.now_ns.max(at.ts_ns);
        let Some(thread) = self.thread(thread_id, process_id) else { return };
        thread.is_unseen = false;
        match thread.doing {
            // The thread's clock went back, or the event came late: how long it took is not known.
            Doing::Blocked { since_ns, woken, .. } if at.ts_ns < woken.map_or(since_ns, |(ts_ns, _)| ts_ns) => {}
            Doing::Ready { since_ns, .. } if at.ts_ns < since_ns => {}
            Doing::Blocked { since_ns, reason, woken, is_first } => {
                let (end_ns, by) = woken.unwrap_or((at.ts_ns, 0));
                let row = |state, from, to| ThreadTime {
                    wait_reason: reason,
                    callsite_id,
                    ..thread.row(thread_id, state, from, to)
                };
                let blocked = row("blocked", since_ns, end_ns);
                sink.add(&ThreadTime { ready_by_thread_id: by, complete: !is_first, ..blocked });
                if woken.is_some() {
                    sink.add(&row("ready", end_ns, at.ts_ns));
                }
            }
            Doing::Ready { since_ns, reason } => sink.add(&ThreadTime {
                wait_reason: reason,
                callsite_id,
                ..thread.row(thread_id, "ready", since_ns, at.ts_ns)
            }),
            // The thread runs elsewhere: its switching out is not in the recording.
            Doing::Running { .. } | Doing::Unknown => {}
        }
        let was_known = thread.is_known();
        thread.doing = Doing::Running { since: at, callsite_id };
        if !was_known {
            self.touch(thread_id);
        }
    }

    /// The wait of a thread is over, by another one (0: not known). If no event has said yet what a thread does that
    /// was there when the recording began, it had waited since `first_ns`.
    pub fn ready(&mut self, thread_id: u64, process_id: u64, ts_ns: i64, by: u64, first_ns: Option<i64>) {
        self.now_ns = self.now_ns.max(ts_ns);
        let Some(thread) = self.thread(thread_id, process_id) else { return };
        let was_unseen = std::mem::take(&mut thread.is_unseen);
        let first_ns = first_ns.filter(|first_ns| was_unseen && *first_ns < ts_ns);
        match &mut thread.doing {
            // A thread that had been swapped out is made ready once more: it waited for a processor since the first
            // time. What comes late is about an earlier wait.
            Doing::Blocked { since_ns, woken, .. } => {
                if *since_ns <= ts_ns {
                    woken.get_or_insert((ts_ns, by));
                }
            }
            Doing::Running { .. } | Doing::Ready { .. } => {}
            Doing::Unknown => {
                thread.doing = match first_ns {
                    Some(since_ns) => {
                        Doing::Blocked { since_ns, reason: None, woken: Some((ts_ns, by)), is_first: true }
                    }
                    None => Doing::Ready { since_ns: ts_ns, reason: None },
                };
                self.touch(thread_id);
            }
        }
    }

    /// Something became known of a thread.
    fn touch(&mut self, thread_id: u64) {
        if self.touched.len() >= 2 * MAX_THREADS {
            self.touched.sort_unstable();
            self.touched.dedup();
            self.touched.retain(|id| self.threads.get(id).is_some_and(Thread::is_known));
        }
        self.touched.push(thread_id);
    }

    /// From a moment on the states of threads are unknown. Their states until then are reported.
    pub fn cut(&mut self, since_ns: i64, sink: &mut impl FactSink) {
        self.all_until(since_ns.min(self.now_ns), sink);
    }

    /// The recording ends.
    pub fn ends(&mut self, last_ns: i64, sink: &mut impl FactSink) {
        self.all_until(last_ns.max(self.now_ns), sink);
    }

    fn all_until(&mut self, end_ns: i64, sink: &mut impl FactSink) {
        let mut ids = std::mem::take(&mut self.touched);
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(thread) = self.threads.get_mut(&id) {
                thread.cut(id, end_ns, sink);
                thread.doing = Doing::Unknown;
            }
        }
    }
}

impl Thread {
    fn is_known(&self) -> bool {
        !matches!(self.doing, Doing::Unknown)
    }

    fn row(&self, thread_id: u64, state: &'static str, start_ts_ns: i64, end_ts_ns: i64) -> ThreadTime {
        let process_id = self.process_id;
        ThreadTime { start_ts_ns, end_ts_ns, complete: true, process_id, thread_id, state, ..ThreadTime::default() }
    }

    /// Ends the state of a thread for the recording.
    fn cut(&self, thread_id: u64, end_ns: i64, sink: &mut impl FactSink) {
        let mut add = |row: ThreadTime| {
            if row.start_ts_ns < row.end_ts_ns {
                sink.add(&row);
            }
        };
        let open = |state, since_ns| ThreadTime { complete: false, ..self.row(thread_id, state, since_ns, end_ns) };
        match self.doing {
            Doing::Running { since, callsite_id, .. } => {
                add(ThreadTime { processor: Some(since.processor), callsite_id, ..open("running", since.ts_ns) });
            }
            Doing::Blocked { since_ns, reason, woken: Some((woken_ns, by)), is_first } if woken_ns <= end_ns => {
                let row = self.row(thread_id, "blocked", since_ns, woken_ns);
                add(ThreadTime { wait_reason: reason, ready_by_thread_id: by, complete: !is_first, ..row });
                add(ThreadTime { wait_reason: reason, ..open("ready", woken_ns) });
            }
            Doing::Blocked { since_ns, reason, .. } => {
                add(ThreadTime { wait_reason: reason, ..open("blocked", since_ns) })
            }
            Doing::Ready { since_ns, reason } => add(ThreadTime { wait_reason: reason, ..open("ready", since_ns) }),
            Doing::Unknown => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    /// Thread and state of each row.
    #[derive(Default)]
    struct Reported(Vec<(u64, &'static str)>);

    impl FactSink for Reported {
        fn fact(&mut self, fact: Fact<'_>) {
            if let Fact::ThreadTime(rows) = fact {
                self.0.extend(rows.iter().map(|row| (row.thread_id, row.state)));
            }
        }
    }

    fn at(ts_ns: i64) -> Moment {
        Moment { ts_ns, processor: 0 }
    }

    #[test]
    fn a_loss_looks_only_at_threads_that_do_something_known() {
        let (mut states, mut reported) = (ThreadStates::default(), Reported::default());
        (1..=1000).for_each(|thread| states.listed(thread, 7));
        for thread in [30, 10, 20] {
            states.runs(thread, 7, at(5), 0, &mut reported);
        }
        states.ready(40, 7, 6, 10, None);
        states.stops(10, at(8), None, (thread_state::WAITING, None), &mut reported);
        states.stops(20, at(8), None, (thread_state::TERMINATED, None), &mut reported);
        assert_eq!(states.touched, [30, 10, 20, 40]);
        reported.0.clear();
        states.cut(9, &mut reported);
        assert_eq!(reported.0, [(30, "running"), (40, "ready")], "10 began to wait at the end, 20 is gone");
        // The next loss has nothing to look at until something is known again.
        assert!(states.touched.is_empty() && states.touched.capacity() == 0);
        states.stops(50, at(10), None, (thread_state::WAITING, None), &mut reported);
        states.ready(60, 7, 20, 0, None);
        assert_eq!(states.touched, [50, 60]);
        reported.0.clear();
        states.cut(i64::MAX, &mut reported);
        assert_eq!(reported.0, [(50, "blocked")]);
    }

    #[test]
    fn a_thread_that_was_there_had_waited_until_it_is_woken() {
        let woken = |first_ns, prepare: fn(&mut ThreadStates, &mut Reported)| {
            let (mut states, mut reported) = (ThreadStates::default(), Reported::default());
            states.listed(10, 7);
            prepare(&mut states, &mut reported);
            reported.0.clear();
            states.ready(10, 7, 20, 0, first_ns);
            states.runs(10, 7, at(30), 0, &mut reported);
            reported.0
        };
        assert_eq!(woken(Some(5), |_, _| {}), [(10, "blocked"), (10, "ready")]);
        // Behind a loss, and where the recording begins with it, nothing is known of the time before.
        assert_eq!(woken(None, |_, _| {}), [(10, "ready")]);
        assert_eq!(woken(Some(20), |_, _| {}), [(10, "ready")]);
        // A thread that began or ran meanwhile had not waited all the time.
        assert_eq!(woken(Some(5), |states, sink| states.begins(10, 7, sink)), [(10, "ready")]);
        assert_eq!(woken(Some(5), |states, sink| states.runs(10, 7, at(6), 0, sink)), []);
        let (mut states, mut reported) = (ThreadStates::default(), Reported::default());
        states.ready(11, 7, 20, 0, Some(5));
        states.runs(11, 7, at(30), 0, &mut reported);
        assert_eq!(reported.0, [(11, "ready")], "it may have begun meanwhile");
    }

    #[test]
    fn threads_that_come_and_go_take_no_memory() {
        let (mut states, mut reported) = (ThreadStates::default(), Reported::default());
        for thread in 1..=3 * MAX_THREADS as u64 {
            states.runs(thread, 7, at(5), 0, &mut reported);
            states.stops(thread, at(6), None, (thread_state::TERMINATED, None), &mut reported);
        }
        assert!(states.threads.is_empty() && states.touched.len() <= 2 * MAX_THREADS);
    }
}
