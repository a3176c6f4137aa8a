//! Types that the runtime lists.

use crate::prelude::*;

/// The meaning of an event about types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkTypesAction {
    /// Many at once.
    Bulk,
}

/// Lists of types. What is known of them is shared with those who meet types elsewhere.
#[derive(Debug, Default)]
pub struct BulkTypes;

impl Tracker for BulkTypes {
    type Action = BulkTypesAction;
    const EVENTS: Events<BulkTypesAction> = &[(RUNTIME, "BulkType", BulkTypesAction::Bulk)];

    fn is_reference(_: BulkTypesAction) -> bool {
        true
    }

    fn event(
        &mut self,
        BulkTypesAction::Bulk: BulkTypesAction,
        input: &Input<'_>,
        shared: &mut Shared,
        sink: &mut impl FactSink,
    ) {
        shared.types.listed(input, sink);
    }
}
