//! Files with symbols, as bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file of more bytes is not read. The symbols of the largest assembly of .NET 10 have 10 MB.
const MAX_FILE: u64 = 128 << 20;

/// The bytes of a file of not more than `most`. Pipes and devices are not opened.
pub fn read_file(path: &Path, most: u64) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if size > MAX_FILE.min(most) {
        return None;
    }
    let mut data = Vec::new();
    File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut data).ok()?;
    Some(data)
}

/// The part of a path behind its folders, of whatever system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Whether a path is on this machine. A share of another one would tell it who reads the recording.
pub fn is_local(path: &str) -> bool {
    !path.starts_with("\\\\") && !path.starts_with("//")
}
