//! Objects that are finalized.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{FactSink, GcFinalizable};
use crate::input::{self, Hears, Input, RUNTIME};
use crate::shared::Shared;
use crate::tracker::Tracker;

/// An event in the life of an object with a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The finalizer of an object ran.
    Finalized,
}

impl input::Action for Action {}

/// Objects that are finalized.
#[derive(Debug, Default)]
pub struct Finalizers;

impl Tracker for Finalizers {
    type Action = Action;
    const HEARS: &'static [Hears<Action>] =
        &[Hears { provider: RUNTIME, events: &[("FinalizeObject", Action::Finalized)] }];

    fn event(&mut self, action: Action, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| event(action, input, runtime, sink));
    }
}

/// An event of the finalizer thread.
fn event(Action::Finalized: Action, input: &Input<'_>, runtime: &Runtime<'_>, sink: &mut impl FactSink) {
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
