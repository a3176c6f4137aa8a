//! Entries of a dataset that grows: what is damaged costs itself, and the manifest is gone by only where it sums these
//! up.

use std::path::Path;

use serde_json::Value;

use crate::lake::many::{FEW, Recordings, content, json_lines, native, recorded};
use crate::support::dataset::Table;
use crate::support::program::Run;

/// Two contents whose hashes begin with the same eight digits: numbers that are appended to two texts until two hashes
/// meet.
fn that_begin_alike(one: &[u8], two: &[u8]) -> [Vec<u8>; 2] {
    let hashes = [one, two].map(|text| {
        let mut hash = blake3::Hasher::new();
        hash.update(text);
        hash
    });
    let begin = |hash: &blake3::Hasher, number: u32| {
        let digest = hash.clone().update(&number.to_le_bytes()).finalize();
        u32::from_be_bytes(digest.as_bytes()[..4].try_into().unwrap())
    };
    let with = |text: &[u8], number: u32| [text, &number.to_le_bytes()].concat();
    let mut seen = std::collections::HashMap::new();
    for number in 0.. {
        seen.insert(begin(&hashes[0], number), number);
        if let Some(first) = seen.get(&begin(&hashes[1], number)) {
            return [with(one, *first), with(two, number)];
        }
    }
    unreachable!("there are as many as numbers");
}

fn lake(recordings: &Recordings) -> tracequet::dataset::read::Dataset {
    tracequet::dataset::read::Dataset::open(recordings.at("lake")).unwrap()
}

/// By the first eight digits the second of two nights would be the first one, which is there already.
#[test]
fn recordings_of_one_name_whose_hashes_begin_alike_are_two() {
    let recordings = Recordings::new();
    let [one, two] = ["events", "subjects"].map(|name| std::fs::read(format!("samples/{name}.nettrace")).unwrap());
    for (night, bytes) in ["one", "two"].iter().zip(that_begin_alike(&one, &two)) {
        std::fs::create_dir(recordings.at(night)).unwrap();
        std::fs::write(recordings.at(night).join("app.nettrace"), bytes).unwrap();
    }
    for night in ["one", "two"] {
        let run = recordings.run(&["convert", "-q", "--tables", "gc", night, "--append", "-o", "lake"]);
        assert!(!run.err.contains("is in the dataset already"), "{}", run.err);
    }
    let keys: Vec<String> = lake(&recordings).recordings().iter().map(|one| one.trace_id.clone()).collect();
    let begins: Vec<&str> = keys.iter().map(|key| &key[..12]).collect();
    assert!(keys.len() == 2 && keys[0].len() == 20 && begins[0] == begins[1] && keys[0] != keys[1], "{keys:?}");
    let again = recordings.run(&["convert", "one", "two", "--append", "-o", "lake"]);
    assert!(again.code == Some(0) && again.err.matches("is in the dataset already").count() == 2, "{}", again.err);
}

/// Sixteen digits may be made alike by somebody who wants it: the whole hash decides.
#[test]
fn a_key_that_belongs_to_another_content_is_not_taken() {
    let recordings = Recordings::new();
    let gc = native("traces/gc.nettrace");
    let add = || recordings.run(&["convert", "--tables", "gc", &gc, "--append", "-o", "lake"]);
    assert_eq!(add().code, Some(0));
    let key = "gc-47551c824a692fa9";
    let entry = recordings.at(&format!("lake/manifest/{key}.json"));
    let text = std::fs::read_to_string(&entry).unwrap();
    let hash = serde_json::from_str::<Value>(&text).unwrap()["blake3"].as_str().unwrap().to_owned();
    let other = text.replacen(&hash, &format!("47551c824a692fa9{}", "0".repeat(48)), 1);
    assert!(other != text);
    std::fs::write(&entry, &other).unwrap();
    let second = add();
    assert!(second.code == Some(0) && !second.err.contains("already"), "{}", second.err);
    assert_eq!(std::fs::read_to_string(&entry).unwrap(), other);
    let whole = format!("gc-{hash}");
    let keys: Vec<String> = lake(&recordings).recordings().iter().map(|one| one.trace_id.clone()).collect();
    assert_eq!(keys, [key, &whole]);
    assert!(lake(&recordings).recording(Some(&whole)).unwrap().table("gc").is_ok());
    assert!(add().err.contains(&format!("is in the dataset already as {whole}")));
    assert_eq!(recordings.run(&["dataset", "verify", "lake"]).code, Some(0));
}

