//! Collections and suspensions, from the events of the runtime.

use super::event_collections::{Start, Trigger};
use super::moment::Moment;
use super::runtimes::Runtime;
use crate::prelude::*;

/// The subject of an event about a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionsAction {
    /// A collection starts.
    Start,
    /// A collection ends.
    End,
    /// A thread asks the others to stop.
    SuspendBegin,
    /// All threads are stopped.
    SuspendEnd,
    /// All threads run again.
    RestartEnd,
    /// A thread asks for a collection.
    Triggered,
    /// The collector is past the start of a collection.
    Work,
    /// A generational-aware analysis walks the heap at the end of a collection of a number.
    WalkBegin,
    /// The walk of a generational-aware analysis ends.
    WalkEnd,
}

impl CollectionsAction {
    /// The moment of its event in a collection.
    pub fn moment(self, input: &Input<'_>) -> Moment {
        let number = || input.fields.small("Count").unwrap_or_default();
        match self {
            CollectionsAction::Start => Moment::Start(number()),
            CollectionsAction::End => Moment::End(number()),
            // As a suspension it comes in front of the collection.
            CollectionsAction::Triggered | CollectionsAction::SuspendBegin => Moment::Suspend,
            _ => Moment::Within,
        }
    }
}

/// Collections and suspensions.
#[derive(Debug, Default)]
pub struct Collections;

impl Tracker for Collections {
    type Action = CollectionsAction;
    const EVENTS: Events<CollectionsAction> = &[
        (RUNTIME, "GCTriggered", CollectionsAction::Triggered),
        (RUNTIME, "GCStart", CollectionsAction::Start),
        (RUNTIME, "GCEnd", CollectionsAction::End),
        (RUNTIME, "GCSuspendEEBegin", CollectionsAction::SuspendBegin),
        (RUNTIME, "GCSuspendEEEnd", CollectionsAction::SuspendEnd),
        (RUNTIME, "GCRestartEEEnd", CollectionsAction::RestartEnd),
        (RUNTIME, "GCMarkWithType", CollectionsAction::Work),
        (RUNTIME, "GCJoin", CollectionsAction::Work),
        (RUNTIME, "GenAwareBegin", CollectionsAction::WalkBegin),
        (RUNTIME, "GenAwareEnd", CollectionsAction::WalkEnd),
    ];

    fn needs(action: CollectionsAction) -> Needs {
        if action == CollectionsAction::Work { Needs::Header } else { Needs::Fields }
    }

    fn event(&mut self, action: CollectionsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes
            .event(input, action.moment(input), profiled, sink, |runtime, sink| event(action, input, runtime, sink));
    }
}

/// An event of a runtime.
fn event(action: CollectionsAction, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
    let (ts_ns, thread, fields) = (input.ts_ns(), input.capture_thread(), input.fields);
    let Runtime { collections, last_gc_id, .. } = runtime;
    match action {
        CollectionsAction::Triggered => collections.triggered(Trigger {
            ts_ns,
            thread_id: input.thread_id(),
            callsite_id: input.callsite_id,
            reason: input.name_of("GCReasonMap", "Reason"),
        }),
        CollectionsAction::Start => {
            let start = Start {
                number: fields.small("Count").unwrap_or_default(),
                generation: fields.small("Depth"),
                reason: input.name_of("GCReasonMap", "Reason"),
                kind: fields.number("Type").and_then(enum_names::collection_kind),
            };
            collections.start(start, ts_ns, thread, last_gc_id, sink);
        }
        CollectionsAction::End => {
            let number = fields.small("Count").unwrap_or_default();
            collections.end(number, fields.small("Depth"), ts_ns, last_gc_id, sink);
        }
        CollectionsAction::SuspendBegin => {
            let reason = input.name_of("GCSuspendEEReasonMap", "Reason");
            collections.suspend_begin(reason, ts_ns, thread, sink);
        }
        CollectionsAction::SuspendEnd => collections.all.pauses.stopped(thread, ts_ns),
        CollectionsAction::RestartEnd => collections.all.resumed(thread, ts_ns, sink),
        CollectionsAction::Work => {}
        CollectionsAction::WalkBegin => {
            collections.walk_begins(fields.small("Count").unwrap_or_default(), ts_ns, last_gc_id);
        }
        CollectionsAction::WalkEnd => {
            let number = fields.small("Count").unwrap_or_default();
            if collections.is_walk(number) {
                collections.end(number, None, ts_ns, last_gc_id, sink);
            }
        }
    }
}
