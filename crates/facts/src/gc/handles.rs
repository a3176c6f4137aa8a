//! Handles that are created and destroyed.

use crate::fact::{FactSink, GcHandle};
use crate::tracker::{self, Hears, Input, RUNTIME};

/// What happened to a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It was created.
    Created,
    /// It was destroyed.
    Destroyed,
}

/// The events.
pub const HEARS: &[Hears<Action>] =
    &[Hears { provider: RUNTIME, events: &[("SetGCHandle", Action::Created), ("DestroyGCHandle", Action::Destroyed)] }];

impl tracker::Action for Action {}

/// An event of a handle.
pub fn event(action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
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
