//! Which recordings go, by entries written by hand.

use std::fs;

use crate::files::Directory;
use serde_json::{Value, json};
use tracequet_dataset::format::paths;
use tracequet_dataset::table::schema::SCHEMA_VERSION;

use super::super::of;
use super::*;

const DAY: Duration = Duration::from_secs(86_400);

/// A dataset whose recordings have these keys, begins and labels `service`.
fn lake(root: &Path, recordings: &[(&str, Option<&str>, &str)]) -> Lake {
    fs::create_dir_all(root.join(paths::ENTRIES)).unwrap();
    for (key, start, service) in recordings {
        let tables = ["gc", "metric", "event/P/E"].map(|name| json!({ "name": name, "rows": 1, "bytes": 4 }));
        let mut entry = json!({
            "trace_id": key, "sha256": key, "path": key, "status": "ok", "schema_version": SCHEMA_VERSION, "tables": tables,
            "events": 1, "dropped_events": 0, "complete": true, "labels": { "service": service },
        });
        if let Some(start) = start {
            entry["start"] = (*start).into();
        }
        fs::write(root.join(paths::entry(key)), entry.to_string()).unwrap();
        for table in ["gc", "metric", "event/P/E"] {
            let folder = root.join(paths::folder(table, key));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("part-0.parquet"), "rows").unwrap();
        }
    }
    let lake = of(Directory::new(root, false));
    describe(&lake, Default::default(), false).unwrap();
    lake
}

const RECORDINGS: [(&str, Option<&str>, &str); 6] = [
    ("b", Some("2026-11-02T00:00:00.000Z"), "orders"),
    ("a", Some("2026-11-01T00:00:00.000Z"), "orders"),
    ("c", Some("2026-11-03T00:00:00.000Z"), "mail"),
    ("d", Some("2026-11-04T00:00:00.000Z"), "orders"),
    ("f", Some("2027-01-01T00:00:00.000Z"), "orders"),
    ("n", None, "orders"),
];

/// Noon of 2026-11-05.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_880_000)
}

#[test]
fn age_number_and_labels_choose_together() {
    let folder = tempfile::tempdir().unwrap();
    let lake = lake(folder.path(), &RECORDINGS);
    let labels: BTreeMap<_, _> = [("service".to_owned(), "orders".to_owned())].into();
    let chosen = |older_than: Option<u32>, keep_last, labels: &BTreeMap<_, _>, now| {
        let older_than = older_than.map(|days| DAY * days);
        let wanted = Expire { older_than, keep_last, labels: labels.clone(), dry_run: true, ..Expire::default() };
        let gone = expire_at(&lake, &wanted, now).unwrap();
        assert!(gone.iter().all(|one| one.bytes == 12));
        gone.into_iter().map(|one| one.trace_id).collect::<String>()
    };
    let all = BTreeMap::new();
    assert_eq!(chosen(Some(2), None, &all, now()), "abc");
    assert_eq!(chosen(Some(2), None, &labels, now()), "ab");
    // What begins in the future is not old, and is the newest.
    assert_eq!(chosen(Some(0), None, &all, now()), "abcd");
    assert_eq!(chosen(None, Some(2), &all, now()), "abc");
    assert_eq!(chosen(None, Some(2), &labels, now()), "ab");
    assert_eq!(chosen(Some(3), Some(2), &all, now()), "ab");
    assert_eq!(chosen(Some(1), Some(4), &all, now()), "a");
    assert_eq!(chosen(None, Some(0), &all, now()), "abcdf");
    assert_eq!(chosen(None, Some(9), &all, now()), "");
    assert_eq!(chosen(Some(0), None, &[("service".to_owned(), "none".to_owned())].into(), now()), "");
    // A clock that is wrong makes nothing old that is not.
    assert_eq!(chosen(Some(2), None, &all, SystemTime::UNIX_EPOCH), "");
    assert_eq!(chosen(Some(u32::MAX), None, &all, now()), "");
    let error = expire_at(&lake, &Expire::default(), now()).unwrap_err().to_string();
    assert!(error.contains("which recordings go"), "{error}");
}

/// Names of the files of tables that there are.
fn files(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for table in ["event/P/E", "gc", "metric"] {
        for (key, ..) in RECORDINGS {
            if root.join(paths::folder(table, key)).join("part-0.parquet").is_file() {
                files.push(format!("{table} {key}"));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn tables_that_are_to_stay_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let lake = lake(root, &RECORDINGS[..2]);
    let wanted = Expire { keep_last: Some(1), keep_tables: vec!["metric".to_owned()], ..Expire::default() };
    let wrong = Expire { keep_tables: vec!["metrics".to_owned()], ..wanted.clone() };
    assert!(expire_at(&lake, &wrong, now()).unwrap_err().to_string().contains("did you mean metric"));
    let gone = expire_at(&lake, &wanted, now()).unwrap();
    assert_eq!(gone, [Expired { trace_id: "a".into(), start: RECORDINGS[1].1.unwrap().into(), bytes: 8 }]);
    assert_eq!(files(root), ["event/P/E b", "gc b", "metric a", "metric b"]);
    let entry: Value = serde_json::from_slice(&fs::read(root.join("manifest/a.json")).unwrap()).unwrap();
    assert_eq!(entry["options"]["tables"], json!(["metric"]));
    let manifest = fs::read_to_string(root.join(paths::MANIFEST)).unwrap();
    assert!(
        manifest.contains(r#""tables":["metric"]"#) && manifest.contains(r#"{"name":"gc","rows":1,"bytes":4}"#),
        "{manifest}"
    );
    // The next run has nothing to do, and one that keeps nothing takes the rest.
    assert_eq!(expire_at(&lake, &wanted, now()).unwrap(), []);
    let rest = expire_at(&lake, &Expire { keep_last: Some(1), ..Expire::default() }, now()).unwrap();
    assert_eq!((rest.len(), rest[0].bytes), (1, 4));
    assert_eq!(files(root), ["event/P/E b", "gc b", "metric b"]);
}

/// The note of a run that was killed between the new entry and the files.
#[test]
fn what_a_killed_run_left_goes_with_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let lake = lake(root, &RECORDINGS[..2]);
    let all = files(root);
    fs::write(root.join(paths::half("a")), "").unwrap();
    lake.storage().open().unwrap();
    assert_eq!(files(root), all, "its entry is still the old one");
    let path = root.join(paths::entry("a"));
    let mut entry: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    entry["tables"] = json!([{ "name": "metric", "rows": 1, "bytes": 4 }]);
    fs::write(&path, entry.to_string()).unwrap();
    fs::write(root.join(paths::half("a")), "").unwrap();
    lake.storage().open().unwrap();
    assert_eq!(files(root), ["event/P/E b", "gc b", "metric a", "metric b"]);
    assert!(!root.join(paths::half("a")).exists());
    // A damaged entry names nothing.
    fs::write(root.join(paths::entry("b")), "{").unwrap();
    fs::write(root.join(paths::half("b")), "").unwrap();
    lake.storage().open().unwrap();
    assert_eq!(files(root), ["event/P/E b", "gc b", "metric a", "metric b"]);
}
