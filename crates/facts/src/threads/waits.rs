//! Waits of threads: for locks, and others.

use crate::fact::{Contention, FactSink, Wait};
use crate::nested::{Item, Nested};
use crate::tracker::{self, Hears, Input, RUNTIME};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A thread wants a lock that another one has.
    LockStart,
    /// It has it.
    LockStop,
    /// A thread begins to wait.
    WaitStart,
    /// It continues.
    WaitStop,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[Hears {
    provider: RUNTIME,
    events: &[
        ("ContentionStart", Action::LockStart),
        ("ContentionStop", Action::LockStop),
        ("WaitHandleWaitStart", Action::WaitStart),
        ("WaitHandleWaitStop", Action::WaitStop),
    ],
}];

impl tracker::Action for Action {}

impl Item for Contention {
    fn start_ts_ns(&self) -> i64 {
        self.start_ts_ns
    }
}

impl Item for Wait {
    fn start_ts_ns(&self) -> i64 {
        self.start_ts_ns
    }
}

/// The open waits.
#[derive(Debug, Default)]
pub struct Waits {
    locks: Nested<Contention, { 1 << 16 }>,
    waits: Nested<Wait, { 1 << 16 }>,
}

impl Waits {
    /// Those whose end was not looked for any more, because too many were open.
    pub fn given_up(&self) -> u64 {
        self.locks.given_up() + self.waits.given_up()
    }

    /// An event of a wait.
    pub fn event(&mut self, action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
        let (thread, ts_ns) = (input.capture_thread(), input.ts_ns());
        match action {
            Action::LockStart => {
                let row = Contention {
                    start_ts_ns: ts_ns,
                    process_id: input.process_id(),
                    thread_id: input.thread_id(),
                    callsite_id: input.callsite_id,
                    kind: input.name_of("ContentionFlagsMap", "ContentionFlags"),
                    lock_id: input.number("LockID"),
                    object_id: input.number("AssociatedObjectID"),
                    owner_thread_id: input.number("LockOwnerThreadID"),
                    ..Contention::default()
                };
                self.locks.begin(thread, row, |evicted| sink.add(&evicted));
            }
            Action::LockStop => {
                let kind = input.name_of("ContentionFlagsMap", "ContentionFlags");
                let ended = self.locks.end(thread, ts_ns, |open| open.kind == kind, |inner| sink.add(&inner));
                if let Some(mut row) = ended {
                    row.end_ts_ns = Some(ts_ns);
                    row.reported_ns = input.float("DurationNs").map(|ns| ns as i64);
                    sink.add(&row);
                }
            }
            Action::WaitStart => {
                let row = Wait {
                    start_ts_ns: ts_ns,
                    process_id: input.process_id(),
                    thread_id: input.thread_id(),
                    callsite_id: input.callsite_id,
                    source: input.name_of("WaitHandleWaitSourceMap", "WaitSource"),
                    object_id: input.number("AssociatedObjectID"),
                    ..Wait::default()
                };
                self.waits.begin(thread, row, |evicted| sink.add(&evicted));
            }
            Action::WaitStop => {
                if let Some(mut row) = self.waits.end(thread, ts_ns, |_| true, |_| {}) {
                    row.end_ts_ns = Some(ts_ns);
                    sink.add(&row);
                }
            }
        }
    }

    /// Events of a thread (`None`: of any) were lost (`is_lost`), or the recording ends: what is open may have ended in the gap.
    pub fn events_lost(&mut self, thread: Option<u32>, is_lost: bool, sink: &mut impl FactSink) {
        let (mut locks, mut waits) = (self.locks.take(thread), self.waits.take(thread));
        locks.iter_mut().for_each(|row| row.touches_gap |= is_lost);
        waits.iter_mut().for_each(|row| row.touches_gap |= is_lost);
        sink.add(locks.as_slice());
        sink.add(waits.as_slice());
    }
}
