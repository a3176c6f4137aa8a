//! A pack that was made: its entry, and its files until they are in the dataset.

use crate::files::{NewFile, Workspace};
use crate::prelude::*;
use tracequet_dataset::format::{Member, Pack, PackedFile, PackedTable, Recorded, paths};

/// The files of a table.
pub(super) type Files = Vec<(PathBuf, PackedFile)>;

/// A pack that was made, and its files, which lie in a hidden directory until they are put into the dataset.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) pack: Pack,
    pub(super) files: Vec<NewFile>,
    _workspace: Workspace,
}

impl Made {
    /// A pack of `members`, which are in the order of their keys: each with its tables and their rows. `names` are the
    /// tables of all, in order, and `files` the files of each, in the `workspace`.
    pub(super) fn of<'n>(
        schema_version: u32,
        replaces: Vec<String>,
        names: &[&'n str],
        files: Vec<Files>,
        members: impl Iterator<Item = (Recorded, BTreeMap<&'n str, u64>)>,
        workspace: Workspace,
    ) -> Result<Made> {
        let tables = names.iter().zip(&files).map(|(name, files)| PackedTable {
            name: (*name).to_owned(),
            files: files.iter().map(|(_, file)| *file).collect(),
        });
        let mut sets: BTreeSet<Arc<[u32]>> = BTreeSet::new();
        let member = |(recorded, own): (Recorded, BTreeMap<&str, u64>)| {
            let places: Vec<(u32, u64)> = own
                .iter()
                .filter_map(|(name, rows)| Some((u32::try_from(names.binary_search(name).ok()?).ok()?, *rows)))
                .collect();
            let set: Arc<[u32]> = places.iter().map(|(place, _)| *place).collect();
            let tables = sets.get(&set).cloned().unwrap_or_else(|| set.clone());
            sets.insert(set);
            let rows = places.into_iter().filter(|(_, rows)| *rows > 0).collect();
            Member { recorded, tables, rows }
        };
        let members = members.map(member).collect();
        let pack = Pack::new(schema_version, replaces, tables.collect(), members);
        // A pack that would not be read is not written.
        Pack::<Recorded>::parse(&pack.name, &pack.text())
            .map_err(|damaged| Error::Internal(format!("a pack: {}", damaged.what)))?;
        let mut placed = Vec::new();
        for (name, files) in names.iter().zip(files) {
            let numbered = (0u32..).zip(files);
            placed.extend(
                numbered.map(|(number, (path, _))| NewFile { name: paths::packed(name, &pack.name, number), path }),
            );
        }
        Ok(Made { pack, files: placed, _workspace: workspace })
    }
}
