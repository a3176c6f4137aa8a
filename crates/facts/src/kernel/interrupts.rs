//! Interrupts and deferred procedure calls: what ran on a processor in place of its thread.
//!
//! Each event comes at the end of a routine and says when the routine began, in ticks of the session's clock. Source:
//! TraceEvent's `ISRTraceData` and `DPCTraceData`; checked on 155,000 events of a log of Windows 7, whose routines all
//! lie in modules of the kernel.

use super::kernel_images::KernelImages;
use super::nesting::Nesting;
use crate::fact::Interrupt;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptsAction {
    /// A routine ended; the word of the table for it.
    Ended(&'static str),
    /// A processor switches to another thread.
    Switch,
    /// A module is loaded.
    Load,
    /// A module is unloaded.
    Unload,
    /// A module is there.
    Listed,
}

/// No machine has more processors.
const MAX_PROCESSORS: usize = 1 << 12;

/// Interrupts that wait for the list of the kernel's modules, at most.
const MAX_WAITING: usize = 1 << 16;

/// The longest time before the recording at which a routine may have begun. A longer time is that of another clock.
const MAX_BEFORE_NS: i64 = 1_000_000_000;

/// A processor, with the routines on it.
#[derive(Debug, Default)]
struct Processor {
    /// Process and thread that it runs.
    running: Option<(u64, u64)>,
    nesting: Nesting,
}

/// The processors and the modules of the kernel.
#[derive(Debug, Default)]
pub struct Interrupts {
    processors: Map<u32, Processor>,
    images: KernelImages,
    /// Rows whose module is not known yet: it may be listed at the end of the recording only.
    waiting: Vec<Interrupt>,
    /// Rows that did not wait long enough.
    unkept: u64,
}

impl Interrupts {
    fn processor(&mut self, number: u32) -> Option<&mut Processor> {
        let has_room = self.processors.len() < MAX_PROCESSORS || self.processors.contains_key(&number);
        (number != u32::MAX && has_room).then(|| self.processors.entry(number).or_default())
    }

    fn ended(&mut self, kind: &'static str, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let (ts_ns, number) = (input.ts_ns(), input.event.raw.processor);
        let start_ts_ns = input.began(shared.clock.as_ref(), MAX_BEFORE_NS);
        let processor = self.processor(number);
        let (running, exclusive_ns) = match processor {
            Some(processor) => {
                let running = processor.running;
                (running, start_ts_ns.map(|start| processor.nesting.ended(start, ts_ns)))
            }
            None => (None, None),
        };
        let routine_address = input.number("Routine");
        let callsite_id = shared.callsites.of_routine(routine_address, ts_ns);
        let row = Interrupt {
            ts_ns,
            start_ts_ns,
            exclusive_ns,
            kind,
            processor: (number != u32::MAX).then_some(number),
            process_id: running.map(|(process, _)| process),
            thread_id: running.map(|(_, thread)| thread),
            routine_address,
            module_id: self.images.at(routine_address),
            callsite_id,
            vector: input.fields.small("Vector"),
            return_value: input.fields.small("ReturnValue"),
            message_number: input.fields.small("MessageNumber"),
        };
        if row.module_id.is_some() {
            return sink.add(&row);
        }
        if self.waiting.len() >= MAX_WAITING {
            self.unkept += self.release(sink);
        }
        self.waiting.push(row);
    }

    /// Reports the rows that wait, with the modules that were there all the time. Returns how many have none.
    fn release(&mut self, sink: &mut impl FactSink) -> u64 {
        let mut without = 0;
        for mut row in self.waiting.drain(..) {
            row.module_id = self.images.listed_at(row.routine_address);
            without += u64::from(row.module_id.is_none());
            sink.add(&row);
        }
        without
    }
}

const PERF_INFO: &str = "Windows-Kernel-PerfInfo";
const IMAGE: &str = "Windows-Kernel-Image";

impl Tracker for Interrupts {
    type Action = InterruptsAction;
    const EVENTS: Events<InterruptsAction> = &[
        (PERF_INFO, "Isr", InterruptsAction::Ended("isr")),
        (PERF_INFO, "IsrMsi", InterruptsAction::Ended("msi_isr")),
        (PERF_INFO, "Dpc", InterruptsAction::Ended("dpc")),
        (PERF_INFO, "ThreadedDpc", InterruptsAction::Ended("threaded_dpc")),
        (PERF_INFO, "TimerDpc", InterruptsAction::Ended("timer_dpc")),
        (PERF_INFO, "IoTimer", InterruptsAction::Ended("io_timer")),
        ("Windows-Kernel-Thread", "CSwitch", InterruptsAction::Switch),
        (IMAGE, "Load", InterruptsAction::Load),
        (IMAGE, "Unload", InterruptsAction::Unload),
        (IMAGE, "DCStart", InterruptsAction::Listed),
        (IMAGE, "DCEnd", InterruptsAction::Listed),
    ];

    fn needs(action: InterruptsAction) -> Needs {
        // Of a switch only which thread it is about.
        if action == InterruptsAction::Switch { Needs::Header } else { Needs::Fields }
    }

    fn is_reference(action: InterruptsAction) -> bool {
        matches!(action, InterruptsAction::Load | InterruptsAction::Unload | InterruptsAction::Listed)
    }

    fn needs_others(action: InterruptsAction) -> bool {
        matches!(action, InterruptsAction::Switch)
    }

    fn event(&mut self, action: InterruptsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        match action {
            InterruptsAction::Ended(kind) => self.ended(kind, input, shared, sink),
            InterruptsAction::Switch => {
                let running = Some((input.process_id(), input.thread_id()));
                if let Some(processor) = self.processor(input.event.raw.processor) {
                    processor.running = running;
                }
            }
            // Modules of the kernel belong to no process.
            InterruptsAction::Load | InterruptsAction::Unload | InterruptsAction::Listed if input.process_id() != 0 => {
            }
            InterruptsAction::Load => self.images.load(input.number("ImageBase"), input.number("ImageSize")),
            InterruptsAction::Unload => self.images.unload(input.number("ImageBase")),
            InterruptsAction::Listed => self.images.listed(input.number("ImageBase"), input.number("ImageSize")),
        }
    }

    fn cut(&mut self, cut: &Cut, _: &mut impl FactSink) {
        if cut.is_lost() {
            // After a loss it is not known which routine each processor runs.
            self.processors.values_mut().for_each(|processor| processor.running = None);
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        self.release(sink);
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many interrupts before the modules of the kernel are listed; module_id is missing in the \
            table interrupt";
        let unkept = Dropped { code: "too_many_interrupts", count: self.unkept, message };
        vec![unkept, Dropped::modules(self.images.lost)]
    }
}
