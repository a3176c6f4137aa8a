//! All surfaces of one recording.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracequet::Convert;
use tracequet::dataset::read::Dataset as Read;
use tracequet::report::page;

use crate::answers::export::fields;
use crate::answers::report::{Cell, heads, table};
use crate::support::dataset::Dataset;
use crate::support::program::run;

/// Recordings of `samples/`, but for those of programs without their bug.
pub fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut found = Vec::new();
    for folder in ["", "requests", "bugs", "habits", "figures/recordings"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_recording = [".nettrace", ".nettrace.zst", ".etl", ".corprof"].iter().any(|end| name.ends_with(end));
            if is_recording && !name.contains("-clean.") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// A recording as it is shown everywhere.
pub struct Surfaces {
    pub name: String,
    /// The tables.
    pub dataset: Dataset,
    /// The page.
    pub html: String,
    /// What `explain --json` says.
    pub findings: Vec<Value>,
}

impl Surfaces {
    pub fn of(recording: &Path) -> Surfaces {
        let dataset = Dataset::with(Convert::default().inputs([recording.to_owned()]));
        let html = page(&Read::open(dataset.path()).unwrap().recording(None).unwrap()).unwrap();
        let explained = run(&["explain", dataset.path().to_str().unwrap(), "--format", "json"]);
        let explained: Value = serde_json::from_str(&explained.out).expect("JSON");
        let findings = explained[0]["findings"].as_array().cloned().unwrap_or_default();
        let name = recording.file_name().unwrap().to_string_lossy().into_owned();
        Surfaces { name, dataset, html, findings }
    }

    /// A metric, where it has a value.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let table = self.dataset.table("metric");
        let at = table.texts("name").iter().position(|known| known == name)?;
        table.floats("value")[at]
    }

    /// The figures that findings of a rule have, of all processes.
    pub fn figures(&self, rule: &str) -> Vec<f64> {
        self.findings.iter().filter(|finding| finding["rule"] == rule).filter_map(|f| f["figure"].as_f64()).collect()
    }

    /// The rows of a table of the page, if it has the table.
    pub fn shown(&self, id: &str) -> Option<Vec<Vec<Cell>>> {
        self.html.contains(&format!("<table id=\"{id}\">")).then(|| table(&self.html, id))
    }

    /// Raw values of a column of a table of the page: `None` where it shows a dash, or lacks the column.
    pub fn column(&self, id: &str, head: &str) -> Vec<Option<i64>> {
        let Some(rows) = self.shown(id) else { return Vec::new() };
        let place = heads(&self.html, id).iter().position(|known| known == head);
        let value = |row: &Vec<Cell>| row[place?].0.as_ref().and_then(|raw| raw.parse().ok());
        rows.iter().map(value).collect()
    }

    /// Durations of the intervals on a track of the trace for Perfetto.
    pub fn on_track(&self, name: &str) -> Vec<u64> {
        let out = self.dataset.path().join("perfetto.pftrace");
        let dataset = self.dataset.path();
        let made = run(&["export", dataset.to_str().unwrap(), "--format", "perfetto", "-o", out.to_str().unwrap()]);
        assert_eq!(made.code, Some(0), "{}: {}", self.name, made.err);
        let bytes = std::fs::read(out).unwrap();
        let number = |message: &[u8], field: u64| fields(message).iter().find(|(id, ..)| *id == field).map(|one| one.1);
        let mut tracks = std::collections::BTreeMap::new();
        let mut durations = Vec::new();
        for (_, _, packet) in fields(&bytes) {
            let time = number(packet, 8).unwrap_or_default();
            for (field, _, message) in fields(packet) {
                let is_named = || fields(message).iter().any(|(id, _, text)| *id == 2 && *text == name.as_bytes());
                if field == 60 && is_named() {
                    tracks.insert(number(message, 1).unwrap(), 0);
                }
                let track = number(message, 11).filter(|_| field == 11);
                match (track.and_then(|track| tracks.get_mut(&track)), number(message, 9)) {
                    (Some(begun), Some(1)) => *begun = time,
                    (Some(begun), Some(2)) => durations.push(time - *begun),
                    _ => {}
                }
            }
        }
        durations
    }
}
