//! The shared traces and what an independent decoder found in them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::skip;

/// The folder of the shared traces: `$TRACEQUET_SHARED/nettrace` or `../shared/data/nettrace` beside the repository.
/// `None`, with a note on standard error, when it is not there. Under `CI=true` it has to be there, unless
/// `TRACEQUET_NO_SHARED=1` says that this is a clone without it.
pub fn shared_traces(test: &str) -> Option<PathBuf> {
    shared_folder(test, "nettrace")
}

/// The folder of shared traces of one format.
pub fn shared_folder(test: &str, format: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("TRACEQUET_SHARED") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
    };
    let folder = root.join(format);
    if folder.is_dir() {
        return Some(folder);
    }
    let why = format!("no shared traces in {}", folder.display());
    let how = "recordings that are not part of the project: TRACEQUET_SHARED names their folder";
    if std::env::var_os("TRACEQUET_NO_SHARED").is_some_and(|no| no == "1") {
        skip::note(test, &why, how);
    } else {
        skip::skip(test, &format!("{why} (TRACEQUET_NO_SHARED=1 is set)"), how);
    }
    None
}

/// A recording and the folder of what is expected of it.
#[derive(Clone, Debug)]
pub struct SharedTrace {
    pub path: PathBuf,
    /// Name without the ending of a packed file.
    pub name: String,
    expected: PathBuf,
}

/// All recordings of a folder, by name.
pub fn traces_in(folder: &Path) -> Vec<SharedTrace> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = file.strip_suffix(".zst").unwrap_or(&file).to_owned();
        if name.ends_with(".nettrace") || name.ends_with(".netperf") {
            found.push(SharedTrace { path, name, expected: folder.join("expected") });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!found.is_empty(), "no recordings in {}", folder.display());
    found
}

impl SharedTrace {
    /// The file `NAME.<what>.json`.
    pub fn json(&self, what: &str) -> Option<Json> {
        let text = std::fs::read_to_string(self.expected.join(format!("{}.{what}.json", self.name))).ok()?;
        Some(serde_json::from_str(&text).expect("valid JSON"))
    }

    /// The lines of the file `NAME.<what>`.
    pub fn lines(&self, what: &str) -> Option<Vec<Json>> {
        let text = std::fs::read_to_string(self.expected.join(format!("{}.{what}", self.name))).ok()?;
        Some(text.lines().map(|line| serde_json::from_str(line).expect("valid JSON")).collect())
    }

    /// All expected events in time order. The only line of a refused file is `{"error": ...}`.
    pub fn events(&self) -> Option<Vec<Json>> {
        self.packed_lines("events")
    }

    /// The lines of the file `NAME.<what>.jsonl.gz`.
    pub fn packed_lines(&self, what: &str) -> Option<Vec<Json>> {
        packed_lines(&self.expected.join(format!("{}.{what}.jsonl.gz", self.name)))
    }
}

/// The lines of a packed file.
pub fn packed_lines(path: &Path) -> Option<Vec<Json>> {
    let file = std::fs::File::open(path).ok()?;
    let lines = BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines();
    let parse = |line: String| serde_json::from_str(&without_lone_surrogates(&line)).expect("valid JSON");
    Some(lines.map(|line| parse(line.expect("a readable line"))).collect())
}

/// JSON may escape halves of surrogate pairs, which no Rust string can hold: each becomes U+FFFD, as in tracequet.
fn without_lone_surrogates(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match unit(rest) {
            Some(0xD800..=0xDBFF) if matches!(unit(&rest[6..]), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            None => 2,
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}
