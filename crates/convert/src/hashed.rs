//! Size and hash of a recording, and the key that is made of them.

use std::io::Read;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::paths::NO_RECORDING;
use tracequet_dataset::table::names::safe;
use tracequet_trace::source::store::is_address;
use tracequet_trace::source::{FileIdentity, RecordingPath};

/// The hashes that are taken of recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HashKind {
    /// BLAKE3: a fraction of the cost.
    #[default]
    Blake3,
    /// SHA-256 alone: for a dataset that an earlier version began, which knows its recordings by it.
    Sha256,
    /// BLAKE3, and SHA-256 for the person who asked for it.
    Both,
}

/// Digits of the hash in a key.
const DIGITS: usize = 16;

/// The key of a recording: its file name without extensions, begun with a letter (a bare number would be read as one),
/// and the first digits of its hash. Of a recording that has no hash (a session that runs) the name alone.
///
/// Name and content give the same key whatever else is converted. Two that differ in case only differ in the hash, too:
/// on some systems such directories would be one.
pub(super) fn trace_key(path: &Path, hash: &str) -> String {
    key(path, hash.get(..DIGITS))
}

/// The key of a recording where another one with the same [`trace_key`] was there before: with all digits of the hash.
pub(super) fn whole_key(path: &Path, hash: &str) -> String {
    key(path, Some(hash))
}

fn key(path: &Path, digits: Option<&str>) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = [".nettrace", ".netperf", ".etl", ".corprof", ".gcdump"]
        .iter()
        .fold(name.as_str(), |name, end| name.split(*end).next().unwrap_or_default());
    let mut key = safe(if stem.is_empty() || stem == "-" { "stdin" } else { stem });
    if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
        key.insert(0, 't');
    }
    match digits {
        Some(digits) => format!("{key}-{digits}"),
        // That name is taken: it is the key of the files without rows.
        None if key == NO_RECORDING => format!("{key}-"),
        None => key,
    }
}

/// The key of a file whose bytes could not be read: its place instead of its content.
pub(super) fn key_of_place(path: &Path) -> String {
    let place = if is_address(path) { Err(()) } else { std::path::absolute(path).map_err(drop) };
    let place = place.unwrap_or_else(|()| path.to_owned());
    trace_key(path, &hex(&Sha256::digest(place.to_string_lossy().as_bytes())))
}

/// Size and hash of a recording that is a regular file or a part of an archive; nothing of anything else.
pub(super) fn identity_of(recording: &RecordingPath, kind: HashKind) -> Result<FileIdentity> {
    recording.bytes().map_or_else(|| Ok(FileIdentity::default()), |bytes| hashed(&recording.name(), bytes?, kind))
}

/// Size of a recording without its hash. A part of an archive has both: its size is known only when it was read.
pub(super) fn unhashed(recording: &RecordingPath) -> FileIdentity {
    match recording.size_bytes() {
        Some(size_bytes) => FileIdentity { size_bytes, ..FileIdentity::default() },
        None => identity_of(recording, HashKind::default()).unwrap_or_default(),
    }
}

fn hashed(name: &Path, mut bytes: impl Read, kind: HashKind) -> Result<FileIdentity> {
    let mut blake3 = (kind != HashKind::Sha256).then(blake3::Hasher::new);
    let mut sha256 = (kind != HashKind::Blake3).then(Sha256::new);
    let mut buffer = vec![0u8; 256 << 10];
    let mut size_bytes = 0u64;
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                size_bytes += n as u64;
                let piece = buffer.get(..n).unwrap_or_default();
                if let Some(hash) = &mut blake3 {
                    hash.update(piece);
                }
                if let Some(hash) = &mut sha256 {
                    hash.update(piece);
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { path: name.to_owned(), source }),
        }
    }
    let blake3 = blake3.map(|hash| hex(hash.finalize().as_bytes())).unwrap_or_default();
    let sha256 = sha256.map(|hash| hex(&hash.finalize())).unwrap_or_default();
    Ok(FileIdentity { size_bytes, blake3, sha256 })
}

/// An identity on its way: a thread of its own takes it, or where no thread can be made it was taken at once.
pub(super) enum Aside {
    Begun(JoinHandle<Result<FileIdentity>>),
    Done(Result<FileIdentity>),
}

/// Begins to take size and hash of a recording that has bytes.
pub(super) fn identity_aside(recording: &RecordingPath, kind: HashKind) -> Option<Aside> {
    let bytes = recording.bytes()?.ok()?;
    let name = recording.name();
    let begun = std::thread::Builder::new().spawn(move || hashed(&name, bytes, kind));
    Some(begun.map_or_else(|_| Aside::Done(identity_of(recording, kind)), Aside::Begun))
}

/// The identity that was taken. A file that cannot be hashed was read nevertheless: it has no identity, and costs
/// nothing else.
pub(super) fn joined(hashing: Option<Aside>) -> Option<FileIdentity> {
    match hashing? {
        Aside::Begun(thread) => thread.join().ok()?.ok(),
        Aside::Done(identity) => identity.ok(),
    }
}

/// By what a file is seen to be written: its length and the time of its last change.
pub(super) fn stamp(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()))
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_of_name_and_content() {
        let hash = "0123456789abcdef01234567";
        for (path, key) in [
            ("A.nettrace", "A-0123456789abcdef"),
            ("b/a.etl.zip", "a-0123456789abcdef"),
            ("7.corprof", "t7-0123456789abcdef"),
            ("A 2.netperf.gz", "A_2-0123456789abcdef"),
        ] {
            assert_eq!(trace_key(Path::new(path), hash), key);
        }
        assert_eq!(whole_key(Path::new("A.nettrace"), hash), format!("A-{hash}"));
        assert_eq!(trace_key(Path::new("-"), ""), "stdin");
        assert_ne!(trace_key(Path::new("none.nettrace"), ""), NO_RECORDING);
    }

    #[test]
    fn a_hash_is_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let recording = RecordingPath::of_file(&path);
        // The first digits of both hashes of "abc", as b3sum and sha256sum print them.
        for (kind, hashes) in [
            (HashKind::Blake3, ("6437b3ac", "")),
            (HashKind::Sha256, ("", "ba7816bf")),
            (HashKind::Both, ("6437b3ac", "ba7816bf")),
        ] {
            let identity = identity_of(&recording, kind).unwrap();
            let begin =
                |hash: &'static str, of: &str| assert!(of.starts_with(hash) && of.is_empty() == hash.is_empty());
            begin(hashes.0, &identity.blake3);
            begin(hashes.1, &identity.sha256);
            assert_eq!((identity.size_bytes, identity.hash().len()), (3, 64));
        }
        assert_eq!(unhashed(&recording), FileIdentity { size_bytes: 3, ..FileIdentity::default() });
        let of_folder = identity_of(&RecordingPath::of_file(folder.path()), HashKind::Both);
        assert_eq!(of_folder.unwrap(), FileIdentity::default());
    }
}
