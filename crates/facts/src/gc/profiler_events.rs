//! The events of ETWClrProfiler, that go with what the runtime reports.

use super::profiler::{PROVIDER, ProfilerEvent};
use crate::prelude::*;

/// Events of PerfView's profiler.
#[derive(Debug, Default)]
pub struct ProfilerEvents;

impl Tracker for ProfilerEvents {
    type Action = ProfilerEvent;
    const EVENTS: Events<ProfilerEvent> = &[
        (PROVIDER, "ClassIDDefintion", ProfilerEvent::Class),
        (PROVIDER, "ObjectAllocated", ProfilerEvent::Allocated),
        (PROVIDER, "FinalizeableObjectQueued", ProfilerEvent::Finalizeable),
        (PROVIDER, "HandleCreated", ProfilerEvent::HandleCreated),
        (PROVIDER, "HandleDestroyed", ProfilerEvent::HandleDestroyed),
        (PROVIDER, "RootReferences", ProfilerEvent::Roots),
        (PROVIDER, "ObjectReferences", ProfilerEvent::Object),
        (PROVIDER, "GCStart", ProfilerEvent::GcStart),
        (PROVIDER, "GCStop", ProfilerEvent::GcStop),
        (PROVIDER, "ObjectsMoved", ProfilerEvent::Moved),
        (PROVIDER, "ObjectsSurvived", ProfilerEvent::Survived),
        (PROVIDER, "ProfilerError", ProfilerEvent::Error),
        (PROVIDER, "ProfilerShutdown", ProfilerEvent::Shutdown),
    ];

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
