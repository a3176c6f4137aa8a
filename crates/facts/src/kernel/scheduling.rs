//! Context switches, threads that become ready, and the states of threads in between.

use super::hardware_counters;
use super::thread_states::{Moment, ThreadStates};
use crate::fact::{ContextSwitch, ReadyThread};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingAction {
    /// A processor switches to another thread.
    Switch,
    /// A thread may run.
    Ready,
    /// A thread begins.
    Start,
    /// A thread is there.
    Listed,
}

/// No machine has more processors.
const MAX_PROCESSORS: usize = 1 << 12;

/// The threads and what runs on each processor.
#[derive(Debug, Default)]
pub struct Scheduling {
    threads: ThreadStates,
    running: Map<u32, u64>,
    /// When the recording began, as long as no events are lost.
    since_ns: Option<i64>,
    /// The time of the latest event of any kind.
    last_ns: i64,
    has_lost: bool,
}

/// Of ReadyThread: a deferred procedure call made the thread ready, not the thread that it interrupted.
const FROM_DPC: u64 = 1;

impl Scheduling {
    /// The recording goes on, with an event of any kind.
    #[inline]
    pub fn passes(&mut self, ts_ns: i64) {
        if self.since_ns.is_none() && !self.has_lost {
            self.since_ns = Some(ts_ns);
        }
        self.last_ns = self.last_ns.max(ts_ns);
    }

    fn switch(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let processor = input.event.raw.processor;
        let processor = (processor != u32::MAX).then_some(processor);
        let (ts_ns, old_thread_id) = (input.ts_ns(), input.number("OldThreadId"));
        let old_state = input.name_of("ThreadStateMap", "OldThreadState");
        let old_wait_reason = input.name_of("ThreadWaitReasonMap", "OldThreadWaitReason");
        sink.add(&ContextSwitch {
            processor,
            priority: Some(input.number("NewThreadPriority") as u8),
            old_process_id: Some(self.threads.process_of(old_thread_id)),
            old_thread_id: Some(old_thread_id),
            old_priority: Some(input.number("OldThreadPriority") as u8),
            old_state,
            old_wait_reason,
            wait_time_ticks: Some(input.number("NewThreadWaitTime") as u32),
            hardware_counters: &hardware_counters::counters_of(input),
            ..input.row()
        });
        // A recording that does not say which processor it was has no order of what ran.
        let Some(processor) = processor else { return };
        if self.running.len() >= MAX_PROCESSORS && !self.running.contains_key(&processor) {
            return;
        }
        let before = self.running.insert(processor, input.thread_id());
        if let Some(other) = before.filter(|before| *before != old_thread_id) {
            self.threads.lost_sight(other);
        }
        let at = Moment { ts_ns, processor };
        // The thread that the first switch of a processor ends had run there since the recording began.
        let first = before.is_none().then_some(self.since_ns).flatten();
        self.threads.stops(old_thread_id, at, first, (input.number("OldThreadState"), old_wait_reason), sink);
        self.threads.runs(input.thread_id(), input.process_id(), at, input.callsite_id, sink);
    }

    fn ready(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let processor = input.event.raw.processor;
        let is_by_thread = input.number("Flags") & FROM_DPC == 0;
        let running = self.running.get(&processor).copied().filter(|_| is_by_thread);
        let ready_by_thread_id = running.unwrap_or_default();
        sink.add(&ReadyThread {
            processor: (processor != u32::MAX).then_some(processor),
            ready_by_thread_id,
            reason: input.name_of("ReadyReasonMap", "AdjustReason"),
            priority_increment: input.number("AdjustIncrement") as u8,
            flags: input.number("Flags") as u8,
            flags_text: &input.words_of("ReadyFlagsMap", "Flags"),
            ..input.row()
        });
        let (ts_ns, first_ns) = (input.ts_ns(), self.since_ns);
        self.threads.ready(input.thread_id(), input.process_id(), ts_ns, ready_by_thread_id, first_ns);
    }
}

const THREAD: &str = "Windows-Kernel-Thread";

impl Tracker for Scheduling {
    type Action = SchedulingAction;
    const EVENTS: Events<SchedulingAction> = &[
        (THREAD, "CSwitch", SchedulingAction::Switch),
        (THREAD, "ReadyThread", SchedulingAction::Ready),
        (THREAD, "Start", SchedulingAction::Start),
        (THREAD, "DCStart", SchedulingAction::Listed),
    ];

    fn is_reference(action: SchedulingAction) -> bool {
        matches!(action, SchedulingAction::Start | SchedulingAction::Listed)
    }

    fn needs_others(_: SchedulingAction) -> bool {
        true
    }

    fn event(&mut self, action: SchedulingAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        match action {
            SchedulingAction::Switch => self.switch(input, sink),
            SchedulingAction::Ready => self.ready(input, sink),
            SchedulingAction::Start => self.threads.begins(input.thread_id(), input.process_id(), sink),
            SchedulingAction::Listed => self.threads.listed(input.thread_id(), input.process_id()),
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        self.running.clear();
        self.threads.ends(self.last_ns, sink);
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        // After a loss it is not known what any thread does.
        if let Some(since_ns) = cut.lost_since_ns {
            self.running.clear();
            (self.since_ns, self.has_lost) = (None, true);
            self.threads.cut(since_ns, sink);
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many threads; the others have no rows in the table thread_time";
        vec![Dropped { code: "too_many_threads", count: self.threads.unkept, message }]
    }
}
