//! Searches for the symbols of modules on this machine.

use super::files::{Budget, file_name, is_local, read_file};
use super::functions::NativePlace;
use super::native::{NativeFiles, NativeModule};
use super::portable_pdb::PortablePdb;
use crate::error::Named;
use crate::prelude::*;

/// Names of modules without symbols that are remembered.
const MAX_NAMES: usize = 1 << 10;

/// A module as the recording names it.
#[derive(Clone, Copy, Debug)]
pub struct ManagedModule<'m> {
    /// Path of the assembly.
    pub path: &'m str,
    /// Id of its symbols.
    pub pdb_guid: Guid,
    /// Path of its symbols when it was built.
    pub pdb_path: Option<&'m str>,
}

/// Symbols in folders, and beside the modules that a recording names.
#[derive(Debug)]
pub struct Symbols {
    folders: Vec<PathBuf>,
    files: Map<Guid, Option<PortablePdb>>,
    budget: Budget,
    missing: Vec<String>,
    native: NativeFiles,
}

impl Symbols {
    /// In these folders. Fails when one is not there.
    pub fn open(folders: &[PathBuf]) -> Result<Symbols> {
        if let Some(folder) = folders.iter().find(|folder| !folder.is_dir()) {
            let path = folder.display();
            let message = format!("{path}: no such directory, expected one with symbols");
            return Err(Error::NotFound { what: Named::Path, message });
        }
        Ok(Symbols {
            folders: folders.to_vec(),
            files: Map::default(),
            budget: Budget::default(),
            missing: Vec::new(),
            native: NativeFiles::default(),
        })
    }

    /// File and line of a method's IL offset; without an offset of its beginning.
    pub fn line(&mut self, module: ManagedModule<'_>, token: u32, il_offset: Option<u32>) -> Option<(&str, u32)> {
        if module.pdb_guid.is_none() {
            return None;
        }
        if !self.files.contains_key(&module.pdb_guid) {
            let found = self.find(module);
            if found.is_none() && self.missing.len() < MAX_NAMES {
                self.missing.push(file_name(module.path).to_owned());
            }
            self.files.insert(module.pdb_guid, found);
        }
        self.files.get_mut(&module.pdb_guid)?.as_mut()?.line(token, il_offset)
    }

    /// The function in a native file at an offset of the file, when its key is a [`NativeKey::BuildId`], or else at a
    /// distance from its beginning in memory. The place is behind a call.
    ///
    /// [`NativeKey::BuildId`]: super::NativeKey::BuildId
    pub fn native(&mut self, module: NativeModule<'_>, place: u64) -> Option<NativePlace<'_>> {
        self.native.at(&self.folders, module, place, &mut self.budget)
    }

    /// Names of modules whose symbols were looked for and not found, in the order of the search.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Names of files with symbols that are too large to be read, of more than 128 MB.
    pub fn too_large(&self) -> impl Iterator<Item = &str> {
        self.budget.too_large.iter().map(String::as_str)
    }

    fn find(&mut self, module: ManagedModule<'_>) -> Option<PortablePdb> {
        let assembly = file_name(module.path);
        let stem = assembly.rsplit_once('.').map_or(assembly, |(stem, _)| stem);
        let pdb = module.pdb_path.map(file_name).filter(|name| !name.is_empty());
        let pdb = pdb.map_or_else(|| format!("{stem}.pdb"), str::to_owned);
        // A name out of a recording is a file in a folder, not a way out of it.
        if [assembly, pdb.as_str()].iter().any(|name| name.is_empty() || *name == "." || *name == "..") {
            return None;
        }
        // The form of symbol servers: the name, the id with the age FFFFFFFF, the name. Their tools differ in the case.
        let id: String = module.pdb_guid.to_string().chars().filter(char::is_ascii_hexdigit).collect();
        let ids = [format!("{}FFFFFFFF", id.to_uppercase()), format!("{}ffffffff", id.to_lowercase())];
        let mut places: Vec<PathBuf> = Vec::new();
        for folder in &self.folders {
            places.extend([folder.join(&pdb), folder.join(assembly)]);
            places.extend(ids.iter().map(|id| folder.join(&pdb).join(id).join(&pdb)));
        }
        let is_local = |path: &&str| is_local(path);
        if let Some(path) = Some(module.path).filter(is_local).map(Path::new).filter(|path| path.is_absolute()) {
            places.extend([path.with_file_name(&pdb), path.to_owned()]);
        }
        if let Some(path) = module.pdb_path.filter(is_local).map(Path::new).filter(|path| path.is_absolute()) {
            places.push(path.to_owned());
        }
        places.iter().find_map(|place| self.read(place, module.pdb_guid))
    }

    /// The symbols in a file, a PDB or an assembly with embedded ones, if their id is the wanted one.
    fn read(&mut self, path: &Path, wanted: Guid) -> Option<PortablePdb> {
        let data = read_file(path, &mut self.budget, &[b"MZ", b"BSJB"])?;
        let pdb = PortablePdb::of_file(data, Some(wanted))?;
        self.budget.kept = self.budget.kept.saturating_sub(pdb.size() as u64);
        Some(pdb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_through_up_to_a_bound() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
        let data = std::fs::read(samples.join("Churn.pdb")).unwrap();
        let pdb_guid = PortablePdb::of_file(data.clone(), None).unwrap().guid;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Churn.pdb"), &data).unwrap();
        // A file whose first bytes are not those of symbols is not read.
        std::fs::write(folder.path().join("Churn.dll"), vec![7; 1 << 20]).unwrap();
        let size = data.len() as u64;
        // One file for modules with other ids is read for each of them, as long as it may be.
        for (looked, others, is_found) in [(4 * size, 3, true), (4 * size - 1, 3, false), (4 * size, 4, false)] {
            let mut symbols = Symbols::open(&[folder.path().to_owned()]).unwrap();
            symbols.budget.looked = looked;
            for other in 0..others {
                let module = ManagedModule { path: "Churn.dll", pdb_guid: Guid([other + 1; 16]), pdb_path: None };
                assert_eq!(symbols.line(module, 0x0600_0001, None), None);
            }
            let module = ManagedModule { path: "Churn.dll", pdb_guid, pdb_path: None };
            let found = (1..50).any(|row| symbols.line(module, 0x0600_0000 + row, None).is_some());
            assert_eq!((found, symbols.missing().len()), (is_found, usize::from(others) + usize::from(!is_found)));
        }
    }
}
