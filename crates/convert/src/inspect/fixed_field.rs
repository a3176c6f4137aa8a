//! Reading one field of a payload without decoding the others.

use tracequet_trace::event::plan::{Plan, PlanField};

/// Where a field of fixed size lies in the payload, and its width.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedField(usize, usize);

impl FixedField {
    /// The field with this name, if all fields before it have fixed sizes.
    pub fn of(plan: &Plan, name: &str) -> Option<FixedField> {
        let mut at = 0;
        for PlanField { name: found, node, .. } in &plan.fields {
            let width = node.fixed_size()?;
            if found == name {
                return (1..=8).contains(&width).then_some(FixedField(at, width));
            }
            at += width;
        }
        None
    }

    /// The value there; `None` when the payload is too short.
    pub fn read(self, payload: &[u8]) -> Option<u64> {
        let bytes = payload.get(self.0..self.0 + self.1)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}
