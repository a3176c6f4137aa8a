//! Objects that are finalized.

use super::runtimes::Runtime;
use crate::fact::{FactSink, GcFinalizable};
use crate::tracker::{self, Hears, Input, RUNTIME};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its finalizer ran.
    Finalized,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[Hears { provider: RUNTIME, events: &[("FinalizeObject", Action::Finalized)] }];

impl tracker::Action for Action {}

/// An event of the finalizer thread.
pub fn event(Action::Finalized: Action, input: &Input<'_>, runtime: &Runtime<'_>, sink: &mut impl FactSink) {
    sink.add(&GcFinalizable {
        gc_id: runtime.collections.latest_id(),
        ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        action: "finalized",
        object_id: input.number("ObjectID"),
        type_id: input.number("TypeID"),
        finalizer_flags: 0,
    });
}
