//! The entry of a pack, `manifest/packed/<name>.json`: recordings whose tables lie together in files, after a
//! compaction.
//!
//! A pack never changes. Its name is a hash of what it says, so that another one has another name, and `replaces` lists
//! those whose place it takes. It stands for the entries of its recordings: where one of them has an entry of its own,
//! that is left over.
//!
//! The file is one object of JSON. Its first line, the [`PackHead`], has all but the recordings, and tags by which one
//! is looked for: who adds a recording reads these lines alone. Then each recording has a line of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::entry::{DamagedEntry, MOST_ENTRY_BYTES, Recorded, Status};
use super::pack_head::{Index, PackHead, PackedTable, head_and_body};
use super::paths;
use super::tag::tag_of;

/// A recording of a pack: its whole entry ([`Recorded`]), or less.
pub trait OfPack: DeserializeOwned {
    /// The key.
    fn key(&self) -> &str;

    /// The fault of a recording of a pack whose tables are of this version.
    fn wrong_in_pack(&self, schema_version: u32) -> Option<&'static str>;

    /// The index of a pack with these recordings, if enough of them is known.
    fn index(_members: &[Member<Self>]) -> Option<Index> {
        None
    }
}

/// A recording of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<R = Recorded> {
    /// The entry of the recording.
    pub recorded: R,
    /// The tables that it has, with rows or without, by their places among those of the pack. Most recordings have the
    /// same ones.
    pub tables: Arc<[u32]>,
    /// Places of the files of which it has rows, and how many, in the order of the places.
    pub rows: Vec<(u32, u64)>,
}

impl<R: OfPack> Member<R> {
    /// The key.
    pub fn key(&self) -> &str {
        self.recorded.key()
    }
}

/// Recordings whose tables lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack<R = Recorded> {
    /// The name, made of the content.
    pub name: String,
    /// The version of the tables.
    pub schema_version: u32,
    /// The packs whose place it has taken.
    pub replaces: Vec<String>,
    /// The tables, in the order of their names.
    pub tables: Vec<PackedTable>,
    /// The recordings, in the order of their keys. In each table, the rows of one follow those of the one before.
    pub members: Vec<Member<R>>,
}

/// A recording as it is written: what its entry said, the place of its set of tables, and places of tables and rows in
/// turn.
type Written<R> = (R, u32, Vec<u64>);

impl Pack {
    /// A pack of these recordings, which are in the order of their keys. Its name follows from the rest.
    pub fn new(schema_version: u32, replaces: Vec<String>, tables: Vec<PackedTable>, members: Vec<Member>) -> Pack {
        let mut pack = Pack { name: String::new(), schema_version, replaces, tables, members };
        pack.name = paths::pack(&tag_of(&pack.text()));
        pack
    }

    /// The text of the entry.
    pub fn text(&self) -> Vec<u8> {
        let mut places: BTreeMap<&[u32], u32> = BTreeMap::new();
        let mut sets: Vec<&[u32]> = Vec::new();
        let mut lines = Vec::new();
        for member in &self.members {
            let next = u32::try_from(sets.len()).unwrap_or(u32::MAX);
            let set = *places.entry(&member.tables).or_insert_with(|| {
                sets.push(&member.tables);
                next
            });
            let rows = member.rows.iter().flat_map(|(table, rows)| [u64::from(*table), *rows]).collect();
            let written: Written<&Recorded> = (&member.recorded, set, rows);
            lines.extend_from_slice(if lines.is_empty() { b"\n" } else { b",\n" });
            lines.extend(serde_json::to_vec(&written).unwrap_or_default());
        }
        let head = PackHead {
            pack: self.name.clone(),
            schema_version: self.schema_version,
            replaces: self.replaces.clone(),
            tables: self.tables.clone(),
            sets: sets.into_iter().map(Vec::from).collect(),
            index: Index::of(self.members.iter().map(|member| &member.recorded)),
        };
        [head.line(), lines, b"\n]}\n".to_vec()].concat()
    }
}