fn entry_of(recordings: &Recordings, key: &str) -> Value {
    serde_json::from_slice(&std::fs::read(recordings.at(&format!("lake/manifest/{key}.json"))).unwrap()).unwrap()
}

fn sha256(path: &Path) -> String {
    use sha2::{Digest, Sha256};

    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Earlier versions knew recordings by their SHA-256 alone.
#[test]
fn a_dataset_that_an_earlier_version_began_goes_on_with_its_hash() {
    let recordings = Recordings::new();
    assert_eq!(recordings.convert("lake", &["--append"]).code, Some(2));
    for (name, text) in content(&recordings.at("lake")) {
        if !name.starts_with("manifest/") {
            continue;
        }
        let mut entry: Value = serde_json::from_slice(&text).unwrap();
        let fields = entry.as_object_mut().unwrap();
        assert_eq!(fields.remove("blake3").unwrap().as_str().unwrap().len(), 64);
        let path = recordings.at(fields["path"].as_str().unwrap());
        assert!(fields.insert("sha256".into(), sha256(&path).into()).is_none());
        std::fs::write(recordings.at("lake").join(name), serde_json::to_vec(&entry).unwrap()).unwrap();
    }
    std::fs::remove_file(recordings.at("lake/manifest.json")).unwrap();
    let again = |times: usize| {
        let run = recordings.run(&["convert", "--tables", FEW, "traces", "-o", "lake", "--append", "--sha256"]);
        assert_eq!(run.err.matches("is in the dataset already").count(), times, "{}", run.err);
    };
    again(5);
    let new = native("traces/new.nettrace");
    std::fs::copy("samples/subjects.nettrace", recordings.at(&new)).unwrap();
    again(5);
    let hash = sha256(&recordings.at(&new));
    let entry = entry_of(&recordings, &format!("new-{}", &hash[..16]));
    assert_eq!((&entry["sha256"], &entry["blake3"]), (&hash.as_str().into(), &"".into()));
    assert_eq!(recordings.run(&["dataset", "compact", "lake"]).code, Some(0));
    assert!(recordings.at("lake/manifest/packed").exists());
    again(6);
    assert_eq!(recordings.run(&["dataset", "verify", "lake"]).code, Some(0));
}

#[test]
fn a_sha256_is_taken_for_those_who_ask() {
    let recordings = Recordings::new();
    let gc = native("traces/gc.nettrace");
    let add = |more: &[&str]| recordings.run(&[&["convert", "--append", "-o", "lake", &gc], more].concat());
    assert_eq!(add(&["--sha256"]).code, Some(0));
    let key = "gc-47551c824a692fa9";
    let entry = entry_of(&recordings, key);
    assert_eq!(entry["sha256"], sha256(&recordings.at(&gc)).as_str());
    let rows = Table::open(&recordings.at(&format!("lake/trace/trace={key}/part-0.parquet")));
    assert_eq!(rows.texts("sha256"), [entry["sha256"].as_str().unwrap()]);
    assert_eq!(rows.texts("blake3"), [entry["blake3"].as_str().unwrap()]);
    assert!(add(&[]).err.contains(&format!("is in the dataset already as {key}")));
}

/// Files are removed by the name that an entry says it has.
#[test]
fn an_entry_that_names_another_place_removes_nothing() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let entries = recordings.at("lake/manifest");
    let broken = std::fs::read_dir(&entries).unwrap().map(|entry| entry.unwrap().path());
    let broken = broken.into_iter().find(|path| path.to_string_lossy().contains("broken")).unwrap();
    let mut entry: Value = serde_json::from_slice(&std::fs::read(&broken).unwrap()).unwrap();
    assert_eq!(entry["status"], "failed");
    // A recording that failed is tried again, and its old entry goes.
    std::fs::create_dir(entries.join("x")).unwrap();
    entry["trace_id"] = "x/../../../precious".into();
    std::fs::write(entries.join("evil.json"), entry.to_string()).unwrap();
    std::fs::write(recordings.at("precious.json"), "{}").unwrap();
    let refused = recordings.convert("lake", &["--append"]);
    assert!(recordings.at("precious.json").is_file());
    assert!(refused.code == Some(2) && refused.err.contains("evil.json"), "{}", refused.err);
}

