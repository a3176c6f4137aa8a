//! A growing dataset of several recordings: each recording appears complete, also with several writers.
//!
//! `manifest/<key>.json` is the entry of a recording: what has no entry is not in the dataset. First the files of a
//! recording get to `<table>/trace=<key>/`, then its entry appears in one step. Who removes it begins with the entry. A
//! table of which a recording has no rows has no file: `<table>/trace=none/` has one without rows, once for the
//! dataset. `manifest.json` sums the entries up, so that a run reads only those that came since.
//!
//! That is the same in a directory ([`Directory`](super::Directory)) and in an object store. How a step is done is not:
//! a [`Storage`] does them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tracequet_dataset::error::{Error, Result};

use super::recording::{NewFile, NewRecording};
use super::storage::{GRACE, Listed, Manifest, Storage};
use tracequet_dataset::format::{
    DamagedEntry, Entry, Format, Labels, Line, Pack, PackHead, Recorded, Status, Summed, TableInfo, check_size,
    hash_of, living, paths, recorded_with, tag_of,
};
use tracequet_dataset::write::dataset_writer::{DatasetWriter, Finished};
use tracequet_dataset::write::entries::read_small;
use tracequet_dataset::write::staging;

/// The number of times that a summary is made again after another writer has written one.
const ATTEMPTS: u32 = 30;

/// Texts of packs that are kept in memory, since the next question may be about the same one.
const TEXTS: usize = 4;

/// A dataset of several recordings.
#[derive(Debug)]
pub struct Lake {
    storage: Box<dyn Storage>,
    /// The version of the tables of this program.
    schema_version: u32,
    /// The summary that was made last.
    last: Mutex<Option<Last>>,
    /// First lines of packs, which never change, by their names.
    heads: Mutex<HashMap<String, Arc<PackHead>>>,
    /// Entries of packs, the one that was asked for last at the end.
    texts: Mutex<Vec<(String, Arc<Vec<u8>>)>>,
}

/// A sum, and the text of the manifest that it begins with, if it does with one.
#[derive(Debug)]
struct Last {
    manifest: Option<Vec<u8>>,
    summed: Summed,
}

/// The outcome of putting a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The recording is in the dataset.
    Done,
    /// Another writer has put it in the meantime, and it is left as it is.
    WasThere,
    /// A recording with other content has its key, and it was not put.
    IsTaken,
}

impl Put {
    /// Of a recording whose key another one has, by the hashes of the files that both were made of.
    pub(crate) fn beside(there: Option<&str>, new: Option<&str>) -> Put {
        if there.is_some() && there == new { Put::WasThere } else { Put::IsTaken }
    }
}

impl Lake {
    /// The dataset in a storage. Nothing is read or written yet. `schema_version` is that of the tables of this
    /// program.
    pub fn of(storage: impl Storage + 'static, schema_version: u32) -> Lake {
        let (last, heads, texts) = (Mutex::default(), Mutex::default(), Mutex::default());
        Lake { storage: Box::new(storage), schema_version, last, heads, texts }
    }

    /// Where it lies.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// The recordings, summed up: what `manifest.json` says, and the entries that it does not have yet. All entries are
    /// read when one was removed or changed since that was written, and when the sum is to be made `anew`.
    pub fn summed(&self, anew: bool) -> Result<Summed> {
        // Before the listing: what comes meanwhile is new.
        let manifest = if anew { None } else { self.storage.manifest()? };
        self.sum(manifest.as_ref())
    }

    /// Sums up the entries. A recording that comes into a pack meanwhile is looked for again: its own entry may be gone
    /// before it is read.
    fn sum(&self, manifest: Option<&Manifest>) -> Result<Summed> {
        let mut packs = self.storage.packs()?;
        for _ in 0..ATTEMPTS {
            let summed = self.sum_with(manifest, &packs)?;
            let after = self.storage.packs()?;
            if after == packs {
                return Ok(summed);
            }
            packs = after;
        }
        let message = "other programs keep compacting the dataset";
        Err(Error::Io { path: self.storage.shown(), source: std::io::Error::other(message) })
    }

