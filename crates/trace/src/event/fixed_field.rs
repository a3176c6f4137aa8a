//! Reading one field of a payload without decoding the others.

use super::plan::Plan;

/// Where a number of fixed size lies in the payload, and its width.
#[derive(Clone, Copy, Debug)]
pub struct FixedField {
    at: usize,
    width: usize,
}

impl FixedField {
    /// The field with this name, if it and all fields before it have fixed sizes.
    pub fn of(plan: &Plan, name: &str) -> Option<FixedField> {
        let mut at = 0usize;
        for field in &plan.fields {
            let width = field.node.fixed_size()?;
            if field.name == name {
                return (1..=8).contains(&width).then_some(FixedField { at, width });
            }
            at = at.checked_add(width)?;
        }
        None
    }

    /// The value there; `None` when the payload is too short.
    #[inline]
    pub fn read(self, payload: &[u8]) -> Option<u64> {
        let rest = payload.get(self.at..)?;
        match self.width {
            2 => rest.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes))),
            4 => rest.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
            8 => rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
            width => Some(rest.get(..width)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width_are_read_where_they_are() {
        let payload = [1u8, 2, 3, 4, 5, 6, 7, 8, 9];
        let read = |at, width| FixedField { at, width }.read(&payload);
        assert_eq!([1, 2, 3, 4].map(|width| read(1, width)), [2, 0x302, 0x4_0302, 0x504_0302].map(Some));
        assert_eq!((read(1, 8), read(2, 8), read(7, 4), read(9, 1)), (Some(0x908_0706_0504_0302), None, None, None));
    }
}
