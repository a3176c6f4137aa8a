//! Types that the runtime lists.

use crate::fact::FactSink;
use crate::input::{self, Hears, Input, RUNTIME};
use crate::shared::Shared;
use crate::tracker::Tracker;

/// The meaning of an event about types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Many at once.
    Bulk,
}

impl input::Action for Action {
    fn is_reference(self) -> bool {
        true
    }
}

/// Lists of types. What is known of them is shared with those who meet types elsewhere.
#[derive(Debug, Default)]
pub struct BulkTypes;

impl Tracker for BulkTypes {
    type Action = Action;
    const HEARS: &'static [Hears<Action>] = &[Hears { provider: RUNTIME, events: &[("BulkType", Action::Bulk)] }];

    fn event(&mut self, Action::Bulk: Action, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        shared.types.listed(input, sink);
    }
}