    fn sum_with(&self, manifest: Option<&Manifest>, packs: &[String]) -> Result<Summed> {
        let listed = self.storage.list()?;
        let (heads, damaged) = self.heads_of(packs)?;
        // Damaged packs are in no sum, so that they are read each time.
        let names: Vec<String> = heads.iter().map(|head| head.pack.clone()).collect();
        let living = living(heads, |head| (&head.pack, &head.replaces));
        let is_packed = |one: &&Listed| living.iter().any(|head| head.index.has_key(&one.key));
        let listed: Vec<&Listed> = listed.iter().filter(|one| !is_packed(one)).collect();
        let (text, written) = manifest.map_or((None, None), |found| (found.text.as_ref().ok(), found.written));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.take().filter(|last| last.manifest.as_ref() == text).map(|last| last.summed);
        let parsed = || text.and_then(|text| Summed::parse(text, self.schema_version));
        let mut known = None;
        for summed in before.into_iter().chain(std::iter::once_with(parsed).flatten()) {
            if damaged.is_empty()
                && summed.has_packs(&names)
                && let Some(fresh) = self.fresh(&summed, &listed, written)?
            {
                known = Some((summed, fresh));
                break;
            }
        }
        let (mut summed, fresh) = match known {
            Some((mut summed, fresh)) => {
                summed.set_heads(living);
                (summed, fresh)
            }
            None => {
                let mut summed = Summed::new(self.schema_version);
                summed.add_packs(&names, living);
                damaged.into_iter().for_each(|damaged| summed.add_damaged(damaged));
                (summed, listed)
            }
        };
        self.storage.read(&fresh, &mut |key, entry| match entry {
            Ok((tag, text)) => summed.add(key, &tag, &text),
            Err(damaged) => summed.add_damaged(damaged),
        })?;
        // Damaged ones are in no sum, so that they are read each time.
        *last = Some(Last { manifest: text.cloned(), summed: summed.clone().without_damaged() });
        Ok(summed)
    }

