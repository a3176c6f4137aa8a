//! Folders of files, to be compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A sample of the project.
pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// All files below a folder by their names in it, with `/` on every system.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    assert!(folder.is_dir(), "{} is no folder", folder.display());
    let read = |name: String| (name.clone(), std::fs::read(folder.join(name)).unwrap());
    names(folder).into_iter().map(read).collect()
}

/// The names of these files. Others may write there: what goes away meanwhile may be missing.
pub fn names(folder: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy();
                found.push(name.replace(std::path::MAIN_SEPARATOR, "/"));
            }
        }
    }
    found.sort();
    found
}
