//! The entries of a dataset of several recordings, with those of packs: what there is at one moment.

use std::collections::HashSet;
use std::path::Path;

use tracequet_trace::error::{Error, Result};

use crate::format::{DamagedEntry, Entry, Pack, living};
use crate::write::{entries, entry, packs};

/// How often they are read again when packs come or go meanwhile.
const ATTEMPTS: usize = 20;

/// What the entries of a dataset say.
pub(super) struct Described {
    /// The packs that no other one has replaced.
    pub(super) packs: Vec<Pack>,
    /// The recordings that are in none of them, in the order of their keys.
    pub(super) entries: Vec<Entry>,
    /// Those that cannot be read.
    pub(super) damaged: Vec<DamagedEntry>,
}

/// Reads them. A recording that comes into a pack meanwhile is in the pack or has its entry, and not both.
pub(super) fn described(root: &Path) -> Result<Described> {
    let mut names = packs(root)?;
    for _ in 0..ATTEMPTS {
        let described = read(root, &names)?;
        let after = packs(root)?;
        if after == names {
            return Ok(described);
        }
        names = after;
    }
    let source = std::io::Error::other("other programs keep compacting the dataset");
    Err(Error::Io { path: root.to_owned(), source })
}

fn read(root: &Path, names: &[String]) -> Result<Described> {
    let mut damaged = Vec::new();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match entry(root, name).map(|bytes| bytes.and_then(|bytes| Pack::parse(name, &bytes))) {
            Some(Ok(pack)) => found.push(pack),
            Some(Err(error)) => damaged.push(error),
            None => {}
        }
    }
    let packs = living(found);
    let packed: HashSet<&str> = packs.iter().flat_map(|pack| pack.members.iter().map(|member| member.key())).collect();
    let mut own = Vec::new();
    for (key, bytes) in entries(root)? {
        if packed.contains(key.as_str()) {
            continue;
        }
        match bytes.and_then(|bytes| Entry::parse(&key, &bytes)) {
            Ok(entry) => own.push(entry),
            Err(error) => damaged.push(error),
        }
    }
    Ok(Described { packs, entries: own, damaged })
}