impl<R: OfPack> Pack<R> {
    /// Reads the entry of the pack `name`. Files are found and removed by the names in it, so none may lead anywhere
    /// else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Pack<R>, DamagedEntry> {
        #[derive(Deserialize)]
        #[serde(bound = "R: OfPack")]
        struct Body<R> {
            recordings: Vec<Written<R>>,
        }
        let wrong = |what: String| DamagedEntry::new(name, what);
        if bytes.len() as u64 > MOST_ENTRY_BYTES {
            return Err(DamagedEntry::too_large(name));
        }
        let PackHead { pack, schema_version, replaces, tables, sets, index } = PackHead::parse(name, bytes)?;
        let Body::<R> { recordings } = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        if recordings.len() != index.recordings {
            return Err(wrong("its index is of other recordings".into()));
        }
        let count = tables.len();
        let sets: Vec<Arc<[u32]>> = sets.into_iter().map(Arc::from).collect();
        let mut sums = vec![0u64; count];
        let mut members = Vec::with_capacity(recordings.len());
        for (recorded, set, flat) in recordings {
            let of_key = |what: &str| wrong(format!("{}: {what}", recorded.key()));
            let of_set = usize::try_from(set).ok().and_then(|set| sets.get(set)).ok_or_else(|| of_key("no tables"))?;
            let mut rows = Vec::with_capacity(flat.len() / 2);
            for pair in flat.chunks(2) {
                let &[table, count] = pair else { return Err(of_key("a table without its rows")) };
                let place = u32::try_from(table).ok().filter(|place| of_set.binary_search(place).is_ok());
                let place = place.ok_or_else(|| of_key("rows of a table that it does not have"))?;
                let sum = usize::try_from(place).ok().and_then(|place| sums.get_mut(place));
                let sum = sum.ok_or_else(|| of_key("rows of a table that is not there"))?;
                *sum = sum.checked_add(count).ok_or_else(|| of_key("too many rows"))?;
                rows.push((place, count));
            }
            if !rows.is_sorted_by(|(a, _), (b, _)| a < b) || rows.iter().any(|(_, count)| *count == 0) {
                return Err(of_key("its tables are not in order, or have no rows"));
            }
            if let Some(what) = recorded.wrong_in_pack(schema_version) {
                return Err(of_key(what));
            }
            members.push(Member { tables: of_set.clone(), rows, recorded });
        }
        if !members.is_sorted_by(|a, b| a.key() < b.key()) {
            return Err(wrong("its recordings are not in the order of their keys".into()));
        }
        if R::index(&members).is_some_and(|own| own != index) {
            return Err(wrong("its index is of other recordings".into()));
        }
        if let Some((table, _)) = tables.iter().zip(&sums).find(|(table, sum)| table.rows() != **sum) {
            return Err(wrong(format!("{}: its files have other rows than its recordings", table.name)));
        }
        Ok(Pack { name: pack, schema_version, replaces, tables, members })
    }

    /// The recording with a key, and its place.
    pub fn member(&self, key: &str) -> Option<(usize, &Member<R>)> {
        let place = self.members.binary_search_by(|member| member.key().cmp(key)).ok()?;
        Some((place, self.members.get(place)?))
    }

    /// The table at a place.
    pub fn table(&self, place: u32) -> Option<&PackedTable> {
        self.tables.get(usize::try_from(place).ok()?)
    }

    /// The part of a recording in the bytes of the tables that are chosen by their names: by its rows, since the bytes
    /// of one recording in a file of many are not counted.
    pub fn share(&self, member: &Member<R>, chosen: impl Fn(&str) -> bool) -> u64 {
        let of = |(place, rows): &(u32, u64)| {
            let table = self.table(*place).filter(|table| chosen(&table.name))?;
            let share = u128::from(table.bytes()) * u128::from(*rows) / u128::from(table.rows().max(1));
            u64::try_from(share).ok()
        };
        member.rows.iter().filter_map(of).fold(0, u64::saturating_add)
    }
}

/// Reads a recording of the pack `name` in the bytes of its entry, without reading the others: the one whose line has
/// `text`, such as its hash, and of which `is_it` is true.
pub fn recorded_with(name: &str, bytes: &[u8], text: &str, is_it: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
    let head = PackHead::parse(name, bytes).ok()?;
    let body = std::str::from_utf8(head_and_body(bytes)?.1).ok()?;
    let lines = body.match_indices(text).filter_map(|(place, _)| {
        let begin = body.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
        let line = body.get(begin..)?.lines().next()?;
        serde_json::from_str::<Written<Recorded>>(line.trim_end_matches(',')).ok()
    });
    lines.map(|(recorded, ..)| recorded).find(|one| one.wrong_in_pack(head.schema_version).is_none() && is_it(one))
}

