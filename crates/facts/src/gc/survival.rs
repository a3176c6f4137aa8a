//! Memory that survived a collection or moved, and the bounds of generations, from the events of the runtime.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{GcGenerationRange, range_phase};
use crate::prelude::*;

/// The subject of an event about ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurvivalAction {
    /// Memory that survived where it was.
    Surviving,
    /// Memory that survived and moved.
    Moved,
    /// A part of the heap and its generation.
    Bound,
}

impl SurvivalAction {
    /// The moment of its event in a collection.
    pub fn moment(self) -> Moment {
        if self == SurvivalAction::Bound { Moment::Bounds } else { Moment::Within }
    }
}

/// Memory that survived, and the bounds of generations.
#[derive(Debug, Default)]
pub struct Survival;

impl Tracker for Survival {
    type Action = SurvivalAction;
    const EVENTS: Events<SurvivalAction> = &[
        (RUNTIME, "GCBulkSurvivingObjectRanges", SurvivalAction::Surviving),
        (RUNTIME, "GCBulkMovedObjectRanges", SurvivalAction::Moved),
        (RUNTIME, "GCGenerationRange", SurvivalAction::Bound),
    ];

    fn needs(action: SurvivalAction) -> Needs {
        match action {
            SurvivalAction::Surviving => Needs::Rows(&["RangeBase", "RangeLength"]),
            SurvivalAction::Moved => Needs::Rows(&["OldRangeBase", "NewRangeBase", "RangeLength"]),
            SurvivalAction::Bound => Needs::Fields,
        }
    }

    fn event(&mut self, action: SurvivalAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, action.moment(), profiled, sink, |runtime, _| event(action, input, runtime));
    }
}

/// An event of a collection. It becomes facts when the collection is over.
fn event(action: SurvivalAction, input: &Input<'_>, runtime: &mut Runtime<'_>) {
    if input.rows.is_some_and(|rows| rows.is_short()) {
        runtime.open_collection().row.touches_gap = true;
    }
    match (action, input.rows) {
        (SurvivalAction::Surviving, Some(rows)) => runtime.open_collection().ranges.survived(rows.values()),
        (SurvivalAction::Moved, Some(rows)) => runtime.open_collection().ranges.moved(rows.values()),
        (SurvivalAction::Bound, _) => {
            let phase = range_phase(!runtime.collections.is_starting(input.capture_thread()));
            runtime.open_collection().ranges.bound(GcGenerationRange {
                gc_id: 0,
                phase,
                generation: input.fields.small("Generation").unwrap_or(u8::MAX),
                range_start: input.number("RangeStart"),
                range_length: input.number("RangeUsedLength"),
                range_length_reserved: input.number("RangeReservedLength"),
            });
        }
        _ => {}
    }
}
