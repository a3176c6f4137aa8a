//! The first line of the entry of a pack: its tables, and tags of its recordings, without what is said of each.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::entry::{DamagedEntry, MOST_ENTRY_BYTES, Recorded};
use super::paths;
use super::tag::{DIGITS, tag_of};

/// The end of the first line. The recordings follow, and [`END`].
const RECORDINGS: &[u8] = b",\"recordings\":[";
/// The end of the entry.
const END: &[u8] = b"]}";

/// A file of a table of a pack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A table of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedTable {
    /// The name of the table.
    pub name: String,
    /// The files, `part-0` first. Empty if no recording has rows of it.
    pub files: Vec<PackedFile>,
}

impl PackedTable {
    /// Rows of all its files.
    pub fn rows(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.rows))
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// All that a pack says but for its recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackHead {
    /// The name, made of the content.
    pub pack: String,
    /// The version of the tables.
    pub schema_version: u32,
    /// The packs whose place it has taken.
    pub replaces: Vec<String>,
    /// The tables, in the order of their names.
    pub tables: Vec<PackedTable>,
    /// Sets of tables, by their places, which recordings have.
    pub(super) sets: Vec<Vec<u32>>,
    /// By this a recording is found.
    pub index: Index,
}

/// Which recordings a pack has, so that one is looked for without reading what is said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The number of recordings.
    pub recordings: usize,
    /// The version of tracequet that wrote the tables of the first one.
    pub version: String,
    /// When the first one began, and when the last one did; nothing if that is not known of one.
    pub begin: Option<(String, String)>,
    /// Whether one of them was read from an object with an entity tag.
    pub has_etags: bool,
    /// The tags of their keys in order, one behind the other.
    keys: String,
    /// The first digits of their hashes, likewise. Those without a hash have none.
    hashes: String,
    /// Whether all hashes are BLAKE3. Those of earlier versions are SHA-256.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blake3: bool,
}

impl Index {
    /// That of these recordings.
    pub(super) fn of<'r>(all: impl Iterator<Item = &'r Recorded> + Clone) -> Index {
        let sorted = |mut tags: Vec<String>| {
            tags.sort_unstable();
            tags.concat()
        };
        let begins: Option<Vec<&String>> = all.clone().map(|one| one.start.as_ref()).collect();
        let begin = begins.and_then(|all| {
            let (first, last) = (all.iter().min()?, all.iter().max()?);
            Some(((*first).clone(), (*last).clone()))
        });
        Index {
            recordings: all.clone().count(),
            version: all.clone().next().map(|one| one.version.clone()).unwrap_or_default(),
            begin,
            has_etags: all.clone().any(|one| one.etag.is_some()),
            blake3: all.clone().all(|one| one.sha256.is_empty() || !one.blake3.is_empty()),
            keys: sorted(all.clone().map(|one| tag_of(one.trace_id.as_bytes())).collect()),
            hashes: sorted(all.filter(|one| !one.hash().is_empty()).map(|one| hash_tag(one.hash())).collect()),
        }
    }

    /// Whether it has a recording with this key.
    pub fn has_key(&self, key: &str) -> bool {
        self.has_key_with(&tag_of(key.as_bytes()))
    }

    /// Whether it has a recording whose key has this tag.
    pub fn has_key_with(&self, tag: &str) -> bool {
        has(&self.keys, tag)
    }

    /// Whether it has a recording whose hash begins like this one.
    pub fn has_hash(&self, hash: &str) -> bool {
        !hash.is_empty() && has(&self.hashes, &hash_tag(hash))
    }

    /// Whether the SHA-256 of one of them is the only hash that is known.
    pub fn is_known_by_sha256(&self) -> bool {
        !self.blake3 && !self.hashes.is_empty()
    }

    fn is_good(&self) -> bool {
        let is_good = |tags: &str| {
            tags.len().is_multiple_of(DIGITS)
                && tags.bytes().all(|byte| byte.is_ascii_hexdigit())
                && tags.as_bytes().chunks(DIGITS).is_sorted()
        };
        let keys = self.recordings.checked_mul(DIGITS);
        keys == Some(self.keys.len())
            && self.hashes.len() <= self.keys.len()
            && is_good(&self.keys)
            && is_good(&self.hashes)
    }
}

/// The tag of a hash: its first digits. A text that is not hexadecimal has the tag of its bytes.
fn hash_tag(hash: &str) -> String {
    match hash.get(..DIGITS).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        Some(digits) => digits.to_owned(),
        None => tag_of(hash.as_bytes()),
    }
}

/// Whether a tag is among sorted ones.
fn has(tags: &str, tag: &str) -> bool {
    let (tags, _) = tags.as_bytes().as_chunks::<DIGITS>();
    tags.binary_search_by(|one| one.as_slice().cmp(tag.as_bytes())).is_ok()
}

