//! The summary of the entries of a dataset of several recordings. `manifest.json` has it, so that a run that adds a
//! recording reads the entries that are new and not all of them.
//!
//! The lists of the file have a line for each item. A line of a recording begins with its key, with a tag that shows
//! whether its entry is still the one that was summed up, and with its hash: these three are found without reading the
//! rest. What does not look like that (an older version, another program) is no error: then all entries are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

const KEY: &str = "{\"trace_id\":\"";
const TAG: &str = "\",\"entry\":\"";
const SHA256: &str = "\",\"sha256\":\"";
const INPUTS: &str = "  \"inputs\": [\n";
const FAILED: &str = "  ],\n  \"failed\": [\n";
const TABLES: &str = "  ],\n  \"tables\": [\n";
const CHECK: &str = "  ],\n  \"check\": \"";
const END: &str = "\"\n}\n";
/// Characters of a tag, and of the hash at the end of the file.
const DIGITS: usize = 16;

/// An entry that cannot be read, or is not an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedEntry {
    /// The key of the recording, by the name of the file.
    pub key: String,
    /// What is wrong with it.
    pub what: String,
}

impl DamagedEntry {
    /// Of the recording `key`.
    pub fn new(key: &str, what: impl Into<String>) -> DamagedEntry {
        DamagedEntry { key: key.to_owned(), what: what.into() }
    }
}

/// Tables of a recording that are of another version than those of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// The key of the recording.
    pub key: String,
    /// The version of tracequet that wrote them.
    pub version: String,
    /// The version of the tables.
    pub schema_version: u64,
}

/// The rows and bytes of a table over all recordings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SummedTable {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// The entries of a dataset, summed up.
#[derive(Clone, Debug)]
pub struct Summed {
    schema_version: u32,
    /// In the order of their keys.
    recordings: Vec<Line>,
    /// Those that could not be read, too.
    failed: Vec<Line>,
    tables: BTreeMap<String, (u64, u64)>,
    damaged: Vec<DamagedEntry>,
    other_version: Option<OtherVersion>,
}

/// What an entry says but for its tables: an object of JSON in one line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it is: the manifest, or itself.
    source: Arc<str>,
    place: Range<usize>,
    /// Bytes of the key, the tag and the hash.
    sizes: [usize; 3],
}

#[derive(Deserialize)]
struct Head {
    tool: String,
    version: String,
    schema_version: u32,
    layout: String,
}

impl Summed {
    /// Of no entries yet. `schema_version` is that of the tables of this program.
    pub fn new(schema_version: u32) -> Summed {
        Summed {
            schema_version,
            recordings: Vec::new(),
            failed: Vec::new(),
            tables: BTreeMap::new(),
            damaged: Vec::new(),
            other_version: None,
        }
    }

    /// What a manifest sums up. `None` if it is not as this version writes it, or was changed since.
    pub fn parse(manifest: &[u8], schema_version: u32) -> Option<Summed> {
        let source: Arc<str> = std::str::from_utf8(manifest).ok()?.into();
        let text = &*source;
        let (text, check) = text.strip_suffix(END)?.split_at_checked(text.len().checked_sub(END.len() + DIGITS)?)?;
        let text = text.strip_suffix(CHECK)?;
        let (head, lists) = text.split_once(INPUTS)?;
        let head: Head = serde_json::from_str(&format!("{}}}", head.strip_suffix(",\n")?)).ok()?;
        let is_ours = head.tool == "tracequet" && head.version == env!("CARGO_PKG_VERSION") && head.layout == "hive";
        if !is_ours || head.schema_version != schema_version || check != digits(text.as_bytes()) {
            return None;
        }
        let (inputs, rest) = lists.split_once(FAILED)?;
        let (failed, tables) = rest.split_once(TABLES)?;
        let mut summed = Summed::new(schema_version);
        summed.recordings = items(inputs).map(|item| Line::parse(&source, item)).collect::<Option<_>>()?;
        summed.failed = items(failed).map(|item| Line::parse(&source, item)).collect::<Option<_>>()?;
        for item in items(tables) {
            let table: SummedTable = serde_json::from_str(item).ok()?;
            summed.tables.insert(table.name, (table.rows, table.bytes));
        }
        let in_order = |lines: &[Line]| lines.is_sorted_by(|a, b| a.key() < b.key());
        (in_order(&summed.recordings) && in_order(&summed.failed)).then_some(summed)
    }

    /// Adds an entry that is not among them. `tag` is [`tag_of`] its bytes, or another identification of them.
    pub fn add(&mut self, key: &str, tag: &str, entry: &[u8]) {
        if let Err(what) = self.try_to_add(key, tag, entry) {
            self.damaged.push(DamagedEntry::new(key, what));
        }
    }

