//! Paths of files, as the runtime and as the kernel of Windows write them.

use crate::prelude::*;

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

/// Facts about files, by process and path. Paths are in small letters.
#[derive(Debug)]
pub struct Files<T>(Map<(ProcessKey, String), Vec<(String, T)>>);

impl<T> Default for Files<T> {
    fn default() -> Self {
        Files(Map::default())
    }
}

impl<T> Files<T> {
    /// Adds a file.
    pub fn add(&mut self, process: ProcessKey, path: String, known: T) {
        self.0.entry((process, file_name(&path).to_owned())).or_default().push((path, known));
    }

    /// The first file with the name of `path` of whose own path `is_same` is true.
    pub fn find(&self, process: ProcessKey, path: &str, is_same: impl Fn(&str) -> bool) -> Option<&T> {
        let files = self.0.get(&(process, file_name(path).to_owned()))?;
        files.iter().find(|(own, _)| is_same(own)).map(|(_, known)| known)
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
