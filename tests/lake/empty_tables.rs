//! Tables of which a recording of several has no rows: it has no file of them, and the dataset has one for all.

use std::path::{Path, PathBuf};

use tracequet::dataset::read::Dataset;

use crate::support::files::{files, sample};
use crate::support::program::{Run, run};

/// A recording with 3,400 moved ranges, and one without any.
const MANY: &str = "gc-churn.nettrace";
const NONE: &str = "events.nettrace";

struct Lake {
    folder: tempfile::TempDir,
}

impl Lake {
    fn new() -> Lake {
        Lake { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn add(&self, name: &str, more: &[&str]) -> Run {
        let (recording, out) = (sample(name), self.path());
        let arguments = ["convert", "-q", "--append", recording.to_str().unwrap(), "-o", out.to_str().unwrap()];
        let run = run(&[&arguments[..], more].concat());
        assert!(matches!(run.code, Some(0 | 2)), "{}", run.err);
        run
    }

    fn dataset(&self) -> Dataset {
        Dataset::open(self.path()).unwrap()
    }
}

fn rows(dataset: &Dataset, trace: &str, table: &str) -> usize {
    let table = dataset.recording(Some(trace)).unwrap().table(table).unwrap();
    table.scan().batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

/// The files of a table in a dataset, by their folders.
fn folders(lake: &Path, table: &str) -> Vec<String> {
    files(&lake.join(table)).into_keys().map(|name| name.split('/').next().unwrap().to_owned()).collect()
}

#[test]
fn a_recording_has_no_file_of_a_table_without_rows_and_the_dataset_has_one() {
    for format in ["parquet", "arrow"] {
        let lake = Lake::new();
        let format = ["--format", format, "--tables", "gc,gc_moved_range,event"];
        lake.add(NONE, &format);
        assert_eq!(folders(&lake.path(), "gc_moved_range"), ["trace=none"]);
        assert_eq!(rows(&lake.dataset(), "events", "gc_moved_range"), 0);
        lake.add(MANY, &format);
        assert_eq!(folders(&lake.path(), "gc_moved_range"), ["trace=gc-churn-47551c824a692fa9", "trace=none"]);
        let dataset = lake.dataset();
        assert_eq!(
            (rows(&dataset, "events", "gc_moved_range"), rows(&dataset, "gc-churn", "gc_moved_range")),
            (0, 3400)
        );
        // The columns are those that others have.
        let columns = |trace| {
            let table = dataset.recording(Some(trace)).unwrap().table("gc_moved_range").unwrap();
            let schema = table.scan().batches().unwrap().schema();
            schema
                .fields()
                .iter()
                .map(|f| (f.name().clone(), f.data_type().clone(), f.is_nullable()))
                .collect::<Vec<_>>()
        };
        assert_eq!(columns("events"), columns("gc-churn"));
        // It is no recording.
        assert_eq!((dataset.recordings().len(), dataset.failed().len()), (2, 0));
        let out = lake.path();
        let verified = run(&["dataset", "verify", out.to_str().unwrap()]);
        assert_eq!(verified.code, Some(0), "{}", verified.out);
        let listed = run(&["dataset", "list", out.to_str().unwrap()]);
        assert!(!listed.out.contains("none"), "{}", listed.out);
        // A table that was left out is not one without rows.
        assert!(dataset.recording(Some("events")).unwrap().table("gc_pause").is_err());
    }
}

#[test]
fn a_table_that_is_lost_is_not_taken_for_one_without_rows() {
    let lake = Lake::new();
    lake.add(MANY, &["--tables", "gc,gc_moved_range"]);
    let path = lake.path().join("gc_moved_range/trace=gc-churn-47551c824a692fa9/part-0.parquet");
    std::fs::remove_file(path).unwrap();
    let dataset = lake.dataset();
    let error = dataset.recording(None).unwrap().table("gc_moved_range").unwrap_err().to_string();
    assert!(error.contains("the file is missing"), "{error}");
    let verified = run(&["dataset", "verify", lake.path().to_str().unwrap()]);
    assert!(verified.code == Some(2) && verified.out.contains("gc_moved_range"), "{}", verified.out);
}

#[test]
fn a_later_run_brings_tables_that_the_dataset_lacks() {
    let lake = Lake::new();
    lake.add(NONE, &["--tables", "gc"]);
    assert!(!lake.path().join("gc_moved_range").exists());
    lake.add("gc-churn-3.1.nettrace", &["--tables", "gc_moved_range"]);
    assert!(lake.path().join("gc_moved_range/trace=none/part-0.parquet").is_file());
    let views = std::fs::read_to_string(lake.path().join("views.sql")).unwrap();
    assert!(views.contains("VIEW \"gc_moved_range\"") && views.contains("VIEW \"gc\""), "{views}");
    // Whoever may replace a dataset may replace these files, whatever became of the recordings.
    let key = lake.dataset().recording(Some("gc-churn-3.1")).unwrap().info().trace_id.clone();
    let out = lake.path();
    assert_eq!(run(&["dataset", "remove", out.to_str().unwrap(), &key]).code, Some(0));
    let recording = sample(NONE);
    let replaced = run(&["convert", "-q", "--overwrite", recording.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert!(matches!(replaced.code, Some(0 | 2)), "{}", replaced.err);
}

/// A dataset of an older version has a file of each table for each recording, and none for all.
#[test]
fn an_older_dataset_is_added_to() {
    let lake = Lake::new();
    let few = ["--tables", "gc,gc_moved_range"];
    lake.add(NONE, &few);
    let key = lake.dataset().recording(None).unwrap().info().trace_id.clone();
    for table in ["trace", "trace_label", "diagnostic", "gc", "gc_moved_range"] {
        let at = |trace: &str| lake.path().join(table).join(format!("trace={trace}"));
        if !at(&key).exists() {
            std::fs::create_dir_all(at(&key)).unwrap();
            std::fs::copy(at("none").join("part-0.parquet"), at(&key).join("part-0.parquet")).unwrap();
        }
        std::fs::remove_dir_all(at("none")).unwrap();
    }
    assert_eq!(rows(&lake.dataset(), "events", "gc_moved_range"), 0);
    lake.add(MANY, &few);
    let dataset = lake.dataset();
    assert_eq!((rows(&dataset, "events", "gc_moved_range"), rows(&dataset, "gc-churn", "gc_moved_range")), (0, 3400));
    assert!(lake.path().join("gc_moved_range/trace=none/part-0.parquet").is_file());
    // Removed, nothing of it is left.
    assert_eq!(run(&["dataset", "remove", lake.path().to_str().unwrap(), &key]).code, Some(0));
    assert!(files(&lake.path()).keys().all(|name| !name.contains(&key)));
}

/// All files of a table must have the same columns: those of another version of the tables are written anew.
#[test]
fn files_of_another_version_are_written_anew() {
    let lake = Lake::new();
    let few = ["--tables", "gc"];
    lake.add(NONE, &few);
    let (manifest, empty) = (lake.path().join("manifest.json"), lake.path().join("gc/trace=none/part-0.parquet"));
    let (text, bytes) = (std::fs::read_to_string(&manifest).unwrap(), std::fs::read(&empty).unwrap());
    std::fs::write(&empty, "the columns of this version").unwrap();
    lake.add(NONE, &few);
    assert_ne!(std::fs::read(&empty).unwrap(), bytes, "what is there stays");
    let mut other: serde_json::Value = serde_json::from_str(&text).unwrap();
    other["schema_version"] = 1.into();
    std::fs::write(&manifest, other.to_string()).unwrap();
    lake.add(NONE, &few);
    assert_eq!(std::fs::read(&empty).unwrap(), bytes);
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), text);
}