    /// Adds an entry that cannot be read.
    pub fn add_damaged(&mut self, damaged: DamagedEntry) {
        self.damaged.push(damaged);
    }

    fn try_to_add(&mut self, key: &str, tag: &str, entry: &[u8]) -> Result<(), String> {
        let mut entry: Map<String, Value> = serde_json::from_slice(entry).map_err(|e| e.to_string())?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (own, sha256, version) = (text("trace_id"), text("sha256"), text("version"));
        let has_failed = text("status") == "failed";
        // Files are removed by this name, which an entry from somewhere else could make lead anywhere.
        if own != key {
            return Err(format!("it says that it is of {own:?}"));
        }
        let plain = |text: &str| !text.contains(|c: char| matches!(c, '"' | '\\') || c.is_control());
        if !plain(key) || !plain(&sha256) {
            return Err("invalid key or hash".into());
        }
        let schema_version = entry.get("schema_version").and_then(Value::as_u64).ok_or("it has no schema_version")?;
        let tables = entry.remove("tables").ok_or("it names no tables")?;
        let tables: Vec<SummedTable> = serde_json::from_value(tables).map_err(|e| format!("its tables: {e}"))?;
        // Tables of another version make the next run read this one again.
        let is_of_now = schema_version == u64::from(self.schema_version);
        if !is_of_now && self.other_version.is_none() {
            self.other_version = Some(OtherVersion { key: key.to_owned(), version, schema_version });
        }
        for name in ["trace_id", "sha256", "entry"] {
            entry.remove(name);
        }
        let line = Line::new([key, if is_of_now { tag } else { "" }, &sha256], entry);
        let lines = if has_failed { &mut self.failed } else { &mut self.recordings };
        match lines.binary_search_by(|line| line.key().cmp(key)) {
            Ok(_) => return Err("it is there twice".into()),
            Err(place) => lines.insert(place, line),
        }
        for table in tables {
            let (rows, bytes) = self.tables.entry(table.name).or_default();
            *rows = rows.saturating_add(table.rows);
            *bytes = bytes.saturating_add(table.bytes);
        }
        Ok(())
    }

    /// The tag of the entry of a recording that is among them.
    pub fn tag(&self, key: &str) -> Option<&str> {
        let found = |lines: &'_ [Line]| lines.binary_search_by(|line| line.key().cmp(key)).ok();
        let line = match found(&self.recordings) {
            Some(place) => self.recordings.get(place),
            None => self.failed.get(found(&self.failed)?),
        };
        line.map(Line::tag)
    }

    /// How many entries they are, without those that are damaged.
    pub fn len(&self) -> usize {
        self.recordings.len() + self.failed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The recordings, in the order of their keys.
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
    pub fn tables(&self) -> impl Iterator<Item = SummedTable> {
        self.tables.iter().map(|(name, &(rows, bytes))| SummedTable { name: name.clone(), rows, bytes })
    }

    /// The text of the manifest. `head` are the names and values that come first; `tables` are those of the dataset,
    /// in the order in which they are written.
    pub fn manifest(&self, head: &[(&str, Value)], tables: &[SummedTable]) -> String {
        let lists = self.recordings.iter().chain(&self.failed).map(|line| line.text().len() + 6).sum::<usize>();
        let mut text = String::with_capacity(lists + (64 << 10));
        text.push_str("{\n");
        for (name, value) in head {
            text.push_str(&format!("  \"{name}\": {value},\n"));
        }
        text.push_str(INPUTS);
        push(&mut text, self.recordings.iter().map(Line::text));
        text.push_str(FAILED);
        push(&mut text, self.failed.iter().map(Line::text));
        text.push_str(TABLES);
        let tables = tables.iter().map(|table| {
            let name = Value::from(table.name.as_str());
            format!("{{\"name\":{name},\"rows\":{},\"bytes\":{}}}", table.rows, table.bytes)
        });
        push(&mut text, tables);
        let check = digits(text.as_bytes());
        text.push_str(CHECK);
        text.push_str(&check);
        text.push_str(END);
        text
    }
}

impl Line {
    fn new([key, tag, sha256]: [&str; 3], more: Map<String, Value>) -> Line {
        let more = Value::Object(more).to_string();
        let more = more.strip_prefix('{').unwrap_or_default();
        let comma = if more.len() > 1 { "," } else { "" };
        let text = format!("{KEY}{key}{TAG}{tag}{SHA256}{sha256}\"{comma}{more}");
        Line { place: 0..text.len(), source: text.into(), sizes: [key.len(), tag.len(), sha256.len()] }
    }

