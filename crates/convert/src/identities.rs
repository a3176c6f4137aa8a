//! Hashes of recordings that are read more than once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tracequet_trace::source::{FileIdentity, RecordingPath};

use super::hashed::{self, HashKind};

/// Sizes and hashes of recordings, kept for as long as their files stay as they were (by length and time of the last
/// change). Clones share what they know.
#[derive(Clone, Debug)]
pub struct Identities(Option<Arc<Mutex<Known>>>);

/// By the name of the recording: the state of its file before it was hashed, and the hash.
type Known = HashMap<PathBuf, (Stamp, HashKind, FileIdentity)>;
type Stamp = (u64, Option<SystemTime>);

/// A hash on its way, and what the file looked like when it began.
pub(super) type Hashing = (Option<Stamp>, HashKind, hashed::Aside);

impl Default for Identities {
    fn default() -> Identities {
        Identities(Some(Arc::default()))
    }
}

impl Identities {
    /// Takes no hashes: the key of a recording is its name alone, and in the table `trace` there is no hash. For tables
    /// whose keys are not used.
    pub fn none() -> Identities {
        Identities(None)
    }

    /// The recordings that are known.
    pub fn len(&self) -> usize {
        self.lock().map_or(0, |known| known.len())
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size and hash of a recording; it is hashed unless they are known. Those of one that cannot be read are empty.
    pub(super) fn identity_of(&self, recording: &RecordingPath, kind: HashKind) -> FileIdentity {
        if let Some(known) = self.known(recording, kind) {
            return known;
        }
        let stamp = hashed::stamp(recording.file());
        let identity = hashed::identity_of(recording, kind).unwrap_or_default();
        self.keep(recording, stamp, kind, &identity);
        identity
    }

    /// Size and hash of a recording, if nothing has to be read for them.
    pub(super) fn known(&self, recording: &RecordingPath, kind: HashKind) -> Option<FileIdentity> {
        let Some(known) = self.lock() else { return Some(FileIdentity::default()) };
        let (stamp, taken, identity) = known.get(&recording.name())?;
        (*taken == kind && hashed::stamp(recording.file()) == Some(*stamp)).then(|| identity.clone())
    }

    /// Begins to hash a recording.
    pub(super) fn aside(&self, recording: &RecordingPath, kind: HashKind) -> Option<Hashing> {
        let stamp = hashed::stamp(recording.file());
        Some((stamp, kind, hashed::identity_aside(recording, kind)?))
    }

    /// The identity, when it is known.
    pub(super) fn joined(&self, recording: &RecordingPath, hashing: Option<Hashing>) -> Option<FileIdentity> {
        let (stamp, kind, hashing) = hashing?;
        let identity = hashed::joined(Some(hashing))?;
        self.keep(recording, stamp, kind, &identity);
        Some(identity)
    }

    fn keep(&self, recording: &RecordingPath, stamp: Option<Stamp>, kind: HashKind, identity: &FileIdentity) {
        let is_whole = !identity.hash().is_empty();
        if let (Some(mut known), Some(stamp), true) = (self.lock(), stamp, is_whole) {
            known.insert(recording.name(), (stamp, kind, identity.clone()));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        self.0.as_ref().map(|known| known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_hashed_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nettrace");
        let recording = RecordingPath::of_file(&path);
        let (identities, kind) = (Identities::default(), HashKind::default());
        assert_eq!(identities.identity_of(&recording, kind), FileIdentity::default());
        assert!(identities.is_empty());
        std::fs::write(&path, "abc").unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        let first = identities.identity_of(&recording, kind);
        assert_eq!(&first.blake3[..8], "6437b3ac");
        // Other bytes of the same length and time: they were not read.
        let set_time = |time| std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        std::fs::write(&path, "abd").unwrap();
        set_time(written);
        assert_eq!(identities.clone().identity_of(&recording, kind), first);
        set_time(written + Duration::from_secs(2));
        let second = identities.identity_of(&recording, kind);
        assert_eq!((&second.blake3[..8], identities.len()), ("90bfae30", 1));
        let aside = identities.aside(&recording, kind);
        assert_eq!(identities.joined(&recording, aside), Some(second));
        assert_eq!(Identities::none().identity_of(&recording, kind), FileIdentity::default());
        // A SHA-256 that another reading asks for is taken then.
        assert_eq!(identities.identity_of(&recording, HashKind::Both).sha256.len(), 64);
    }
}
