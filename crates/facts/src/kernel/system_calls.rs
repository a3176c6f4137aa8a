//! Calls of the kernel by programs, from their beginning to their end.
//!
//! The events name neither a process nor a thread. The reader gives them the thread that runs on their processor.

use crate::fact::SystemCall;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCallsAction {
    /// A call begins.
    Enter,
    /// The latest call of a thread ends.
    Exit,
}

/// Calls that are remembered. Beyond that all are reported as they are.
const MAX_OPEN: usize = 1 << 16;

/// Calls of one thread within one another: an asynchronous procedure call calls the kernel, too.
const MAX_NESTED: usize = 8;

/// The open calls, by their threads.
#[derive(Debug, Default)]
pub struct SystemCalls {
    open: Map<u64, Vec<SystemCall>>,
    count: usize,
    /// Calls that were reported before their end, because too many were open.
    unkept: u64,
}

/// A thread that is not known.
const NO_THREAD: u64 = u32::MAX as u64;

impl SystemCalls {
    /// Events were lost (`is_lost`), or the recording ends: open calls may have ended unseen.
    fn take_all(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        self.count = 0;
        let mut open: Vec<SystemCall> = self.open.drain().flat_map(|(_, calls)| calls).collect();
        // Calls of one thread keep their order.
        open.sort_by_key(|call| (call.start_ts_ns, call.thread_id));
        for mut call in open {
            call.touches_gap |= is_lost;
            sink.add(&call);
        }
    }

    fn enter(&mut self, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let routine_address = input.number("Address");
        let routine_callsite_id = shared.callsites.of_routine(routine_address, input.ts_ns());
        let processor = input.event.raw.processor;
        let call = SystemCall {
            processor: (processor != u32::MAX).then_some(processor),
            routine_address,
            routine_callsite_id,
            ..input.row()
        };
        if call.thread_id == NO_THREAD {
            return sink.add(&call);
        }
        if self.count >= MAX_OPEN {
            self.unkept += self.count as u64;
            self.take_all(false, sink);
        }
        let calls = self.open.entry(call.thread_id).or_default();
        if calls.len() >= MAX_NESTED {
            // Their ends are not in the recording.
            self.count -= calls.len();
            calls.drain(..).for_each(|call| sink.add(&call));
        }
        calls.push(call);
        self.count += 1;
    }

    fn exit(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let Some(calls) = self.open.get_mut(&input.thread_id()) else { return };
        // An id may have been given to another thread meanwhile.
        if let Some(mut call) = calls.pop() {
            self.count -= 1;
            if call.process_id == input.process_id() && call.start_ts_ns <= input.ts_ns() {
                call.end_ts_ns = Some(input.ts_ns());
                call.status = input.fields.small("Status");
            }
            sink.add(&call);
        }
        if calls.is_empty() {
            self.open.remove(&input.thread_id());
        }
    }
}

const PERF_INFO: &str = "Windows-Kernel-PerfInfo";

impl Tracker for SystemCalls {
    type Action = SystemCallsAction;
    const EVENTS: Events<SystemCallsAction> =
        &[(PERF_INFO, "SysCallEnter", SystemCallsAction::Enter), (PERF_INFO, "SysCallExit", SystemCallsAction::Exit)];

    fn event(&mut self, action: SystemCallsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        match action {
            SystemCallsAction::Enter => self.enter(input, shared, sink),
            SystemCallsAction::Exit => self.exit(input, sink),
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.take_all(cut.is_lost(), sink);
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent system calls; ends missing in the table system_call";
        vec![Dropped { code: "too_many_system_calls", count: self.unkept, message }]
    }
}
