//! Objects that are finalized.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{FactSink, GcFinalizable};
use crate::input::{self, Input, ProviderEvents, RUNTIME};
use crate::shared::Shared;
use crate::tracker::Tracker;

/// An event in the life of an object with a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizersAction {
    /// The finalizer of an object ran.
    Finalized,
}

impl input::Action for FinalizersAction {}

/// Objects that are finalized.
#[derive(Debug, Default)]
pub struct Finalizers;

impl Tracker for Finalizers {
    type Action = FinalizersAction;
    const EVENTS: &'static [ProviderEvents<FinalizersAction>] =
        &[ProviderEvents { provider: RUNTIME, events: &[("FinalizeObject", FinalizersAction::Finalized)] }];

    fn event(&mut self, action: FinalizersAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| event(action, input, runtime, sink));
    }
}

/// An event of the finalizer thread.
fn event(
    FinalizersAction::Finalized: FinalizersAction,
    input: &Input<'_>,
    runtime: &Runtime<'_>,
    sink: &mut impl FactSink,
) {
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
