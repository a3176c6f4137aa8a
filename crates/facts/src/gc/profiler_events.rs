//! The events of ETWClrProfiler, that go with what the runtime reports.

use super::profiler::{PROVIDER, ProfilerEvent};
use crate::prelude::*;

/// Events of PerfView's profiler.
#[derive(Debug, Default)]
pub struct ProfilerEvents;

impl Tracker for ProfilerEvents {
    type Action = ProfilerEvent;
    const EVENTS: &'static [ProviderEvents<ProfilerEvent>] = &[ProviderEvents {
        provider: PROVIDER,
        events: &[
            ("ClassIDDefintion", ProfilerEvent::Class),
            ("ObjectAllocated", ProfilerEvent::Allocated),
            ("FinalizeableObjectQueued", ProfilerEvent::Finalizeable),
            ("HandleCreated", ProfilerEvent::HandleCreated),
            ("HandleDestroyed", ProfilerEvent::HandleDestroyed),
            ("RootReferences", ProfilerEvent::Roots),
            ("ObjectReferences", ProfilerEvent::Object),
            ("GCStart", ProfilerEvent::GcStart),
            ("GCStop", ProfilerEvent::GcStop),
            ("ObjectsMoved", ProfilerEvent::Moved),
            ("ObjectsSurvived", ProfilerEvent::Survived),
            ("ProfilerError", ProfilerEvent::Error),
            ("ProfilerShutdown", ProfilerEvent::Shutdown),
        ],
    }];

    fn needs(action: ProfilerEvent) -> Needs {
        match action {
            ProfilerEvent::Roots => Needs::FieldsAndRows(&["ObjectIDs", "GCRootKinds", "GCRootFlags", "RootIDs"]),
            ProfilerEvent::Object => Needs::FieldsAndRows(&["ObjectRefs"]),
            ProfilerEvent::Moved => Needs::FieldsAndRows(&["RangeBases", "TargetBases", "Lengths"]),
            ProfilerEvent::Survived => Needs::FieldsAndRows(&["RangeBases", "Lengths"]),
            _ => Needs::Fields,
        }
    }

    fn event(&mut self, event: ProfilerEvent, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, types, .. } = shared;
        if event.is_past_start() {
            runtimes.end_start_phase(input.capture_thread());
        }
        profiled.profiler_event(event, input, runtimes.all(), types, sink);
    }
}
