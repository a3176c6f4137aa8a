//! Packs in a directory: how their files take the places of others.
//!
//! The files of a pack first lie in `.<pack>/new/`, which no glob looks into. Then its entry
//! `manifest/packed/<pack>.json` appears by a rename: that is the moment in which the dataset changes for readers of
//! entries, who find a file in its place or in the hidden directory. Then, table by table, the folders of its
//! recordings and of the packs that it replaces move to `.<pack>/old/`, and the folder of the pack moves to its place.
//! In this order a glob never finds a row twice; one that looks into a table just then may miss rows. Last go the old
//! entries, and after a while the hidden directory. A program that does any of this holds the lock of the dataset, and
//! the next run does what a killed one has left.

use crate::prelude::*;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use super::directory::{Directory, make_folder, move_file};
use super::recording::NewFile;
use tracequet_dataset::format::{Pack, Recorded, paths};
use tracequet_dataset::write::durable;
use tracequet_dataset::write::entries::{self, names};
use tracequet_dataset::write::folders::{self, refuse_link, remove_all};
use tracequet_dataset::write::pack_places::{NEW, OLD, hidden_in};
use tracequet_dataset::write::staging;

/// All of it is done with the lock of the dataset held.
impl Directory {
    /// Puts a pack into the place of what it replaces.
    pub(super) fn put_in_place(&self, pack: &Pack, files: &[NewFile]) -> Result<()> {
        let entries = self.entries().join(paths::PACKS);
        refuse_link(&entries)?;
        make_folder(&entries)?;
        for file in files {
            // Fails before anything is changed.
            let name = staging::relative(&file.name)?;
            folders::place(&self.root, name.parent().unwrap_or(&name))?;
        }
        let hidden = self.hidden(&pack.name);
        remove_all(&hidden)?;
        let new = hidden.join(NEW);
        make_folder(&new)?;
        for file in files {
            let to = new.join(staging::relative(&file.name)?);
            make_folder(to.parent().unwrap_or(&new))?;
            move_file(&file.path, &to)?;
        }
        if self.durable {
            durable::sync_tree(&hidden)?;
            durable::sync_folder(&self.root);
        }
        let half = self.half(&pack.name);
        self.write(&half, &pack.text())?;
        move_file(&half, &self.entry_path(&pack.name))?;
        self.sync_folder(&entries);
        self.take_places(pack)
    }

    /// Moves the files of a pack that has its entry to their places.
    fn take_places(&self, pack: &Pack) -> Result<()> {
        let hidden = self.hidden(&pack.name);
        let (new, old) = (hidden.join(NEW), hidden.join(OLD));
        // Names of folders that move away, by the tables in which they are.
        let mut away: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        for table in &pack.tables {
            away.insert(staging::relative(&table.name)?, Vec::new());
        }
        let replaced: Vec<&String> = pack.replaces.iter().filter(|name| is_there(&self.entry_path(name))).collect();
        for name in &replaced {
            for folder in folders::of_recording(&self.root, name)? {
                let table = folder.parent().and_then(|table| table.strip_prefix(&self.root).ok()).map(Path::to_owned);
                away.entry(table.unwrap_or_default()).or_default().push(paths::partition(name));
            }
        }
        // The entry of a recording goes last, so that one without has nothing left.
        let left: Vec<_> = pack.members.iter().filter(|member| is_there(&self.entry_path(member.key()))).collect();
        for member in &left {
            // With rows or without: a kind of event without events had a file, too.
            for table in member.tables.iter().filter_map(|place| pack.table(*place)) {
                away.entry(staging::relative(&table.name)?).or_default().push(paths::partition(member.key()));
            }
        }
        for (table, folders) in away {
            for folder in folders {
                let (from, to) = (self.root.join(&table).join(&folder), old.join(&table).join(&folder));
                refuse_link(&from)?;
                if is_there(&from) {
                    make_folder(&old.join(&table))?;
                    move_file(&from, &to)?;
                }
            }
            let partition = paths::partition(&pack.name);
            let (from, to) = (new.join(&table).join(&partition), self.root.join(&table).join(&partition));
            if is_there(&from) {
                make_folder(&self.root.join(&table))?;
                move_file(&from, &to)?;
            } else {
                self.remove_empty(&self.root.join(&table));
            }
        }
        self.sync_moves()?;
        for key in left.iter().map(|member| member.key()).chain(replaced.iter().map(|name| name.as_str())) {
            remove_all(&self.entry_path(key))?;
        }
        self.sync_folder(&self.entries());
        if !is_there(&old) {
            // The pack has taken the place of nothing that readers may have begun to read.
            return remove_all(&hidden);
        }
        // Without this folder all is done; the time of the hidden directory is from now on when that was.
        remove_all(&new)?;
        make_folder(&hidden)?;
        self.sync_folder(&hidden);
        Ok(())
    }

    /// Does what a killed run has left to do, and removes what moved away longer ago than `grace`.
    pub(super) fn settle_packs(&self, grace: Duration) -> Result<()> {
        let entries = self.entries().join(paths::PACKS);
        refuse_link(&entries)?;
        for name in names(&entries)? {
            match name.strip_suffix(paths::HALF).and_then(paths::pack_of_entry) {
                Some(pack) if !is_there(&self.entry_path(pack)) => self.remove_half(pack)?,
                Some(pack) => remove_all(&self.half(pack))?,
                None => {}
            }
        }
        for (name, hidden) in hidden_in(&self.root)? {
            let is_begun = is_there(&hidden.join(NEW));
            match entries::read(&self.root, &name) {
                Some(entry) if is_begun => {
                    // A damaged entry says nothing of what has to move.
                    if let Ok(pack) = entry.and_then(|text| Pack::<Recorded>::parse(&name, &text)) {
                        self.take_places(&pack)?;
                    }
                }
                None if is_begun => remove_all(&hidden)?,
                _ => {}
            }
            if !is_there(&hidden.join(NEW)) && is_older(&hidden, grace) {
                remove_all(&hidden)?;
            }
        }
        Ok(())
    }

    /// Makes it last which folders have moved.
    fn sync_moves(&self) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let folders: BTreeSet<PathBuf> = folders::of_tables(&self.root)?.into_iter().collect();
        durable::sync_folders(&folders.into_iter().filter(|folder| folder.is_dir()).collect::<Vec<_>>())
    }
}

/// Whether the hidden directory of a pack has been as it is for some time. One from the future gets the time of now: a
/// clock that goes back makes it stay for once more, and not for as long as the clock went back.
fn is_older(hidden: &Path, grace: Duration) -> bool {
    let Ok(written) = fs::metadata(hidden).and_then(|found| found.modified()) else { return false };
    let now = SystemTime::now();
    match now.duration_since(written) {
        Ok(age) => age >= grace,
        Err(_) if grace.is_zero() => true,
        Err(_) => {
            // A time that cannot be set now is set by the next run.
            let _ = File::open(hidden).and_then(|folder| folder.set_modified(now));
            false
        }
    }
}

fn is_there(path: &Path) -> bool {
    !fs::symlink_metadata(path).is_err_and(|e| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