    /// The line `text`, which is a part of `source`.
    fn parse(source: &Arc<str>, text: &str) -> Option<Line> {
        let begin = text.as_ptr().addr().checked_sub(source.as_ptr().addr())?;
        let (key, rest) = text.strip_prefix(KEY)?.split_once(TAG)?;
        let (tag, rest) = rest.split_once(SHA256)?;
        let (sha256, _) = rest.split_once('"')?;
        let is_plain = [key, tag, sha256].iter().all(|text| !text.contains(['"', '\\']));
        let sizes = [key.len(), tag.len(), sha256.len()];
        is_plain.then(|| Line { source: source.clone(), place: begin..begin + text.len(), sizes })
    }

    /// The key of the recording.
    pub fn key(&self) -> &str {
        let [key, ..] = self.sizes;
        self.part(KEY.len(), key)
    }

    /// Identifies the entry that was summed up.
    pub fn tag(&self) -> &str {
        let [key, tag, _] = self.sizes;
        self.part(KEY.len() + key + TAG.len(), tag)
    }

    /// Its hash; empty if it is not known.
    pub fn sha256(&self) -> &str {
        let [key, tag, sha256] = self.sizes;
        self.part(KEY.len() + key + TAG.len() + tag + SHA256.len(), sha256)
    }

    /// The object of JSON.
    pub fn text(&self) -> &str {
        self.source.get(self.place.clone()).unwrap_or_default()
    }

    fn part(&self, begin: usize, size: usize) -> &str {
        self.text().get(begin..begin + size).unwrap_or_default()
    }
}

/// A tag that identifies bytes.
pub fn tag_of(bytes: &[u8]) -> String {
    digits(bytes)
}

fn digits(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The items of a list, one per line.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(|line| line.trim_start_matches(' ')).map(|line| line.strip_suffix(',').unwrap_or(line))
}

fn push(text: &mut String, items: impl Iterator<Item = impl AsRef<str>>) {
    let before = text.len();
    for item in items {
        text.push_str(if text.len() == before { "    " } else { ",\n    " });
        text.push_str(item.as_ref());
    }
    if text.len() > before {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [(&str, &str); 3] = [("tool", "tracequet"), ("version", env!("CARGO_PKG_VERSION")), ("layout", "hive")];

    fn entry(key: &str, status: &str, rows: u64) -> Vec<u8> {
        let tables = serde_json::json!([{ "name": "gc", "rows": rows, "bytes": 10 }]);
        let entry = serde_json::json!({
            "trace_id": key, "sha256": format!("hash of {key}"), "status": status, "path": "a, \"b\"\n{", "schema_version": 7,
            "tables": tables,
        });
        entry.to_string().into_bytes()
    }

    fn text(summed: &Summed) -> String {
        let mut head: Vec<(&str, Value)> = HEAD.iter().map(|(name, value)| (*name, (*value).into())).collect();
        head.push(("schema_version", 7.into()));
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
                if summed.tag(key).is_none() {
                    let entry = entry(key, status, 3);
                    summed.add(key, &tag_of(&entry), &entry);
                }
            }
            assert_eq!(text(&summed), text(&all), "{less:?}");
        }
        let json: Value = serde_json::from_str(&text(&all)).unwrap();
        assert_eq!((&json["inputs"][1]["trace_id"], &json["failed"][0]["path"]), (&"c".into(), &"a, \"b\"\n{".into()));
        assert_eq!(json["tables"], serde_json::json!([{ "name": "gc", "rows": 9, "bytes": 30 }]));
        assert_eq!((all.recordings()[1].sha256(), all.tag("b").unwrap().len()), ("hash of c", DIGITS));
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
            ("a", &entry("a", "ok", 1)),
        ] {
            summed.add(key, "", bytes);
        }
        let damaged: Vec<&str> = summed.damaged().iter().map(|damaged| damaged.key.as_str()).collect();
        assert_eq!((damaged.as_slice(), summed.len()), (&["b", "c", "d", "e", "f", "a"][..], 1));
        assert_eq!(text(&summed), text(&of(&[("a", "ok")])));
    }

    #[test]
    fn tables_of_another_version_are_told_and_read_again() {
        let mut summed = of(&[]);
        let old =
            String::from_utf8(entry("a", "ok", 1)).unwrap().replace("\"schema_version\":7", "\"schema_version\":6");
        summed.add("a", &tag_of(old.as_bytes()), old.as_bytes());
        assert_eq!(summed.other_version().map(|other| other.schema_version), Some(6));
        assert_eq!(Summed::parse(text(&summed).as_bytes(), 7).unwrap().tag("a"), Some(""));
    }
}
