//! Hardware counters: what they are called, and samples that they cause.

use tracequet_trace::reader::counters;

use crate::fact::{HardwareCounter, HardwareSample};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareCountersAction {
    /// Names of the counters in headers.
    Names,
    /// The interval at which a source is sampled.
    Interval,
    /// A counter ran over.
    Sample,
}

/// Hardware counters.
#[derive(Debug, Default)]
pub struct HardwareCounters {
    /// The sources that were reported: the end of a session repeats what its beginning says.
    known: Vec<(u32, u32)>,
}

/// Sources of a machine, at most.
const MAX_SOURCES: usize = 1 << 12;

/// The hardware counters in the header of an event.
pub fn counters_of(input: &Input<'_>) -> Vec<u64> {
    counters(input.event.raw.counters).collect()
}

const PERF_INFO: &str = "Windows-Kernel-PerfInfo";

impl Tracker for HardwareCounters {
    type Action = HardwareCountersAction;
    const EVENTS: Events<HardwareCountersAction> = &[
        (PERF_INFO, "PmcCounterConfig", HardwareCountersAction::Names),
        (PERF_INFO, "SetInterval", HardwareCountersAction::Interval),
        (PERF_INFO, "IntervalStart", HardwareCountersAction::Interval),
        (PERF_INFO, "PmcCounterProfile", HardwareCountersAction::Sample),
    ];

    fn event(&mut self, action: HardwareCountersAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let ts_ns = input.ts_ns();
        match action {
            HardwareCountersAction::Names => {
                let Value::List(names) = input.fields.get("CounterNames") else { return };
                for (name, counter_index) in names.iter().zip(1..) {
                    let (name, counter_index) = (name.as_str(), Some(counter_index));
                    sink.add(&HardwareCounter { ts_ns, kind: "counted", counter_index, name, ..Default::default() });
                }
            }
            HardwareCountersAction::Interval => {
                let (source, interval) = (input.number("Source") as u32, input.number("NewInterval") as u32);
                if self.known.contains(&(source, interval)) || self.known.len() >= MAX_SOURCES {
                    return;
                }
                self.known.push((source, interval));
                let name = input.fields.text("SourceName").filter(|name| !name.is_empty());
                let (source, interval_count) = (Some(source), Some(interval));
                sink.add(&HardwareCounter {
                    ts_ns,
                    kind: "sampled",
                    source,
                    name,
                    interval_count,
                    ..Default::default()
                });
            }
            HardwareCountersAction::Sample => {
                let processor = input.event.raw.processor;
                sink.add(&HardwareSample {
                    processor: (processor != u32::MAX).then_some(processor),
                    source: input.number("ProfileSource") as u32,
                    instruction_pointer: input.number("InstructionPointer"),
                    ..input.row()
                });
            }
        }
    }
}