#[cfg(unix)]
#[test]
fn a_pipe_among_the_entries_costs_itself() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let pipe = recordings.at("lake/manifest/pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for arguments in [&["stats", "lake"][..], &["convert", "traces", "--append", "-o", "lake"]] {
        let run = recordings.run(arguments);
        assert!(run.code == Some(2) && run.err.contains("pipe.json"), "{arguments:?}: {}", run.err);
    }
}

/// A recording that was not whole when it was read has one row in the end.
#[test]
fn a_failure_is_forgotten_when_its_file_is_mended() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    std::fs::copy("samples/heap.nettrace", recordings.at("traces/broken.nettrace")).unwrap();
    assert_eq!(recordings.convert("lake", &["--append"]).code, Some(0));
    let lake = tracequet::dataset::read::Dataset::open(recordings.at("lake")).unwrap();
    assert_eq!((lake.recordings().len(), lake.failed().len()), (5, 0));
    assert_eq!(recorded(&recordings.at("lake/trace")).len(), 5);
}

/// What sums the recordings up is gone by only where it is of these entries.
#[test]
fn a_manifest_that_is_old_or_damaged_is_made_anew() {
    let recordings = Recordings::new();
    let add = |paths: &[&str], more: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| native(path)).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        recordings.run(&[&["convert", "-q", "--tables", FEW, "-o", "lake", "--append"], more, &paths].concat())
    };
    let summary =
        || ["manifest.json", "views.sql"].map(|name| std::fs::read(recordings.at("lake").join(name)).unwrap());
    let put_back = |texts: [Vec<u8>; 2]| {
        for (name, text) in ["manifest.json", "views.sql"].iter().zip(texts) {
            std::fs::write(recordings.at("lake").join(name), text).unwrap();
        }
    };
    assert_eq!(add(&["traces/gc.nettrace"], &[]).code, Some(0));
    let first = summary();
    assert_eq!(add(&["traces"], &[]).code, Some(2));
    let all = content(&recordings.at("lake"));
    // Others were added, and the run was killed before it summed them up.
    put_back(first);
    assert_eq!(add(&["traces/gc.nettrace"], &[]).code, Some(0));
    assert!(all == content(&recordings.at("lake")));
    let whole = summary();
    let text = String::from_utf8(whole[0].clone()).unwrap();
    for other in [String::new(), "{".into(), text.replacen("\"rows\":", "\"rows\":9", 1)] {
        if !other.is_empty() {
            std::fs::write(recordings.at("lake/manifest.json"), &other).unwrap();
        }
        // A text that is no manifest is no dataset, either.
        if other != "{" {
            assert_eq!(add(&["traces/gc.nettrace"], &[]).code, Some(0));
            assert!(all == content(&recordings.at("lake")), "{other}");
        }
    }
    put_back(whole);
    // Converted again with other options: the entries have the same names.
    let gc = native("traces/gc.nettrace");
    let few = ["convert", "-q", "--tables", "gc", &gc, "-o", "lake", "--append", "--refresh"];
    let before = summary();
    assert_eq!(recordings.run(&few).code, Some(0));
    assert!(before != summary());
    let fewer = summary();
    // And the run was killed before it summed up: the manifest is older than the entry.
    put_back(before);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    // Windows replaces no file that is open.
    let manifest = std::fs::File::options().append(true).open(recordings.at("lake/manifest.json")).unwrap();
    manifest.set_modified(old).unwrap();
    drop(manifest);
    assert_eq!(add(&[&gc], &[]).code, Some(0));
    assert!(fewer == summary());
}

/// With a damaged entry the other recordings can be read, and the damage is reported.
#[test]
fn a_damaged_entry_costs_its_recording_until_that_is_converted_again() {
    let recordings = Recordings::new();
    std::fs::remove_file(recordings.at("traces/broken.nettrace")).unwrap();
    recordings.convert("lake", &["--append"]);
    let whole = content(&recordings.at("lake"));
    let entry = recordings.at("lake/manifest/gc-47551c824a692fa9.json");
    std::fs::write(&entry, "{").unwrap();
    let names_the_entry = |run: &Run| run.code == Some(2) && run.err.contains("gc-47551c824a692fa9.json: ");
    let listed = recordings.run(&["dataset", "list", "lake"]);
    assert!(
        names_the_entry(&listed) && listed.out.contains("events-") && !listed.out.contains("gc-47551c824a692fa9"),
        "{}",
        listed.err
    );
    let verified = recordings.run(&["dataset", "verify", "lake"]);
    let expected = "manifest/gc-47551c824a692fa9.json: is damaged: ";
    assert!(verified.code == Some(2) && verified.out.contains(expected), "{}", verified.out);
    let other = native("traces/night/old.nettrace");
    let added = recordings.run(&["convert", "--tables", FEW, &other, "-o", "lake", "--append", "--json"]);
    assert!(names_the_entry(&added), "{}", added.err);
    assert_eq!(json_lines(&added).last().unwrap()["damaged_entries"].as_array().unwrap().len(), 1, "{}", added.out);
    for key in ["gc-47551c824a692fa9", "gc"] {
        let refused = recordings.run(&["survived", "lake", "1", "0x10", "--trace", key]);
        assert!(refused.code == Some(1) && refused.err.contains("gc-47551c824a692fa9"), "{}", refused.err);
    }
    let mended = recordings.convert("lake", &["--append"]);
    assert!(mended.code == Some(0) && !mended.err.contains("gc-47551c824a692fa9"), "{}", mended.err);
    assert!(whole == content(&recordings.at("lake")));
}

