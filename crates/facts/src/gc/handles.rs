//! Handles that are created and destroyed.

use super::moment::Moment;
use crate::fact::GcHandle;
use crate::prelude::*;

/// An event in the life of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlesAction {
    /// A handle was created.
    Created,
    /// A handle was destroyed.
    Destroyed,
}

/// Handles.
#[derive(Debug, Default)]
pub struct Handles;

impl Tracker for Handles {
    type Action = HandlesAction;
    const EVENTS: Events<HandlesAction> =
        &[(RUNTIME, "SetGCHandle", HandlesAction::Created), (RUNTIME, "DestroyGCHandle", HandlesAction::Destroyed)];

    fn event(&mut self, action: HandlesAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |_, sink| event(action, input, sink));
    }
}

/// An event of a handle.
fn event(action: HandlesAction, input: &Input<'_>, sink: &mut impl FactSink) {
    sink.add(&GcHandle {
        action: match action {
            HandlesAction::Created => "created",
            HandlesAction::Destroyed => "destroyed",
        },
        handle_id: input.number("HandleID"),
        object_id: input.number("ObjectID"),
        handle_kind: input.name_of("GCHandleKindMap", "Kind"),
        generation: input.fields.small("Generation"),
        ..input.row()
    });
}
