//! Copies inputs to temporary files, so that every byte can be addressed, and limits their size.

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
#[cfg_attr(not(feature = "packed"), allow(dead_code, reason = "only packed files have an inside"))]
pub(super) enum Unpacked {
    /// One recording.
    Stream(Box<dyn Read + Send>),
    /// Several logs of one session.
    Logs(Spooled),
}

/// The bytes that a packed file of `packed` bytes may put into a temporary file: no recording packs that well.
pub(super) fn spool_limit(packed: u64) -> u64 {
    packed.saturating_mul(250).max(64 << 20)
}

/// Bytes that may still be written where `file` lies; no bound where the system does not say.
pub(super) fn free_space(file: &std::fs::File) -> u64 {
    #[cfg(unix)]
    if let Ok(space) = rustix::fs::fstatvfs(file) {
        return space.f_bavail.saturating_mul(space.f_frsize);
    }
    let _ = file;
    u64::MAX
}

pub(super) fn too_large() -> std::io::Error {
    std::io::Error::other(
        "expands to more than 250 times its size, or to more than half of the free space; the rest is not read",
    )
}
