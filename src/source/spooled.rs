//! What is copied to a temporary file, so that every byte of it can be addressed, and how much may be.

use std::io::Read;

use super::MappedFile;

/// A whole input of which every byte can be addressed.
pub struct Spooled {
    /// The bytes.
    pub map: MappedFile,
    /// Where each log in it begins, the first at 0.
    pub starts: Vec<u64>,
    /// The error that ended it early, if one did; what came before it is there.
    pub failed: Option<std::io::Error>,
}

/// The inside of a packed file.
pub(super) enum Unpacked {
    /// One recording.
    Stream(Box<dyn Read + Send>),
    /// Several logs of one session.
    Logs(Spooled),
}

/// So many bytes a packed file of `packed` bytes may put into a temporary file: no recording packs that well.
pub(super) fn spool_limit(packed: u64) -> u64 {
    packed.saturating_mul(250).max(1 << 30)
}

pub(super) fn too_large() -> std::io::Error {
    std::io::Error::other("expands to more than 250 times its size; the rest is not read")
}
