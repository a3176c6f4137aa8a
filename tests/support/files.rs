//! Folders of files, to be compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A sample of the project.
pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// All files below a folder by their names in it, with `/` on every system.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}
