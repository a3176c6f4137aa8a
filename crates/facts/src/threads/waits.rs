//! Waits of threads: for locks, and others.

use crate::fact::{Contention, Wait};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsAction {
    /// A thread wants a lock that another one has.
    LockStart,
    /// The thread has the lock.
    LockStop,
    /// A thread begins to wait.
    WaitStart,
    /// The thread continues.
    WaitStop,
}

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

impl Tracker for Waits {
    type Action = WaitsAction;
    const EVENTS: Events<WaitsAction> = &[
        (RUNTIME, "ContentionStart", WaitsAction::LockStart),
        (RUNTIME, "ContentionStop", WaitsAction::LockStop),
        (RUNTIME, "WaitHandleWaitStart", WaitsAction::WaitStart),
        (RUNTIME, "WaitHandleWaitStop", WaitsAction::WaitStop),
    ];

    fn event(&mut self, action: WaitsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let (thread, ts_ns) = (input.capture_thread(), input.ts_ns());
        match action {
            WaitsAction::LockStart => {
                let row = Contention {
                    kind: input.name_of("ContentionFlagsMap", "ContentionFlags"),
                    lock_id: input.number("LockID"),
                    object_id: input.number("AssociatedObjectID"),
                    owner_thread_id: input.number("LockOwnerThreadID"),
                    ..input.row()
                };
                self.locks.begin(thread, row, |evicted| sink.add(&evicted));
            }
            WaitsAction::LockStop => {
                let kind = input.name_of("ContentionFlagsMap", "ContentionFlags");
                let ended = self.locks.end(thread, ts_ns, |open| open.kind == kind, |inner| sink.add(&inner));
                if let Some(mut row) = ended {
                    row.end_ts_ns = Some(ts_ns);
                    row.reported_ns = input.float("DurationNs").map(|ns| ns as i64);
                    sink.add(&row);
                }
            }
            WaitsAction::WaitStart => {
                let row = Wait {
                    source: input.name_of("WaitHandleWaitSourceMap", "WaitSource"),
                    object_id: input.number("AssociatedObjectID"),
                    ..input.row()
                };
                self.waits.begin(thread, row, |evicted| sink.add(&evicted));
            }
            WaitsAction::WaitStop => {
                if let Some(mut row) = self.waits.end(thread, ts_ns, |_| true, |_| {}) {
                    row.end_ts_ns = Some(ts_ns);
                    sink.add(&row);
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        let (mut locks, mut waits) = (self.locks.take(cut.thread), self.waits.take(cut.thread));
        locks.iter_mut().for_each(|row| row.touches_gap |= cut.is_lost());
        waits.iter_mut().for_each(|row| row.touches_gap |= cut.is_lost());
        sink.add(locks.as_slice());
        sink.add(waits.as_slice());
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent waits; ends missing in the tables contention and wait";
        vec![Dropped { code: "too_many_waits", count: self.locks.dropped() + self.waits.dropped(), message }]
    }
}
