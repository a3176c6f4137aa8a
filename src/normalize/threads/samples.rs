//! CPU samples, whoever took them.

use crate::event::Event;
use crate::normalize::fact::{CallsiteId, CpuSample, FactSink};
use crate::normalize::tracker::{Handler, Sampler};

/// A sample becomes a row.
pub fn sample(
    sampler: Sampler,
    handler: &Handler,
    event: &Event<'_>,
    callsite_id: CallsiteId,
    sink: &mut impl FactSink,
) {
    let scalars = &handler.scalars;
    let number = |name| scalars.number(name).unwrap_or_default();
    let mut sample = CpuSample {
        ts_ns: event.ts_ns,
        process_id: event.thread.process_id,
        thread_id: event.thread.thread_id,
        processor: (event.raw.processor != u32::MAX).then_some(event.raw.processor),
        callsite_id,
        sample_count: 1,
        ..CpuSample::default()
    };
    match sampler {
        Sampler::Kernel => {
            // Flags: bit 0 DPC, bit 1 ISR, bits 3 to 7 priority. Source: checked against TraceEvent's counts.
            let flags = number("Flags");
            sample.kind = Some(match flags & 3 {
                0 if number("ThreadId") == 0 => "idle",
                0 => "thread",
                1 => "dpc",
                _ => "isr",
            });
            sample.priority = u8::try_from(flags >> 3 & 0x1F).ok();
            sample.instruction_pointer = number("InstructionPointer");
            sample.sample_count = scalars.small("Count").unwrap_or(1);
        }
        Sampler::Runtime => {
            sample.kind = match number("Type") {
                1 => Some("external"),
                2 => Some("managed"),
                _ => Some("error"),
            };
        }
        // What its number says beside is not told.
        Sampler::Universal => {}
    }
    sink.add(&sample);
}
