//! Paths of files, as the runtime and as the kernel of Windows write them.

/// Bytes of a path that are looked at for the name of the file, at its end.
const MAX_END: usize = 8 << 10;

/// The part of a path behind its folders.
pub fn file_name(path: &str) -> &str {
    // Of a long one the end is looked at.
    let start = (path.len().saturating_sub(MAX_END)..=path.len()).find(|start| path.is_char_boundary(*start));
    let path = start.and_then(|start| path.get(start..)).unwrap_or(path);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A path of the runtime as the end of the kernel's path of the same file, in small letters: `C:\Windows` is
/// `\Device\HarddiskVolume3\Windows` or `\Windows` there.
pub fn of_runtime(path: &str) -> String {
    path.split_once(':').map_or(path, |(_, path)| path).to_ascii_lowercase()
}
