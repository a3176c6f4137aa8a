//! Tags: the first digits of a hash, which identify an entry, a manifest or the content of a pack.

use sha2::{Digest, Sha256};

/// Characters of a tag.
pub(super) const DIGITS: usize = 16;

/// A tag that identifies bytes.
pub fn tag_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}
