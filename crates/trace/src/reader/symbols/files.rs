//! Files with symbols, as bytes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A larger file is not read, which is reported. The symbols of the largest assembly of .NET 10 have 10 MB.
const MAX_FILE: u64 = 128 << 20;

/// Names of files that are too large, at most.
const MAX_TOO_LARGE: usize = 16;

/// Bytes of all symbols in memory, at most.
const MAX_KEPT: u64 = 1 << 30;

/// Bytes that are looked through, at most: a recording can name the same large file for each of its modules.
const MAX_LOOKED: u64 = 16 << 30;

/// The files and bytes that may still be read.
#[derive(Debug)]
pub struct Budget {
    /// Bytes that are kept.
    pub kept: u64,
    /// Bytes that are looked through.
    pub looked: u64,
    /// Names of files that are too large to be read.
    pub too_large: BTreeSet<String>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { kept: MAX_KEPT, looked: MAX_LOOKED, too_large: BTreeSet::new() }
    }
}

/// The bytes of a file that begins in one of these ways, if it is not too large. Pipes and devices are not opened.
pub fn read_file(path: &Path, budget: &mut Budget, beginnings: &[&[u8]]) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if size <= MAX_FILE && size > budget.kept.min(budget.looked) {
        return None;
    }
    let (mut file, mut data) = (File::open(path).ok()?, Vec::new());
    file.by_ref().take(4).read_to_end(&mut data).ok()?;
    if !beginnings.iter().any(|beginning| data.starts_with(beginning)) {
        return None;
    }
    if size > MAX_FILE {
        if budget.too_large.len() < MAX_TOO_LARGE {
            budget.too_large.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        return None;
    }
    file.take(MAX_FILE - 4).read_to_end(&mut data).ok()?;
    budget.looked = budget.looked.saturating_sub(data.len() as u64);
    Some(data)
}

/// The part of a path behind its folders, of whatever system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Whether a path is on this machine. A share of another one would learn who reads the recording. To Windows both kinds
/// of slashes are one: `\/host\share` is a share, too, and so may be what is in `\??\`, where all devices are.
pub fn is_local(path: &str) -> bool {
    let mut first = path.chars();
    let begins = matches!(first.next(), Some('/' | '\\'));
    !(begins && matches!(first.next(), Some('/' | '\\' | '?')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_not_local_however_its_slashes_lean() {
        let shares =
            [r"\\host\share", "//host/share", r"\/host\share", r"/\host\share", r"\\?\UNC\host\x", "//", r"\/"];
        for share in shares.into_iter().chain([r"\??\UNC\host\x"]) {
            assert!(!is_local(share), "{share}");
        }
        for local in ["/usr/lib/x.so", r"C:\Windows\x.dll", r"\Windows\x.dll", "x.dll", "", "/", "C://x", r"a\\b"] {
            assert!(is_local(local), "{local}");
        }
    }
}
