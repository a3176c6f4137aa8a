//! The summary of the entries of a dataset of several recordings. `manifest.json` has it, so that a run that adds a
//! recording reads the entries that are new and not all of them.
//!
//! The lists of the file have a line for each item. A line of a recording is its entry without the tables, with a tag
//! that shows whether the entry is still the one that was summed up. Recordings of packs have no lines: a pack has one,
//! with their number. A file that this program would write in other words (an older version, another program) is no
//! error: then all entries are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracequet_trace::source::identifying;

use super::entry::{DamagedEntry, Entry, Recorded, Status, TableInfo};
use super::manifest::{Head, PackInfo, TOOL, VERSION};
use super::pack_head::PackHead;
use super::tag::tag_of;
use super::words::Layout;

/// Tables of a recording that are of another version than those of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// The key of the recording.
    pub key: String,
    /// The version of tracequet that wrote them.
    pub version: String,
    /// The version of the tables.
    pub schema_version: u32,
}

/// The entries of a dataset, summed up.
#[derive(Clone, Debug, Default)]
pub struct Summed {
    schema_version: u32,
    /// Recordings that are in no pack, in the order of their keys.
    recordings: Vec<Line>,
    /// Recordings that could not be read, too.
    failed: Vec<Line>,
    /// The packs, in the order of their names: all that there are. Those that others have replaced have no recordings.
    packs: Vec<PackInfo>,
    /// Packs that no other one has replaced.
    heads: Vec<Arc<PackHead>>,
    tables: BTreeMap<String, (u64, u64)>,
    damaged: Vec<DamagedEntry>,
    other_version: Option<OtherVersion>,
}

/// An entry but for its tables: an object of JSON in one line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it is: the manifest, or itself.
    source: Arc<str>,
    place: Range<usize>,
    /// Places of the key, the tag and the hash.
    parts: [Range<usize>; 3],
    is_known_by_sha256: bool,
}

/// A line as it is written.
#[derive(Serialize)]
struct Tagged<'l> {
    /// Identifies the entry.
    entry: &'l str,
    #[serde(flatten)]
    recorded: &'l Recorded,
}

/// Values of a line, where they lie in the text. JSON writes each of them in one way only.
#[derive(Deserialize)]
struct Parts<'l> {
    trace_id: &'l str,
    entry: &'l str,
    blake3: Option<&'l str>,
    sha256: Option<&'l str>,
}

/// The lists of a manifest of several recordings, as they lie in its text.
#[derive(Deserialize)]
struct Written<'m> {
    #[serde(borrow)]
    inputs: Vec<Parts<'m>>,
    #[serde(borrow)]
    failed: Vec<Parts<'m>>,
    #[serde(default)]
    packs: Vec<PackInfo>,
    tables: Vec<TableInfo>,
}

impl Summed {
    /// Of no entries yet. `schema_version` is that of the tables of this program.
    pub fn new(schema_version: u32) -> Summed {
        Summed { schema_version, ..Summed::default() }
    }

