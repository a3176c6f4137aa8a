//! Symbols of native code on this machine: ELF files by their build id (with the feature `native-symbols`), PDBs by
//! their id and age.

use crate::prelude::*;

#[cfg(feature = "native-symbols")]
use super::elf::ElfFile;
use super::files::{Budget, file_name, is_local, read_file};
use super::functions::NativePlace;
use super::native_pdb::NativePdb;

/// First bytes of a PDB.
const MSF: &[u8] = b"Micr";

/// A native file as the recording names it.
#[derive(Clone, Copy, Debug)]
pub struct NativeModule<'m> {
    /// Path.
    pub path: &'m str,
    /// The key by which its symbols are found.
    pub key: NativeKey<'m>,
}

/// The identity of the symbols of a native file.
#[derive(Clone, Copy, Debug)]
pub enum NativeKey<'m> {
    /// Build id of an ELF file, in hexadecimal. Places are offsets of the file.
    BuildId(&'m str),
    /// A build id like the first, where places are distances from the beginning of the file in memory.
    LoadedBuildId(&'m str),
    /// The symbols of a file of Windows.
    Pdb {
        /// Their id.
        guid: Guid,
        /// The number of times that the symbols were written since they were made.
        age: Option<u32>,
        /// Their path when the file was built.
        path: Option<&'m str>,
    },
}

/// Files that were looked for, and what was found.
#[derive(Debug, Default)]
pub struct NativeFiles {
    #[cfg(feature = "native-symbols")]
    by_build_id: Map<String, Option<ElfFile>>,
    pdbs: Map<(Guid, Option<u32>), Option<NativePdb>>,
}

impl NativeFiles {
    /// The function at a place of a file, an offset or a distance as its key says, by what is found in the folders,
    /// where the recording says that the file is, and in the system's folder of debug files.
    pub fn at(
        &mut self,
        folders: &[PathBuf],
        module: NativeModule<'_>,
        place: u64,
        budget: &mut Budget,
    ) -> Option<NativePlace<'_>> {
        match module.key {
            #[cfg(feature = "native-symbols")]
            NativeKey::BuildId(id) | NativeKey::LoadedBuildId(id) => {
                if id.len() < 4 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return None;
                }
                if !self.by_build_id.contains_key(id) {
                    let found = find_elf(folders, module.path, id, budget);
                    self.by_build_id.insert(id.to_owned(), found);
                }
                let file = self.by_build_id.get(id)?.as_ref()?;
                let is_loaded = matches!(module.key, NativeKey::LoadedBuildId(_));
                if is_loaded { file.at_distance(place) } else { file.at_offset(place) }
            }
            #[cfg(not(feature = "native-symbols"))]
            NativeKey::BuildId(_) | NativeKey::LoadedBuildId(_) => None,
            NativeKey::Pdb { guid, age, path } => {
                if guid.is_none() {
                    return None;
                }
                let found = self.pdbs.entry((guid, age)).or_insert_with(|| {
                    let places = pdb_places(folders, module.path, path, guid, age);
                    places.iter().find_map(|place| {
                        let pdb = NativePdb::parse(read_file(place, budget, &[MSF])?, guid, age)?;
                        budget.kept = budget.kept.saturating_sub(pdb.size() as u64);
                        Some(pdb)
                    })
                });
                found.as_mut()?.at(place)
            }
        }
    }
}

/// Where a PDB may be: in the folders as it is, or in the layout of symbol servers; beside the file, or where it was
/// when the file was built.
fn pdb_places(folders: &[PathBuf], module: &str, pdb: Option<&str>, guid: Guid, age: Option<u32>) -> Vec<PathBuf> {
    let file = file_name(module);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let name = pdb.map(file_name).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| format!("{stem}.pdb"), str::to_owned);
    if ["", ".", ".."].contains(&name.as_str()) {
        return Vec::new();
    }
    let id: String = guid.to_string().chars().filter(char::is_ascii_hexdigit).collect();
    // Tools differ in the case.
    let keys = [format!("{}{:X}", id.to_uppercase(), age.unwrap_or(1)), format!("{id}{:x}", age.unwrap_or(1))];
    let mut places = Vec::new();
    for folder in folders {
        places.push(folder.join(&name));
        places.extend(keys.iter().map(|key| folder.join(&name).join(key).join(&name)));
    }
    let absolute = |path: &str| Some(PathBuf::from(path)).filter(|known| is_local(path) && known.is_absolute());
    places.extend(absolute(module).map(|path| path.with_file_name(&name)));
    places.extend(pdb.and_then(absolute));
    places
}

#[cfg(feature = "native-symbols")]
fn find_elf(folders: &[PathBuf], path: &str, build_id: &str, budget: &mut Budget) -> Option<ElfFile> {
    let id = build_id.to_lowercase();
    let (first, rest) = id.split_at_checked(2)?;
    // As gdb and others lay out debug files.
    let debug = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
    let name = file_name(path);
    let mut places = Vec::new();
    for folder in folders {
        places.push(folder.join(&debug));
        if !["", ".", ".."].contains(&name) {
            places.push(folder.join(name));
        }
    }
    places.push(Path::new("/usr/lib/debug").join(&debug));
    if path.starts_with('/') && is_local(path) {
        places.push(PathBuf::from(path));
    }
    let mut found: Option<ElfFile> = None;
    for place in places {
        let Some(data) = read_file(&place, budget, &[b"\x7FELF"]) else { continue };
        let Some(file) = ElfFile::parse(&data, &id, budget.kept) else { continue };
        budget.kept = budget.kept.saturating_sub(file.size() as u64);
        budget.looked = budget.looked.saturating_sub(file.expanded);
        // One with all symbols is better than one with those for other files only.
        if file.is_whole || found.is_none() {
            let is_whole = file.is_whole;
            found = Some(file);
            if is_whole {
                break;
            }
        }
    }
    found
}