    /// The first lines of packs, and those that are damaged. Those that are removed meanwhile are left out: then all of
    /// it is done again.
    fn heads_of(&self, names: &[String]) -> Result<(Vec<Arc<PackHead>>, Vec<DamagedEntry>)> {
        let (mut heads, mut damaged) = (Vec::with_capacity(names.len()), Vec::new());
        let mut known = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            if let Some(head) = known.get(name) {
                heads.push(head.clone());
                continue;
            }
            match self.storage.pack_head(name)?.map(|text| text.and_then(|text| PackHead::parse(name, &text))) {
                Some(Ok(head)) => {
                    let head = Arc::new(head);
                    known.insert(name.clone(), head.clone());
                    heads.push(head);
                }
                Some(Err(error)) => damaged.push(error),
                None => {}
            }
        }
        Ok((heads, damaged))
    }

    /// The text of the entry of a pack; nothing if it is not there.
    fn pack_text(&self, name: &str) -> Result<Option<std::result::Result<Arc<Vec<u8>>, DamagedEntry>>> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = texts.iter().position(|(known, _)| known == name) {
            let found = texts.remove(place);
            let text = found.1.clone();
            texts.push(found);
            return Ok(Some(Ok(text)));
        }
        let text = match self.storage.entry(name)? {
            Some(Ok((_, text))) => Arc::new(text),
            Some(Err(damaged)) => return Ok(Some(Err(damaged))),
            None => return Ok(None),
        };
        if texts.len() >= TEXTS {
            texts.remove(0);
        }
        texts.push((name.to_owned(), text.clone()));
        Ok(Some(Ok(text)))
    }

    /// The pack's entry of the recording with this content. `packs` are those of a sum.
    pub fn packed_with_hash(&self, packs: &[Arc<PackHead>], hash: &str) -> Result<Option<Recorded>> {
        self.packed(packs, hash, |head| head.index.has_hash(hash), |one| one.hash() == hash)
    }

    /// The pack's entry of the recording with this key. `packs` are those of a sum.
    pub fn packed_with_key(&self, packs: &[Arc<PackHead>], key: &str) -> Result<Option<Recorded>> {
        self.packed(packs, key, |head| head.index.has_key(key), |one| one.trace_id == key)
    }

    /// The recording of which `is_it` is true and whose line has `text`, in one of the packs that may have it.
    fn packed(
        &self,
        packs: &[Arc<PackHead>],
        text: &str,
        may_have: impl Fn(&PackHead) -> bool,
        is_it: impl Fn(&Recorded) -> bool,
    ) -> Result<Option<Recorded>> {
        for head in packs.iter().filter(|head| may_have(head)) {
            if let Some(Ok(entry)) = self.pack_text(&head.pack)?
                && let Some(found) = recorded_with(&head.pack, &entry, text, &is_it)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The entry of a pack; nothing if it is not there.
    pub fn pack(&self, name: &str) -> Result<Option<std::result::Result<Pack, DamagedEntry>>> {
        let entry = self.storage.entry(name)?;
        Ok(entry.map(|entry| entry.and_then(|(_, text)| Pack::<Recorded>::parse(name, &text))))
    }

    /// Reads the packs of a sum, one after the other, and hands each on. Those that are damaged, or removed meanwhile,
    /// are left out.
    pub fn each_pack(&self, packs: &[Arc<PackHead>], mut each: impl FnMut(&Pack)) -> Result<()> {
        for head in packs {
            if let Some(Ok(pack)) = self.pack(&head.pack)? {
                each(&pack);
            }
        }
        Ok(())
    }

    /// The entries that a sum does not have, if those that it has are as they were.
    fn fresh<'l>(
        &self,
        summed: &Summed,
        listed: &[&'l Listed],
        written: Option<SystemTime>,
    ) -> Result<Option<Vec<&'l Listed>>> {
        let (mut recordings, mut failed) = (summed.recordings().iter().peekable(), summed.failed().iter().peekable());
        let mut fresh = Vec::new();
        for &one in listed {
            // All are in the order of keys, so that one that is gone is still the next in the end.
            let is_it = |line: &&Line| line.key() == one.key;
            match recordings.next_if(is_it).or_else(|| failed.next_if(is_it)) {
                None => fresh.push(one),
                Some(line) if self.is_same(one, line.tag(), written)? => {}
                Some(_) => return Ok(None),
            }
        }
        Ok((recordings.peek().is_none() && failed.peek().is_none()).then_some(fresh))
    }

    /// Whether an entry has this tag. One that may have been written after the manifest is read for that, if the
    /// listing has no tag.
    fn is_same(&self, one: &Listed, tag: &str, written: Option<SystemTime>) -> Result<bool> {
        if let Some(own) = &one.tag {
            return Ok(own == tag);
        }
        let is_older = one.changed.zip(written).is_some_and(|(changed, written)| changed < written);
        let is_same = |entry| matches!(entry, Some(Ok((own, _))) if own == tag && !tag.is_empty());
        Ok(is_older || is_same(self.storage.entry(&one.key)?))
    }

    /// Replaces files of the dataset that are not tables. `make` gets all recordings that the dataset has now, those of
    /// other writers too, as [`Lake::summed`] gives them, and returns the files; the last one is the manifest. When
    /// another writer does the same at the same time, one of both repeats it, so that the last one has all.
    pub fn describe(&self, anew: bool, make: impl Fn(&Summed) -> Result<Vec<(&'static str, String)>>) -> Result<()> {
        let shown = self.storage.shown();
        for attempt in 1..=ATTEMPTS {
            let turn = self.storage.turn()?;
            let before = self.storage.manifest()?;
            let files = make(&self.sum(before.as_ref().filter(|_| !anew))?)?;
            files.iter().try_for_each(|(name, text)| check_size(&shown.join(name), text.len()))?;
            if self.storage.put_summary(&files, before.as_ref())? {
                return Ok(());
            }
            drop(turn);
            std::thread::sleep(Duration::from_millis(u64::from(attempt) * 20));
        }
        let message =
            "other writers keep changing the manifest; the recordings are complete, and the next run adds them to it";
        Err(Error::Io { path: shown, source: std::io::Error::other(message) })
    }

    /// Puts recordings into the dataset, in this order. One that is there already stays, unless it is replaced.
    pub fn put(&self, recordings: &[NewRecording]) -> Result<Vec<Put>> {
        let _turn = self.storage.turn_for(recordings)?;
        let mut begun = Vec::new();
        let outcomes = self.put_all(recordings, &mut begun);
        if outcomes.is_err() {
            self.storage.abandon(&begun);
        }
        outcomes
    }

    /// `begun` are those whose files were begun to be put.
    fn put_all<'n>(&self, recordings: &'n [NewRecording], begun: &mut Vec<&'n NewRecording>) -> Result<Vec<Put>> {
        let mut outcomes = Vec::new();
        let mut places = Vec::new();
        let mut keys: HashMap<&str, Option<&str>> = HashMap::new();
        for new in recordings {
            if self.is_there_as_it_is(new)? {
                outcomes.push(Put::Done);
                continue;
            }
            // Before anything is removed.
            self.storage.check(new)?;
            let mut replaces = false;
            for old in &new.replaced {
                replaces |= self.take_away(old)?;
            }
            if let Some(hash) = keys.get(new.key()) {
                outcomes.push(Put::beside(*hash, new.hash()));
                continue;
            }
            if let Some(there) = self.there(new)? {
                outcomes.push(there);
                continue;
            }
            keys.insert(new.key(), new.hash());
            begun.push(new);
            self.storage.put_files(new, replaces)?;
            places.push(outcomes.len());
            outcomes.push(Put::Done);
        }
        let is_ours = self.storage.put_entries(begun)?;
        for ((new, place), is_ours) in begun.iter().zip(places).zip(is_ours) {
            if let (false, Some(outcome)) = (is_ours, outcomes.get_mut(place)) {
                *outcome = self.there(new)?.unwrap_or(Put::WasThere);
            }
        }
        Ok(outcomes)
    }

    /// The outcome for a recording whose key has an entry, or is in a pack.
    fn there(&self, new: &NewRecording) -> Result<Option<Put>> {
        if let Some(there) = self.packed_with_key(&self.living_packs()?, new.key())? {
            return Ok(Some(Put::beside(Some(there.hash()), new.hash())));
        }
        let entry = self.storage.entry(new.key())?;
        Ok(entry.map(|entry| Put::beside(entry.ok().and_then(|(_, there)| hash_of(&there)).as_deref(), new.hash())))
    }

    /// Whether a recording would only take its own place, with the same entry: a file that cannot be read is tried at
    /// each run, and another process may have tried it, too.
    fn is_there_as_it_is(&self, new: &NewRecording) -> Result<bool> {
        if new.replaced.is_empty() || new.replaced.iter().any(|old| old != new.key()) {
            return Ok(false);
        }
        let Some(Ok((_, there))) = self.storage.entry(new.key())? else { return Ok(false) };
        let size = |file: &NewFile| Some((file.name.clone(), std::fs::metadata(&file.path).ok()?.len()));
        let files: Option<Vec<_>> = new.files().iter().map(size).collect();
        let is_same = read_small(new.entry()).is_ok_and(|own| own == there);
        Ok(is_same && files.is_some_and(|files| self.storage.has_files(&files)))
    }

    /// The entry of a recording, if it has one that can be read, and its files are there.
    pub fn entry_of(&self, key: &str, format: Format) -> Result<Option<(Entry, Vec<u8>)>> {
        staging::relative(key)?;
        let Some(Ok((_, text))) = self.storage.entry(key)? else { return Ok(None) };
        let Ok(entry) = Entry::parse(key, &text) else { return Ok(None) };
        let tables = entry.tables.iter().filter(|table| table.rows > 0);
        let files: Vec<_> = tables.map(|table| (paths::file(&table.name, key, format), table.bytes)).collect();
        Ok(self.storage.has_files(&files).then_some((entry, text)))
    }

    /// Which of these tables have a file without rows.
    pub fn has_empty(&self, tables: &[&str], format: Format) -> Result<Vec<bool>> {
        let name = |table: &&str| paths::file(table, paths::NO_RECORDING, format);
        self.storage.has(&tables.iter().map(name).collect::<Vec<_>>())
    }

    /// Takes the files of tables without rows into the dataset, one for each table that `part` has. They replace those
    /// of an earlier run.
    pub fn put_empty(&self, part: DatasetWriter) -> Result<()> {
        let finished = part.finished()?;
        let files = finished.files.into_iter().map(|file| NewFile::part(file, paths::NO_RECORDING, 0));
        self.storage.put_empty(&files.collect::<Vec<_>>())
    }

    /// The packs that recordings are in; without the recordings that are in no pack.
    pub fn packs_of<'k>(&self, keys: &'k [String]) -> Result<BTreeMap<&'k str, String>> {
        let living = if keys.is_empty() { Vec::new() } else { self.living_packs()? };
        let packed = keys.iter().filter_map(|key| {
            let tag = tag_of(key.as_bytes());
            let pack = living.iter().find(|head| head.index.has_key_with(&tag))?;
            Some((key.as_str(), pack.pack.clone()))
        });
        Ok(packed.collect())
    }

    fn living_packs(&self) -> Result<Vec<Arc<PackHead>>> {
        let (heads, _) = self.heads_of(&self.storage.packs()?)?;
        Ok(living(heads, |head| (&head.pack, &head.replaces)))
    }

    /// Puts a pack into the place of recordings and packs, if these are still there as they were: `entries` are the
    /// tags of the entries that recordings of it have. Nothing is changed if not.
    pub fn put_pack(&self, pack: &Pack, entries: &[(String, String)], files: &[NewFile]) -> Result<bool> {
        self.storage.prepare_pack(pack, files)?;
        let _turn = self.storage.turn_for(&[])?;
        self.storage.settle(GRACE)?;
        let there = self.storage.packs()?;
        if !pack.replaces.iter().all(|name| there.contains(name)) {
            return Ok(false);
        }
        for (key, tag) in entries {
            if !matches!(self.storage.entry(key)?, Some(Ok((own, _))) if own == *tag) {
                return Ok(false);
            }
        }
        self.storage.put_pack(pack, files).map(|()| true)
    }

    /// Waits until the files of all packs are in their places. A rewrite of packs calls this before it reads them, so
    /// that no other program moves a file while it is opened.
    pub(crate) fn settled(&self) -> Result<()> {
        let _turn = self.storage.turn_for(&[])?;
        self.storage.settle(GRACE)
    }

    /// Adds a pack if the dataset has none of its recordings. Otherwise it changes nothing, and returns the keys of
    /// those that it has, each with the hash of the file that it was made of.
    pub fn add_pack(&self, pack: &Pack, files: &[NewFile]) -> Result<HashMap<String, Option<String>>> {
        self.storage.prepare_pack(pack, files)?;
        let _turn = self.storage.turn_for(&[])?;
        self.storage.settle(GRACE)?;
        let living = self.living_packs()?;
        let entries: Vec<String> = pack.members.iter().map(|member| paths::entry(member.key())).collect();
        let mut found = HashMap::new();
        for (member, has_entry) in pack.members.iter().zip(self.storage.has(&entries)?) {
            if let Some(packed) = self.packed_with_key(&living, member.key())? {
                found.insert(packed.trace_id.clone(), Some(packed.hash().to_owned()));
            } else if has_entry && let Some(entry) = self.storage.entry(member.key())? {
                found.insert(member.key().to_owned(), entry.ok().and_then(|(_, text)| hash_of(&text)));
            }
        }
        if found.is_empty() {
            self.storage.put_pack(pack, files)?;
        }
        Ok(found)
    }

    /// Removes a pack with all its recordings. Returns whether it was there.
    pub fn remove_pack(&self, name: &str) -> Result<bool> {
        let _turn = self.storage.turn_for(&[])?;
        self.storage.settle(GRACE)?;
        self.storage.take_pack_away(name)
    }

    /// Removes a recording that has an entry of its own. Returns whether it was there.
    pub fn remove(&self, key: &str) -> Result<bool> {
        let _turn = self.storage.turn_for(&[])?;
        self.take_away(key)
    }

    /// Removes all tables of a recording but those that `keeps` is true of. It is as if it had been converted with
    /// these alone. Returns the bytes of the files that are gone; nothing if the recording is not there, or its entry
    /// is damaged.
    pub fn shrink(&self, key: &str, keeps: impl Fn(&str) -> bool) -> Result<Option<u64>> {
        staging::relative(key)?;
        let _turn = self.storage.turn_for(&[])?;
        let Some(Ok((_, text))) = self.storage.entry(key)? else { return Ok(None) };
        let Ok(mut entry) = Entry::parse(key, &text) else { return Ok(None) };
        let (kept, gone): (Vec<_>, Vec<_>) = entry.tables.into_iter().partition(|table| keeps(&table.name));
        if gone.is_empty() {
            return Ok(Some(0));
        }
        entry.recorded.options.get_or_insert_default().tables = kept.iter().map(|table| table.name.clone()).collect();
        entry.tables = kept;
        let names: Vec<String> = gone.iter().map(|table| table.name.clone()).collect();
        self.storage.shrink(key, &entry.text(), &names)?;
        Ok(Some(gone.iter().fold(0, |sum, table| sum.saturating_add(table.bytes))))
    }

    /// Bytes of the files of the tables of a recording but those that `keeps` is true of; nothing if it is not there,
    /// or its entry is damaged.
    pub fn bytes_of(&self, key: &str, keeps: impl Fn(&str) -> bool) -> Result<Option<u64>> {
        let Some(Ok((_, text))) = self.storage.entry(key)? else { return Ok(None) };
        let entry = Entry::parse(key, &text).ok();
        let sum = |entry: Entry| {
            entry
                .tables
                .iter()
                .filter(|table| !keeps(&table.name))
                .fold(0u64, |sum, table| sum.saturating_add(table.bytes))
        };
        Ok(entry.map(sum))
    }

    /// Gives a recording other labels. `change` gets those that it has. `write` gets the entry with the new ones, and
    /// writes their table. Returns whether they are others than before; nothing if the recording is not there, or its
    /// entry is damaged. One that is still written is an error.
    pub fn relabel(
        &self,
        key: &str,
        change: impl Fn(&mut Labels),
        write: impl Fn(&Entry) -> Result<DatasetWriter>,
    ) -> Result<Option<bool>> {
        staging::relative(key)?;
        for attempt in 1..=ATTEMPTS {
            let turn = self.storage.turn_for(&[])?;
            let Some(Ok((_, before))) = self.storage.entry(key)? else { return Ok(None) };
            let Ok(mut entry) = Entry::parse(key, &before) else { return Ok(None) };
            if entry.recorded.status == Status::Unfinished {
                let message = format!("{key} is still written: give it labels when it has ended");
                return Err(Error::Usage(message));
            }
            let mut labels = entry.recorded.labels.clone();
            change(&mut labels);
            let is_other = labels != entry.recorded.labels;
            entry.recorded.labels = labels;
            let (mut file, mut _staging) = (None, None);
            let mut table = TableInfo::new(paths::LABELS, 0, 0);
            if !entry.recorded.labels.is_empty() {
                let Finished { staging, files, .. } = write(&entry)?.finished()?;
                file = files.into_iter().find(|file| file.table == paths::LABELS);
                let Some(found) = &file else {
                    return Err(Error::Internal("labels without a file".into()));
                };
                let bytes = std::fs::metadata(&found.path).map_err(Error::io(&found.path))?.len();
                table = TableInfo::new(paths::LABELS, entry.recorded.labels.len() as u64, bytes);
                _staging = Some(staging);
            }
            match entry.tables.iter_mut().find(|table| table.name == paths::LABELS) {
                Some(known) => *known = table,
                None => entry.tables.push(table),
            }
            let file = file.map(|file| NewFile::part(file, key, 0));
            if self.storage.relabel(key, &before, &entry.text(), file.as_ref())? {
                return Ok(Some(is_other));
            }
            drop(turn);
            std::thread::sleep(Duration::from_millis(u64::from(attempt) * 20));
        }
        let message = format!("other writers keep changing the entry of {key}");
        Err(Error::Io { path: self.storage.shown(), source: std::io::Error::other(message) })
    }

    fn take_away(&self, key: &str) -> Result<bool> {
        staging::relative(key)?;
        self.storage.take_away(key)
    }

    /// Names of files of one of the recordings that have some; of `tables` without rows, if there is no such recording.
    pub fn some_files(&self, tables: &[&str]) -> Result<Vec<String>> {
        let of_formats = |table: &str, key: &str| Format::ALL.map(|format| paths::file(table, key, format));
        let those_there = |names: Vec<String>| -> Result<Vec<String>> {
            let there = self.storage.has(&names)?;
            Ok(names.into_iter().zip(there).filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect())
        };
        for Listed { key, .. } in self.storage.list()? {
            let Some(Ok((_, text))) = self.storage.entry(&key)? else { continue };
            let Ok(entry) = Entry::parse(&key, &text) else { continue };
            let tables = entry.tables.iter().filter(|table| table.bytes > 0);
            let found = those_there(tables.flat_map(|table| of_formats(&table.name, &key)).collect())?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        for name in self.storage.packs()? {
            let Some(Ok(pack)) = self.pack(&name)? else { continue };
            let found = those_there(pack.tables.iter().flat_map(|table| of_formats(&table.name, &name)).collect())?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        those_there(tables.iter().flat_map(|table| of_formats(table, paths::NO_RECORDING)).collect())
    }
}

#[cfg(test)]
mod tests;
