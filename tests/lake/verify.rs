//! `tracequet dataset verify`: what is missing, what was changed, and what lies beside. Links are not followed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program::{Run, run};

/// A dataset of three recordings, one of which could not be read.
struct Lake {
    folder: tempfile::TempDir,
}

impl Lake {
    fn new() -> Lake {
        let lake = Lake { folder: tempfile::tempdir().unwrap() };
        let broken = lake.folder.path().join("broken.nettrace");
        std::fs::write(&broken, "Nettrace").unwrap();
        let out = lake.root();
        let given = ["samples/gc-churn.nettrace", "samples/server-gc.nettrace", broken.to_str().unwrap()];
        let made =
            run(&[&["convert", "-q", "--tables", "gc,gc_pause", "--append", "-o", out.to_str().unwrap()], &given[..]]
                .concat());
        assert_eq!(made.code, Some(2), "{}", made.err);
        lake
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The key of a recording, by the name of its file.
    fn key(&self, name: &str) -> String {
        let names =
            std::fs::read_dir(self.at("manifest")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let key =
            names.filter_map(|entry| Some(entry.strip_suffix(".json")?.to_owned())).find(|key| key.starts_with(name));
        key.unwrap()
    }

    /// The file of a table of the first recording.
    fn file(&self, table: &str) -> PathBuf {
        self.at(&format!("{table}/trace={}/part-0.parquet", self.key("gc-churn")))
    }

    fn verify(&self) -> Run {
        run(&["dataset", "verify", self.root().to_str().unwrap()])
    }

    /// Holds that `verify` says this of a place, and nothing else; then that all is well when it is undone.
    fn finds(&self, path: &Path, what: &str, undo: impl FnOnce()) {
        let found = self.verify();
        assert_eq!(found.code, Some(2), "{what}: {}{}", found.out, found.err);
        let line = format!("{}: {what}", path.display());
        assert!(found.out.lines().next().unwrap().starts_with(&line), "expected {line}\n{}", found.out);
        assert!(found.out.ends_with(" 1 wrong\n"), "{what}: {}", found.out);
        undo();
        let whole = self.verify();
        assert!(whole.code == Some(0) && whole.out.ends_with(" 0 wrong\n"), "{what}: {}", whole.out);
    }
}

#[test]
fn files_that_are_missing_or_changed_are_named() {
    let lake = Lake::new();
    let whole = lake.verify();
    assert!(whole.code == Some(0) && whole.out.ends_with(" 0 wrong\n"), "{}{}", whole.out, whole.err);
    let gc = lake.file("gc");
    let bytes = std::fs::read(&gc).unwrap();
    let restore = || std::fs::write(&gc, &bytes).unwrap();
    std::fs::remove_file(&gc).unwrap();
    lake.finds(&gc, "is not there", restore);
    std::fs::write(&gc, [&bytes[..], b"1"].concat()).unwrap();
    lake.finds(&gc, &format!("has {} bytes, expected {}", bytes.len() + 1, bytes.len()), restore);
    std::fs::write(&gc, vec![0; bytes.len()]).unwrap();
    lake.finds(&gc, "", restore);
    // What could not be read has tables, too.
    let failed = lake.at(&format!("trace/trace={}/part-0.parquet", lake.key("broken")));
    let row = std::fs::read(&failed).unwrap();
    std::fs::remove_file(&failed).unwrap();
    lake.finds(&failed, "is not there", || std::fs::write(&failed, row).unwrap());
    // A file without rows stands for all recordings that have none.
    let empty = lake.at("diagnostic/trace=none/part-0.parquet");
    let columns = std::fs::read(&empty).unwrap();
    std::fs::remove_file(&empty).unwrap();
    lake.finds(&empty, "is not there", || std::fs::write(&empty, columns).unwrap());
    let views = lake.at("views.sql");
    let text = std::fs::read(&views).unwrap();
    std::fs::remove_file(&views).unwrap();
    lake.finds(&views, "is not there", || std::fs::write(&views, text).unwrap());
}

#[test]
fn entries_are_held_against_the_rows_and_the_manifest_against_the_entries() {
    let lake = Lake::new();
    let place = lake.at(&format!("manifest/{}.json", lake.key("gc-churn")));
    let text = std::fs::read_to_string(&place).unwrap();
    let restore = || std::fs::write(&place, &text).unwrap();
    let mut entry: Value = serde_json::from_str(&text).unwrap();
    let table = entry["tables"].as_array_mut().unwrap().iter_mut().find(|table| table["name"] == "gc").unwrap();
    table["rows"] = 1000.into();
    std::fs::write(&place, entry.to_string()).unwrap();
    let found = lake.verify();
    assert!(
        found.out.contains("has 19 rows, expected 1000") && found.out.contains("says that gc has"),
        "{}",
        found.out
    );
    restore();
    let mut entry: Value = serde_json::from_str(&text).unwrap();
    entry["tables"][0]["name"] = "../gc".into();
    std::fs::write(&place, entry.to_string()).unwrap();
    let found = lake.verify();
    assert!(found.code == Some(2) && found.out.contains("is not the name of a table"), "{}", found.out);
    restore();
    let summary = lake.at("manifest.json");
    let whole = std::fs::read_to_string(&summary).unwrap();
    for (from, to, what) in [
        ("{\"name\":\"gc\",\"rows\":", "{\"name\":\"gc\",\"rows\":9", "says that gc has 9"),
        ("\"status\":\"ok\"", "\"status\":\"losses\"", "differs from the entry of "),
        ("\"name\":\"gc\"", "\"name\":\"gcs\"", "says that gc has 0 rows and 0 bytes"),
    ] {
        let other = whole.replacen(from, to, 1);
        assert!(other != whole, "{from}");
        std::fs::write(&summary, other).unwrap();
        lake.finds(&summary, what, || std::fs::write(&summary, &whole).unwrap());
    }
    let views = lake.at("views.sql");
    let text = std::fs::read_to_string(&views).unwrap();
    std::fs::write(&views, text.replacen("gc_pause", "gc_pauses", 1)).unwrap();
    lake.finds(&views, "does not match the tables", || std::fs::write(&views, text).unwrap());
    let mut less: Value = serde_json::from_str(&whole).unwrap();
    less["failed"] = Value::Array(Vec::new());
    std::fs::write(&summary, less.to_string()).unwrap();
    lake.finds(&summary, "does not match the entries", || std::fs::write(&summary, whole).unwrap());
}

/// Every damaged dataset can be used by some command.
#[test]
fn a_recording_whose_entry_is_damaged_is_removed_with_its_files() {
    let lake = Lake::new();
    let key = lake.key("gc-churn");
    let place = lake.at(&format!("manifest/{key}.json"));
    std::fs::write(&place, "{").unwrap();
    let root = lake.root();
    let refused = lake.verify();
    assert!(refused.code == Some(2) && refused.out.contains(&format!("{key}.json: is damaged: ")), "{}", refused.out);
    assert!(refused.out.matches(&key).count() == 1, "{}", refused.out);
    let removed = run(&["dataset", "remove", root.to_str().unwrap(), &key]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    let whole = lake.verify();
    assert!(whole.code == Some(0) && whole.out.ends_with(" 0 wrong\n"), "{}", whole.out);
    assert!(!lake.at(&format!("gc/trace={key}")).exists() && lake.key("server-gc").starts_with("server-gc"));
}

#[test]
fn what_lies_beside_is_named() {
    let lake = Lake::new();
    let more = lake.at(&format!("gc/trace={}/part-1.parquet", lake.key("gc-churn")));
    let lock = lake.at(".hidden");
    std::fs::write(&lock, "a run at work").unwrap();
    for (path, what) in [
        (more, "is not listed in its recording's entry"),
        (lake.at("gc/trace=stray-00000000/part-0.parquet"), "belongs to no recording"),
        (lake.at("notes.txt"), "is not part of the dataset"),
        (lake.at("manifest/app-00000000.json.half"), "is unfinished; the next run"),
    ] {
        let folder = path.parent().unwrap();
        let is_new = !folder.exists();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&path, "x").unwrap();
        lake.finds(&path, what, || match is_new {
            true => std::fs::remove_dir_all(folder).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        });
    }
}

#[test]
fn a_dataset_of_one_recording_is_verified_by_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let verify = || run(&["dataset", "verify", out.to_str().unwrap()]);
    run(&["convert", "-q", "--tables", "gc,event", "samples/gc-churn.nettrace", "-o", out.to_str().unwrap()]);
    let whole = verify();
    assert!(whole.code == Some(0) && whole.out.ends_with(" 0 wrong\n"), "{}", whole.out);
    std::fs::rename(out.join("gc.parquet"), out.join("gone.parquet")).unwrap();
    let found = verify();
    assert_eq!(found.code, Some(2));
    let line = |name: &str, what: &str| format!("{}: {what}\n", out.join(name).display());
    let expected = line("gc.parquet", "is not there") + &line("gone.parquet", "is not part of the dataset");
    assert!(found.out.starts_with(&expected) && found.out.ends_with(" 2 wrong\n"), "{}", found.out);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_read() {
    let lake = Lake::new();
    let gc = lake.file("gc");
    let elsewhere = lake.folder.path().join("elsewhere");
    let restore = || {
        std::fs::remove_file(&gc).unwrap();
        std::fs::rename(&elsewhere, &gc).unwrap();
    };
    std::fs::rename(&gc, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &gc).unwrap();
    lake.finds(&gc, "is a link, expected a file", restore);
    // There is no writer.
    std::fs::rename(&gc, &elsewhere).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&gc).status().unwrap().success());
    lake.finds(&gc, "is no file", restore);
    // A link to all files of this machine.
    let link = lake.at("gc/trace=root-00000000");
    std::os::unix::fs::symlink("/", &link).unwrap();
    lake.finds(&link, "belongs to no recording", || std::fs::remove_file(&link).unwrap());
}
