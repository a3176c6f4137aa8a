//! CPU samples of all sources.

use crate::fact::CpuSample;
use crate::kernel::hardware_counters;
use crate::prelude::*;

/// The taker of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplesAction {
    /// The kernel of Windows.
    Kernel,
    /// The sampler of the runtime.
    Runtime,
    /// one-collect's record-trace on Linux.
    Universal,
}

/// CPU samples.
#[derive(Debug, Default)]
pub struct Samples;

impl Tracker for Samples {
    type Action = SamplesAction;
    const EVENTS: Events<SamplesAction> = &[
        ("Windows-Kernel-PerfInfo", "SampledProfile", SamplesAction::Kernel),
        ("Microsoft-DotNETCore-SampleProfiler", "ThreadSample", SamplesAction::Runtime),
        ("Universal.Events", "cpu", SamplesAction::Universal),
    ];

    fn event(&mut self, action: SamplesAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        event(action, input, sink);
    }
}

/// A sample becomes a row.
fn event(action: SamplesAction, input: &Input<'_>, sink: &mut impl FactSink) {
    let processor = input.event.raw.processor;
    let hardware_counters = hardware_counters::counters_of(input);
    let mut sample = CpuSample {
        processor: (processor != u32::MAX).then_some(processor),
        sample_count: 1,
        hardware_counters: &hardware_counters,
        ..input.row()
    };
    match action {
        SamplesAction::Kernel => {
            // Flags: bit 0 DPC, bit 1 ISR, bits 3 to 7 priority. Source: checked against TraceEvent's counts.
            let flags = input.number("Flags");
            sample.kind = Some(match flags & 3 {
                0 if input.number("ThreadId") == 0 => "idle",
                0 => "thread",
                1 => "dpc",
                _ => "isr",
            });
            sample.priority = u8::try_from(flags >> 3 & 0x1F).ok();
            sample.instruction_pointer = input.number("InstructionPointer");
            sample.sample_count = input.fields.small("Count").unwrap_or(1);
        }
        SamplesAction::Runtime => {
            sample.kind = match input.number("Type") {
                1 => Some("external"),
                2 => Some("managed"),
                _ => Some("error"),
            };
        }
        // The event has a value whose meaning is not documented.
        SamplesAction::Universal => {}
    }
    sink.add(&sample);
}
