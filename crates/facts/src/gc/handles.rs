//! Handles that are created and destroyed.

use super::moment::Moment;
use crate::fact::{FactSink, GcHandle};
use crate::input::{self, Hears, Input, RUNTIME};
use crate::shared::Shared;
use crate::tracker::Tracker;

/// An event in the life of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A handle was created.
    Created,
    /// A handle was destroyed.
    Destroyed,
}

impl input::Action for Action {}

/// Handles.
#[derive(Debug, Default)]
pub struct Handles;

impl Tracker for Handles {
    type Action = Action;
    const HEARS: &'static [Hears<Action>] = &[Hears {
        provider: RUNTIME,
        events: &[("SetGCHandle", Action::Created), ("DestroyGCHandle", Action::Destroyed)],
    }];

    fn event(&mut self, action: Action, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |_, sink| event(action, input, sink));
    }
}

/// An event of a handle.
fn event(action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
    sink.add(&GcHandle {
        ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        thread_id: input.thread_id(),
        action: match action {
            Action::Created => "created",
            Action::Destroyed => "destroyed",
        },
        handle_id: input.number("HandleID"),
        object_id: input.number("ObjectID"),
        handle_kind: input.name_of("GCHandleKindMap", "Kind"),
        generation: input.fields.small("Generation"),
        callsite_id: input.callsite_id,
    });
}