impl PackHead {
    /// The line of the pack, without the end of line.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        // Without the brace at its end.
        line.pop();
        line.extend_from_slice(RECORDINGS);
        line
    }

    /// Reads the head of the pack `name`: of its entry, or of as many of its first bytes as there are in the first
    /// line. Files are found and removed by the names in it, so none may lead anywhere else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<PackHead, DamagedEntry> {
        let wrong = |what: &str| DamagedEntry::new(name, what);
        let (line, _) = head_and_body(bytes).ok_or_else(|| wrong("its first line is not the head of a pack"))?;
        if line.len() as u64 > MOST_ENTRY_BYTES {
            return Err(DamagedEntry::too_large(name));
        }
        let head: PackHead =
            serde_json::from_slice(&[line, END].concat()).map_err(|e| DamagedEntry::new(name, e.to_string()))?;
        if head.pack != name || !paths::is_pack(name) || !head.replaces.iter().all(|one| paths::is_pack(one)) {
            let what = format!("it says that it is {:?}, or replaces something else than packs", head.pack);
            return Err(DamagedEntry::new(name, what));
        }
        if !head.tables.is_sorted_by(|a, b| a.name < b.name) {
            return Err(wrong("its tables are not in the order of their names"));
        }
        if let Some(table) = head.tables.iter().find(|table| !paths::is_table(&table.name)) {
            return Err(DamagedEntry::new(name, format!("{:?} is not the name of a table", table.name)));
        }
        let count = head.tables.len();
        let is_set = |set: &Vec<u32>| {
            set.is_sorted_by(|a, b| a < b)
                && set.last().is_none_or(|last| usize::try_from(*last).is_ok_and(|l| l < count))
        };
        if !head.sets.iter().all(is_set) {
            return Err(wrong("a recording has a table that is not there"));
        }
        if !head.index.is_good() {
            return Err(wrong("its index is no list of tags"));
        }
        Ok(head)
    }

    /// Files of its tables, and their bytes.
    pub fn files(&self) -> (u64, u64) {
        let files = self.tables.iter().flat_map(|table| &table.files);
        files.fold((0, 0), |(count, bytes), file: &PackedFile| (count + 1, bytes.saturating_add(file.bytes)))
    }
}

/// The first line of an entry, and what is behind it. Nothing if the line has no end, or another one.
pub(super) fn head_and_body(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, body) = bytes.split_at_checked(end)?;
    line.ends_with(RECORDINGS).then_some((line, body))
}

/// Of packs, those that no other one has replaced.
pub fn living<P>(packs: Vec<P>, head: impl Fn(&P) -> (&str, &[String])) -> Vec<P> {
    let gone: HashSet<String> = packs.iter().flat_map(|pack| head(pack).1.iter().cloned()).collect();
    packs.into_iter().filter(|pack| !gone.contains(head(pack).0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(key: &str, sha256: &str, start: Option<&str>) -> Recorded {
        Recorded {
            trace_id: key.to_owned(),
            sha256: sha256.to_owned(),
            start: start.map(str::to_owned),
            ..Recorded::default()
        }
    }

    fn head(replaces: &[&str]) -> PackHead {
        let all = [
            recorded("b-1", "00112233445566778899aabbccddeeff", Some("2026-03-02")),
            recorded("a-1", "", Some("2026-03-01")),
            recorded("c-1", "no hash", Some("2026-03-04")),
        ];
        PackHead {
            pack: "packed.0123456789abcdef".into(),
            schema_version: 7,
            replaces: replaces.iter().map(|name| (*name).to_owned()).collect(),
            tables: Vec::new(),
            sets: Vec::new(),
            index: Index::of(all.iter()),
        }
    }

    #[test]
    fn recordings_are_found_by_the_first_line() {
        let head = head(&[]);
        let line = [head.line(), b"\nwhatever follows".to_vec()].concat();
        let read = PackHead::parse(&head.pack, &line).unwrap();
        assert_eq!(read, head);
        let keys = ["a-1", "b-1", "c-1", "d-1", ""].map(|key| read.index.has_key(key));
        assert_eq!(keys, [true, true, true, false, false]);
        let hashes = ["0011223344556677ff", "no hash", "0011223344556678ff", "", "other"];
        assert_eq!(hashes.map(|hash| read.index.has_hash(hash)), [true, true, false, false, false]);
        assert_eq!(read.index.begin, Some(("2026-03-01".into(), "2026-03-04".into())));
        assert_eq!(Index::of([recorded("a", "", None)].iter()).begin, None);
        for size in 0..line.len() - "whatever follows".len() {
            assert!(PackHead::parse(&head.pack, &line[..size]).is_err(), "{size}");
        }
    }

    #[test]
    fn an_index_that_is_no_list_of_tags_is_damaged() {
        let head = head(&[]);
        let text = String::from_utf8(head.line()).unwrap() + "\n";
        let (keys, first) = (head.index.keys.clone(), &head.index.keys[..DIGITS]);
        let swapped = format!("{}{}", &keys[DIGITS..], first);
        for (from, to) in [
            (keys.as_str(), swapped.as_str()),
            (first, "short"),
            (first, "not hexadecimal!"),
            ("\"recordings\":3", "\"recordings\":4"),
        ] {
            let other = text.replacen(from, to, 1);
            assert!(other != text && PackHead::parse(&head.pack, other.as_bytes()).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn a_pack_that_was_replaced_is_gone() {
        let new = head(&["packed.1111111111111111"]);
        let old = PackHead { pack: "packed.1111111111111111".into(), ..head(&["packed.0000000000000000"]) };
        let older = PackHead { pack: "packed.0000000000000000".into(), ..head(&[]) };
        let left = living(vec![older, new.clone(), old], |one| (&one.pack, &one.replaces));
        assert_eq!(left, [new]);
    }
}
