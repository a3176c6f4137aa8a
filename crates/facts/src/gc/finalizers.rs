//! Objects that are finalized.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::GcFinalizable;
use crate::prelude::*;

/// Objects that are finalized.
#[derive(Debug, Default)]
pub struct Finalizers;

impl Tracker for Finalizers {
    type Action = ();
    const EVENTS: Events<()> = &[(RUNTIME, "FinalizeObject", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| event(input, runtime, sink));
    }
}

/// An event of the finalizer thread.
fn event(input: &Input<'_>, runtime: &Runtime<'_>, sink: &mut impl FactSink) {
    sink.add(&GcFinalizable {
        gc_id: runtime.collections.latest_id(),
        action: "finalized",
        object_id: input.number("ObjectID"),
        type_id: input.number("TypeID"),
        finalizer_flags: 0,
        ..input.row()
    });
}
