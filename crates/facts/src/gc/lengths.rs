//! Lengths of ranges, and how they are known.
//!
//! The first version of a callback carries 32-bit lengths, where 0xFFFFFFFF means 4 GiB or more.

use crate::fact::LengthKind;

/// The length that a 64-bit runtime writes for 4 GiB and more.
pub const CLAMP: u64 = 0xFFFF_FFFF;
/// The least length that a clamped one means.
pub const CLAMPED_LENGTH: u64 = 1 << 32;
/// The bits of a length that carry its kind.
const KIND_SHIFT: u32 = 62;
/// Lengths of callbacks are less than this.
pub const MAX_LENGTH: u64 = 1 << KIND_SHIFT;

/// A length with its kind in the two highest bits, so that a range keeps its size while it waits.
pub fn tag(length: u64, kind: LengthKind) -> u64 {
    let bits = match kind {
        LengthKind::Exact => 0,
        LengthKind::Paired => 1,
        LengthKind::Clamped => 2,
        LengthKind::Narrowed => 3,
    };
    length & (MAX_LENGTH - 1) | bits << KIND_SHIFT
}

/// The length and its kind.
pub fn untag(tagged: u64) -> (u64, LengthKind) {
    let kind = match tagged >> KIND_SHIFT {
        0 => LengthKind::Exact,
        1 => LengthKind::Paired,
        2 => LengthKind::Clamped,
        _ => LengthKind::Narrowed,
    };
    (tagged & (MAX_LENGTH - 1), kind)
}
