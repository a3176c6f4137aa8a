//! Where packs and their files are in a directory, in their places or on the way there.

use std::fs;

use super::entries::names;
use crate::format::paths;
use crate::prelude::*;

/// The file that is locked by whoever rewrites packs, in the folder of the entries.
pub const LOCK: &str = ".packing";

/// In the hidden directory of a pack: its own files on their way, and those whose place they have taken.
pub const NEW: &str = "new";
pub const OLD: &str = "old";

/// The names of the packs of the dataset at `root`, in order.
pub fn names_in(root: &Path) -> Result<Vec<String>> {
    let names = names(&root.join(paths::ENTRIES).join(paths::PACKS))?;
    let mut packs: Vec<String> =
        names.iter().filter_map(|name| paths::pack_of_entry(name).map(str::to_owned)).collect();
    packs.sort();
    Ok(packs)
}

/// Where a file of the dataset at `root` lies that is not in its place: it is on its way there, or a pack has taken its
/// place a while ago.
pub fn place_of(root: &Path, name: &str) -> Option<PathBuf> {
    let relative = paths::relative(name)?;
    if root.join(&relative).is_file() {
        return None;
    }
    let own =
        paths::key_of(name).filter(|key| paths::is_pack(key)).map(|pack| root.join(paths::hidden(pack)).join(NEW));
    let old = hidden_in(root).ok()?.into_iter().map(|(_, hidden)| hidden.join(OLD));
    own.into_iter().chain(old).map(|folder| folder.join(&relative)).find(|path| path.is_file())
}

/// The hidden directories of packs.
pub fn hidden_in(root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found: Vec<_> = names(root)?
        .iter()
        .filter_map(|name| Some((paths::pack_of_hidden(name)?.to_owned(), root.join(name))))
        .filter(|(_, path)| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()))
        .collect();
    found.sort();
    Ok(found)
}