    /// The sum in a manifest. `None` if it is not as this version writes it, or was changed since.
    pub fn parse(manifest: &[u8], schema_version: u32) -> Option<Summed> {
        let source: Arc<str> = std::str::from_utf8(manifest).ok()?.into();
        let head: Head = serde_json::from_str(&source).ok()?;
        let is_ours = head.tool == TOOL && head.version == VERSION && head.layout == Layout::Hive;
        if !is_ours || head.schema_version != Some(schema_version) {
            return None;
        }
        let written: Written<'_> = serde_json::from_str(&source).ok()?;
        let lines = |parts: &[Parts<'_>]| parts.iter().map(|parts| Line::within(&source, parts)).collect::<Option<_>>();
        let mut summed = Summed::new(schema_version);
        summed.recordings = lines(&written.inputs)?;
        summed.failed = lines(&written.failed)?;
        let in_order = |lines: &[Line]| lines.is_sorted_by(|a, b| a.key() < b.key());
        if !in_order(&summed.recordings) || !in_order(&summed.failed) {
            return None;
        }
        summed.packs = written.packs;
        // Another spelling, or another hash of the whole: something else than tracequet changed the file.
        let text = summed.manifest(&head, &written.tables);
        summed.tables = written.tables.into_iter().map(|table| (table.name, (table.rows, table.bytes))).collect();
        (text == *source).then_some(summed)
    }

    /// Adds an entry that is not among them. `tag` is [`tag_of`] its bytes, or another identification of them.
    pub fn add(&mut self, key: &str, tag: &str, entry: &[u8]) {
        let added = Entry::parse(key, entry).and_then(|entry| self.try_to_add(tag, &entry));
        if let Err(damaged) = added {
            self.damaged.push(damaged);
        }
    }

    /// Says which packs there are, by their names in order, and adds the tables of those that no other one has
    /// replaced.
    pub fn add_packs(&mut self, names: &[String], living: Vec<Arc<PackHead>>) {
        let of = |name: &String| living.iter().find(|head| head.pack == *name);
        let info = |name: &String| PackInfo {
            name: name.clone(),
            recordings: of(name).map_or(0, |head| head.index.recordings),
        };
        self.packs = names.iter().map(info).collect();
        for table in living.iter().flat_map(|head| &head.tables) {
            self.add_table(&table.name, table.rows(), table.bytes());
        }
        self.set_heads(living);
    }

    /// Sets the packs that are summed up already.
    pub fn set_heads(&mut self, living: Vec<Arc<PackHead>>) {
        if let Some(head) = living.iter().find(|head| head.schema_version != self.schema_version) {
            self.note_version(&head.pack, &head.index.version, head.schema_version);
        }
        self.heads = living;
    }

    /// Whether these are the names of the packs that there were, in order.
    pub fn has_packs(&self, names: &[String]) -> bool {
        self.packs.iter().map(|pack| &pack.name).eq(names)
    }

    /// The packs that no other one has replaced.
    pub fn packs(&self) -> &[Arc<PackHead>] {
        &self.heads
    }

    /// The pack that has a recording with this key.
    pub fn pack_of(&self, key: &str) -> Option<&Arc<PackHead>> {
        self.heads.iter().find(|head| head.index.has_key(key))
    }

    /// Adds an entry that cannot be read.
    pub fn add_damaged(&mut self, damaged: DamagedEntry) {
        self.damaged.push(damaged);
    }

    /// The sum without entries that cannot be read.
    pub fn without_damaged(self) -> Summed {
        Summed { damaged: Vec::new(), ..self }
    }

    fn try_to_add(&mut self, tag: &str, entry: &Entry) -> Result<(), DamagedEntry> {
        let Entry { recorded, tables } = entry;
        let key = recorded.trace_id.as_str();
        let schema_version = recorded.schema_version.unwrap_or_default();
        // Tables of another version make the next run read this one again.
        let is_of_now = schema_version == self.schema_version;
        if !is_of_now {
            self.note_version(key, &recorded.version, schema_version);
        }
        let line = Line::new(if is_of_now { tag } else { "" }, recorded);
        let line = line.ok_or_else(|| DamagedEntry::new(key, "invalid key or hash"))?;
        let lines = if recorded.status == Status::Failed { &mut self.failed } else { &mut self.recordings };
        match lines.binary_search_by(|line| line.key().cmp(key)) {
            Ok(_) => return Err(DamagedEntry::new(key, "it is there twice")),
            Err(place) => lines.insert(place, line),
        }
        for table in tables {
            self.add_table(&table.name, table.rows, table.bytes);
        }
        Ok(())
    }

    fn add_table(&mut self, name: &str, more_rows: u64, more_bytes: u64) {
        let (rows, bytes) = self.tables.entry(name.to_owned()).or_default();
        *rows = rows.saturating_add(more_rows);
        *bytes = bytes.saturating_add(more_bytes);
    }

    fn note_version(&mut self, key: &str, version: &str, schema_version: u32) {
        self.other_version.get_or_insert_with(|| OtherVersion {
            key: key.to_owned(),
            version: version.to_owned(),
            schema_version,
        });
    }

    /// The number of recordings, without those whose entries are damaged.
    pub fn len(&self) -> usize {
        self.packs.iter().fold(self.recordings.len() + self.failed.len(), |sum, pack| sum + pack.recordings)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The recordings that are in no pack, in the order of their keys.
    pub fn recordings(&self) -> &[Line] {
        &self.recordings
    }

    /// The recordings that could not be read.
    pub fn failed(&self) -> &[Line] {
        &self.failed
    }

    /// The entries that are damaged. No manifest has them: they are read each time.
    pub fn damaged(&self) -> &[DamagedEntry] {
        &self.damaged
    }

    /// The first entry of another version of the tables.
    pub fn other_version(&self) -> Option<&OtherVersion> {
        self.other_version.as_ref()
    }

    /// The tables of all recordings, in the order of their names.
    pub fn tables(&self) -> impl Iterator<Item = TableInfo> {
        self.tables.iter().map(|(name, &(rows, bytes))| TableInfo::new(name, rows, bytes))
    }

    /// The text of the manifest. `tables` are those of the dataset, in the order in which they are written.
    pub fn manifest(&self, head: &Head, tables: &[TableInfo]) -> String {
        let lists = self.recordings.iter().chain(&self.failed).map(|line| line.text().len() + 6).sum::<usize>();
        let mut text = String::with_capacity(lists + (64 << 10));
        let head = serde_json::to_string_pretty(head).unwrap_or_default();
        text.push_str(head.trim_end_matches(['\n', '}']));
        list(&mut text, "inputs", self.recordings.iter().map(Line::text));
        list(&mut text, "failed", self.failed.iter().map(Line::text));
        if !self.packs.is_empty() {
            list(&mut text, "packs", self.packs.iter().map(|pack| serde_json::to_string(pack).unwrap_or_default()));
        }
        list(&mut text, "tables", tables.iter().map(|table| serde_json::to_string(table).unwrap_or_default()));
        let check = tag_of(text.as_bytes());
        text.push_str(&format!(",\n  \"check\": \"{check}\"\n}}\n"));
        text
    }
}

/// A list of objects at the end of an object, with a line for each.
fn list(text: &mut String, name: &str, items: impl Iterator<Item = impl AsRef<str>>) {
    text.push_str(&format!(",\n  \"{name}\": ["));
    let mut is_first = true;
    for item in items {
        text.push_str(if is_first { "\n    " } else { ",\n    " });
        text.push_str(item.as_ref());
        is_first = false;
    }
    text.push_str("\n  ]");
}

impl Line {
    /// Nothing if the key, the tag or the hash cannot be written as they are.
    fn new(tag: &str, recorded: &Recorded) -> Option<Line> {
        let text: Arc<str> = serde_json::to_string(&Tagged { entry: tag, recorded }).ok()?.into();
        let place = 0..text.len();
        Line::at(&text, place, &serde_json::from_str(&text).ok()?)
    }

    /// The line with these parts in a manifest.
    fn within(source: &Arc<str>, parts: &Parts<'_>) -> Option<Line> {
        let key = place_in(source, parts.trace_id)?;
        let begin = source.get(..key.start)?.rfind('\n')? + 1;
        let end = key.end + source.get(key.end..)?.find('\n')?;
        let line = source.get(begin..end)?;
        let (before, behind) = (line.len() - line.trim_start().len(), line.len() - line.trim_end_matches(',').len());
        Line::at(source, begin + before..end - behind, parts)
    }

    fn at(source: &Arc<str>, place: Range<usize>, parts: &Parts<'_>) -> Option<Line> {
        let of = |part| place_in(source, part);
        let hash = identifying(parts.blake3.unwrap_or_default(), parts.sha256.unwrap_or_default());
        let places = [of(parts.trace_id)?, of(parts.entry)?, if hash.is_empty() { 0..0 } else { of(hash)? }];
        let is_known_by_sha256 = !hash.is_empty() && parts.blake3.unwrap_or_default().is_empty();
        Some(Line { source: source.clone(), place, parts: places, is_known_by_sha256 })
    }

    /// The key of the recording.
    pub fn key(&self) -> &str {
        let [key, ..] = &self.parts;
        self.source.get(key.clone()).unwrap_or_default()
    }

    /// Identifies the entry that was summed up.
    pub fn tag(&self) -> &str {
        let [_, tag, _] = &self.parts;
        self.source.get(tag.clone()).unwrap_or_default()
    }

    /// The hash; empty if it is not known.
    pub fn hash(&self) -> &str {
        let [.., hash] = &self.parts;
        self.source.get(hash.clone()).unwrap_or_default()
    }

    /// Whether its SHA-256 is the only hash that is known: an earlier version wrote it.
    pub fn is_known_by_sha256(&self) -> bool {
        self.is_known_by_sha256
    }

    /// The object of JSON.
    pub fn text(&self) -> &str {
        self.source.get(self.place.clone()).unwrap_or_default()
    }

    /// The entry. The line was one, so that there is nothing in it that cannot be read.
    pub fn recorded(&self) -> Option<Recorded> {
        serde_json::from_str(self.text()).ok()
    }
}

/// Where a part of a text lies in it.
fn place_in(source: &str, part: &str) -> Option<Range<usize>> {
    let begin = part.as_ptr().addr().checked_sub(source.as_ptr().addr())?;
    let place = begin..begin.checked_add(part.len())?;
    (place.end <= source.len()).then_some(place)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tag::DIGITS;
    use super::super::words::{AddressType, Format};
    use super::*;

    fn entry(key: &str, status: &str, rows: u64) -> Vec<u8> {
        let is_failed = status == "failed";
        let recorded = Recorded {
            trace_id: key.to_owned(),
            sha256: format!("hash of {key}"),
            path: "a, \"b\"\n{".to_owned(),
            status: serde_json::from_value(status.into()).unwrap(),
            events: (!is_failed).then_some(1),
            dropped_events: (!is_failed).then_some(0),
            complete: (!is_failed).then_some(true),
            error: is_failed.then(|| "torn".to_owned()),
            schema_version: Some(7),
            ..Recorded::default()
        };
        Entry { recorded, tables: vec![TableInfo::new("gc", rows, 10)] }.text()
    }

    fn text(summed: &Summed) -> String {
        let head = Head::of_now(7, Layout::Hive, Format::Parquet, AddressType::Uint64);
        summed.manifest(&head, &summed.tables().collect::<Vec<_>>())
    }

    fn of(entries: &[(&str, &str)]) -> Summed {
        let mut summed = Summed::new(7);
        for (key, status) in entries {
            let entry = entry(key, status, 3);
            summed.add(key, &tag_of(&entry), &entry);
        }
        assert!(summed.damaged().is_empty(), "{:?}", summed.damaged());
        summed
    }

    #[test]
    fn what_is_added_to_a_manifest_gives_that_of_all() {
        let all = of(&[("a", "ok"), ("b", "failed"), ("c", "losses")]);
        for less in [&[][..], &[("c", "losses")], &[("b", "failed"), ("a", "ok")]] {
            let mut summed = Summed::parse(text(&of(less)).as_bytes(), 7).unwrap();
            for (key, status) in [("c", "losses"), ("a", "ok"), ("b", "failed")] {
                if !summed.recordings().iter().chain(summed.failed()).any(|line| line.key() == key) {
                    let entry = entry(key, status, 3);
                    summed.add(key, &tag_of(&entry), &entry);
                }
            }
            assert_eq!(text(&summed), text(&all), "{less:?}");
        }
        let json: Value = serde_json::from_str(&text(&all)).unwrap();
        assert_eq!((&json["inputs"][1]["trace_id"], &json["failed"][0]["path"]), (&"c".into(), &"a, \"b\"\n{".into()));
        assert_eq!(json["tables"], serde_json::json!([{ "name": "gc", "rows": 9, "bytes": 30 }]));
        assert_eq!((all.recordings()[1].hash(), all.failed()[0].tag().len()), ("hash of c", DIGITS));
    }

    /// One that was changed, or that another version wrote, is not gone by.
    #[test]
    fn another_text_is_no_sum() {
        let text = text(&of(&[("a", "ok"), ("b", "failed")]));
        assert!(Summed::parse(text.as_bytes(), 7).is_some());
        assert!(Summed::parse(text.as_bytes(), 8).is_none(), "other tables");
        for (from, to) in [("\"rows\":6", "\"rows\":7"), ("tracequet", "Tracequet"), ("\"a\"", "\"aa\""), ("}\n", "}")]
        {
            let other = text.replacen(from, to, 1);
            assert!(other != text && Summed::parse(other.as_bytes(), 7).is_none(), "{from}");
        }
        for size in 0..text.len() {
            assert!(Summed::parse(&text.as_bytes()[..size], 7).is_none(), "{size}");
        }
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        assert!(Summed::parse(pretty.as_bytes(), 7).is_none());
    }

    #[test]
    fn an_entry_that_is_none_costs_itself() {
        let mut summed = of(&[("a", "ok")]);
        let good = entry("b", "ok", 1);
        for (key, bytes) in [
            ("b", &b"{"[..]),
            ("c", &good),
            ("d", b"{\"trace_id\":\"d\",\"schema_version\":7}"),
            ("e", b"{\"trace_id\":\"e\",\"tables\":[]}"),
            ("f", b"[]"),
            ("g", String::from_utf8(entry("g", "ok", 1)).unwrap().replace("\"gc\"", "\"../gc\"").as_bytes()),
            ("h", String::from_utf8(entry("h", "ok", 1)).unwrap().replace("\"events\":1,", "").as_bytes()),
            ("../i", &entry("../i", "ok", 1)),
            ("a", &entry("a", "ok", 1)),
        ] {
            summed.add(key, "", bytes);
        }
        let damaged: Vec<&str> = summed.damaged().iter().map(|damaged| damaged.key.as_str()).collect();
        assert_eq!((damaged.as_slice(), summed.len()), (&["b", "c", "d", "e", "f", "g", "h", "../i", "a"][..], 1));
        assert_eq!(text(&summed), text(&of(&[("a", "ok")])));
    }

    #[test]
    fn tables_of_another_version_are_told_and_read_again() {
        let mut summed = of(&[]);
        let old =
            String::from_utf8(entry("a", "ok", 1)).unwrap().replace("\"schema_version\":7", "\"schema_version\":6");
        summed.add("a", &tag_of(old.as_bytes()), old.as_bytes());
        assert_eq!(summed.other_version().map(|other| other.schema_version), Some(6));
        assert_eq!(Summed::parse(text(&summed).as_bytes(), 7).unwrap().recordings()[0].tag(), "");
    }
}
