//! What is known of an input by its file: a key for it, its size and its hash.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::source::FileIdentity;

/// A key for each input: its file name, begun with a letter and unique. (A bare number would be read as one.)
pub(super) fn trace_keys(inputs: &[PathBuf]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for path in inputs {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.split(".nettrace").next().unwrap_or_default().split(".netperf").next().unwrap_or_default();
        let stem = stem.split(".etl").next().unwrap_or_default().split(".corprof").next().unwrap_or_default();
        let mut key = crate::table::names::safe(if stem.is_empty() || stem == "-" { "stdin" } else { stem });
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            key.insert(0, 't');
        }
        keys.push(crate::table::payload::unique(key, &keys));
    }
    keys
}

/// Size and SHA-256 of a regular file, taken by a thread of its own.
pub(super) fn identity_of(path: &Path) -> Option<std::thread::JoinHandle<Result<FileIdentity>>> {
    if !path.is_file() {
        return None;
    }
    let path = path.to_owned();
    Some(std::thread::spawn(move || {
        let mut file = std::fs::File::open(&path).map_err(Error::io(&path))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0u8; 256 << 10];
        let mut size_bytes = 0u64;
        loop {
            let n = file.read(&mut buffer).map_err(Error::io(&path))?;
            if n == 0 {
                break;
            }
            size_bytes += n as u64;
            hash.update(buffer.get(..n).unwrap_or_default());
        }
        let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(FileIdentity { size_bytes, sha256 })
    }))
}
