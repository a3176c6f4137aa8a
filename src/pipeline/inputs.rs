//! What is known of an input by its file: a key for it, its size and its hash.

use std::io::Read;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::source::{FileIdentity, RecordingPath};
use crate::table::names::safe;
use crate::table::unique_names::UniqueNames;

/// The recordings of the inputs, each with which input holds it: an archive may hold several.
pub(super) fn recordings(inputs: &[PathBuf]) -> Vec<(usize, RecordingPath)> {
    let of_input = |(input, path): (usize, &PathBuf)| RecordingPath::all_in(path).into_iter().map(move |r| (input, r));
    inputs.iter().enumerate().flat_map(of_input).collect()
}

/// A key for each input: its file name, begun with a letter (a bare number would be read as one), and unique whatever its
/// case: keys are names of directories.
pub(super) fn trace_keys(inputs: &[PathBuf]) -> Vec<String> {
    let mut unique = UniqueNames::default();
    let mut keys = Vec::new();
    for path in inputs {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split(".nettrace").next().unwrap_or_default().split(".netperf").next().unwrap_or_default();
        let stem = stem.split(".etl").next().unwrap_or_default().split(".corprof").next().unwrap_or_default();
        let mut key = safe(if stem.is_empty() || stem == "-" { "stdin" } else { stem });
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            key.insert(0, 't');
        }
        keys.push(unique.add(key));
    }
    keys
}

/// Size and SHA-256 of a recording that is a regular file or a part of an archive, taken by a thread of its own. Where no
/// thread can be made, and where the file can no longer be read, neither is known.
pub(super) fn identity_of(recording: &RecordingPath) -> Option<std::thread::JoinHandle<Option<FileIdentity>>> {
    let mut bytes = recording.bytes()?.ok()?;
    let hashing = move || {
        let mut hash = Sha256::new();
        let mut buffer = vec![0u8; 256 << 10];
        let mut size_bytes = 0u64;
        loop {
            match bytes.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    size_bytes += n as u64;
                    hash.update(buffer.get(..n).unwrap_or_default());
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(FileIdentity { size_bytes, sha256 })
    };
    std::thread::Builder::new().spawn(hashing).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On some systems directories that differ in case are one.
    #[test]
    fn recordings_that_differ_in_case_have_keys_that_do_not() {
        let keys = trace_keys(&["A.nettrace", "b/a.etl", "-", "7.corprof", "A_2.nettrace"].map(PathBuf::from));
        assert_eq!(keys, ["A", "a_2", "stdin", "t7", "A_2_2"]);
    }
}