impl OfPack for Recorded {
    fn key(&self) -> &str {
        &self.trace_id
    }

    fn wrong_in_pack(&self, schema_version: u32) -> Option<&'static str> {
        if !self.has_plain_names() {
            return Some("invalid key or hash");
        }
        if self.schema_version != Some(schema_version) {
            return Some("it has another schema_version");
        }
        if matches!(self.status, Status::Failed | Status::Unfinished) {
            return Some("it is not a whole recording");
        }
        self.lacks()
    }

    fn index(members: &[Member]) -> Option<Index> {
        Some(Index::of(members.iter().map(|member| &member.recorded)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pack_head::PackedFile;
    use super::*;

    fn recorded(key: &str) -> Recorded {
        Recorded {
            trace_id: key.to_owned(),
            sha256: format!("hash of {key}"),
            path: format!("{key}.nettrace"),
            events: Some(1),
            dropped_events: Some(0),
            complete: Some(true),
            schema_version: Some(7),
            ..Recorded::default()
        }
    }

    fn pack() -> Pack {
        let file = |rows, bytes| PackedFile { rows, bytes };
        let tables = vec![
            PackedTable { name: "event/P/E".into(), files: vec![file(5, 50)] },
            PackedTable { name: "gc".into(), files: vec![file(3, 100), file(1, 20)] },
            PackedTable { name: "gc_pause".into(), files: Vec::new() },
        ];
        let member = |key: &str, tables: &[u32], rows: &[(u32, u64)]| Member {
            recorded: recorded(key),
            tables: tables.into(),
            rows: rows.to_vec(),
        };
        let members = vec![
            member("a-1", &[0, 1, 2], &[(0, 5), (1, 3)]),
            member("b-1", &[1, 2], &[(1, 1)]),
            member("c-1", &[1, 2], &[]),
        ];
        Pack::new(7, vec!["packed.0123456789abcdef".into()], tables, members)
    }

    #[test]
    fn what_is_written_is_read() {
        let pack = pack();
        assert!(paths::is_pack(&pack.name), "{}", pack.name);
        let text = pack.text();
        assert_eq!(Pack::<Recorded>::parse(&pack.name, &text).unwrap(), pack);
        assert_eq!(pack.member("b-1").unwrap().0, 1);
        assert!(pack.member("b").is_none());
        assert_eq!(pack.share(&pack.members[0], |name| name == "gc"), 90);
        assert_eq!(pack.share(&pack.members[0], |_| true), 140);
        for size in 0..text.len() - 1 {
            assert!(Pack::<Recorded>::parse(&pack.name, &text[..size]).is_err(), "{size}");
        }
    }

    #[test]
    fn an_entry_that_names_other_places_or_rows_is_damaged() {
        let pack = pack();
        let text = String::from_utf8(pack.text()).unwrap();
        for (from, to) in [
            ("\"gc\"", "\"../gc\""),
            ("\"gc\"", "\"zz\""),
            ("\"a-1\"", "\"../a\""),
            ("\"a-1\"", "\"d-1\""),
            ("packed.0123456789abcdef", "../x"),
            ("\"rows\":5", "\"rows\":6"),
            ("[0,5,1,3]", "[0,5,1]"),
            ("[0,5,1,3]", "[0,5,9,3]"),
            ("[0,5,1,3]", "[1,3,0,5]"),
            ("[0,5,1,3]", "[0,18446744073709551615,0,6]"),
            ("[0,1,2]", "[0,1,7]"),
            ("\"status\":\"ok\"", "\"status\":\"failed\""),
            ("\"schema_version\":7,\"replaces\"", "\"schema_version\":8,\"replaces\""),
            ("\"complete\":true", "\"complete\":null"),
            (&pack.name, "packed.fedcba9876543210"),
        ] {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text, "{from}");
            assert!(Pack::<Recorded>::parse(&pack.name, other.as_bytes()).is_err(), "{from} {to}");
        }
    }
}