/// A file that is broken is tried at each run. What comes of it is there already.
#[test]
fn a_failure_that_is_there_is_left_as_it_is() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let entries = std::fs::read_dir(recordings.at("lake/manifest")).unwrap().map(|entry| entry.unwrap().path());
    let broken = entries.into_iter().find(|path| path.to_string_lossy().contains("broken")).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
    let written = || std::fs::metadata(&broken).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(&broken).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(recordings.convert("lake", &["--append"]).code, Some(2));
    assert_eq!(written(), long_ago);
    // But not where something of it is missing.
    let key = broken.file_stem().unwrap().to_string_lossy().into_owned();
    std::fs::remove_dir_all(recordings.at("lake/trace").join(format!("trace={key}"))).unwrap();
    assert_eq!(recordings.convert("lake", &["--append"]).code, Some(2));
    assert!(written() != long_ago && recordings.at("lake/trace").join(format!("trace={key}")).exists());
}

/// A dataset of 250,000 recordings has such a manifest.
#[test]
fn a_manifest_of_more_than_64_mb_is_read() {
    let recordings = Recordings::new();
    recordings.convert("lake", &["--append"]);
    let manifest = recordings.at("lake/manifest.json");
    let mut text = std::fs::read(&manifest).unwrap();
    text.resize(text.len() + (65 << 20), b' ');
    std::fs::write(&manifest, text).unwrap();
    let listed = recordings.run(&["dataset", "list", "lake"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let added = recordings.convert("lake", &["--append"]);
    assert_eq!(added.code, Some(2), "{}", added.err);
    let file = std::fs::File::options().write(true).open(&manifest).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    for refused in [recordings.run(&["dataset", "list", "lake"]), recordings.convert("lake", &["--append"])] {
        assert!(refused.code == Some(1) && refused.err.contains("at most 256 MB"), "{}", refused.err);
    }
}

/// Their files lie side by side until they are put, and those of an earlier run are found by name.
#[test]
fn recordings_that_are_not_there_are_entries_each_and_are_forgotten_each() {
    let recordings = Recordings::new();
    let name = |number: usize| format!("gone/{number}.nettrace");
    let list: String = (0..600).map(|number| name(number) + "\n").collect();
    std::fs::write(recordings.at("list"), list).unwrap();
    let all = ["convert", "-q", "--append", "--files-from", "list", "-o", "lake"];
    for _ in 0..2 {
        assert_eq!(recordings.run(&all).code, Some(1), "nothing was converted");
        let lake = tracequet::dataset::read::Dataset::open(recordings.at("lake")).unwrap();
        let mut failed: Vec<_> = lake.failed().iter().map(|failed| failed.path.display().to_string()).collect();
        failed.sort();
        let mut expected: Vec<_> = (0..600).map(name).collect();
        expected.sort();
        assert_eq!(failed, expected);
        assert_eq!(recordings.run(&["dataset", "verify", "lake"]).code, Some(0));
        let hidden = std::fs::read_dir(recordings.at("lake")).unwrap().flatten();
        assert!(!hidden.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with('.')));
    }
    std::fs::create_dir(recordings.at("gone")).unwrap();
    std::fs::copy(recordings.at("traces/night/old.nettrace"), recordings.at(&name(77))).unwrap();
    assert_eq!(recordings.run(&all).code, Some(2));
    let lake = tracequet::dataset::read::Dataset::open(recordings.at("lake")).unwrap();
    assert!(lake.recordings().len() == 1 && lake.failed().len() == 599);
}
