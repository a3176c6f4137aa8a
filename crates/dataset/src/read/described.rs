//! The entries of a dataset of several recordings, with those of packs: what there is at one moment.

use crate::format::{DamagedEntry, Entry, OfPack, Pack, PackHead, living};
use crate::prelude::*;
use crate::write::{entries_but, entry, pack_head, packs};

/// The number of times that entries are read again when packs come or go meanwhile.
const ATTEMPTS: usize = 20;

/// The entries of a dataset.
pub(super) struct Described<P> {
    /// The packs that no other one has replaced, as the reader wants them.
    pub(super) packs: Vec<P>,
    /// The recordings that are in none of them, in the order of their keys.
    pub(super) entries: Vec<Entry>,
    /// Entries that cannot be read.
    pub(super) damaged: Vec<DamagedEntry>,
}

/// Reads them. A recording that comes into a pack meanwhile is in the pack or has its entry, and not both. A pack is no
/// longer in memory when `take` has made of it what is needed.
pub(super) fn described<R: OfPack, P>(root: &Path, mut take: impl FnMut(Pack<R>) -> P) -> Result<Described<P>> {
    let mut names = packs(root)?;
    for _ in 0..ATTEMPTS {
        let described = read(root, &names, &mut take)?;
        let after = packs(root)?;
        if after == names {
            return Ok(described);
        }
        names = after;
    }
    let source = std::io::Error::other("other programs keep compacting the dataset");
    Err(Error::Io { path: root.to_owned(), source })
}

fn read<R: OfPack, P>(root: &Path, names: &[String], take: &mut impl FnMut(Pack<R>) -> P) -> Result<Described<P>> {
    let mut damaged = Vec::new();
    let mut heads = Vec::with_capacity(names.len());
    for name in names {
        match pack_head(root, name).map(|line| line.and_then(|line| PackHead::parse(name, &line))) {
            Some(Ok(head)) => heads.push(head),
            Some(Err(error)) => damaged.push(error),
            None => {}
        }
    }
    let mut packs = Vec::with_capacity(heads.len());
    let mut read = Vec::with_capacity(heads.len());
    for head in living(heads, |head| (&head.pack, &head.replaces)) {
        let name = &head.pack;
        match entry(root, name).map(|bytes| bytes.and_then(|bytes| Pack::parse(name, &bytes))) {
            Some(Ok(pack)) => {
                packs.push(take(pack));
                read.push(head);
            }
            Some(Err(error)) => damaged.push(error),
            None => {}
        }
    }
    let mut own = Vec::new();
    for (key, bytes) in entries_but(root, |key| read.iter().any(|head| head.index.has_key(key)))? {
        match bytes.and_then(|bytes| Entry::parse(&key, &bytes)) {
            Ok(entry) => own.push(entry),
            Err(error) => damaged.push(error),
        }
    }
    Ok(Described { packs, entries: own, damaged })
}
