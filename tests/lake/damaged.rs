//! Datasets of several recordings whose entries and folders are damaged, or made to do harm: the others can be read,
//! added to and removed, and nothing outside of the dataset is touched.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lake::many::{FEW, Recordings, content, native};
use crate::support::program::Run;

const GC: &str = "gc-47551c824a692fa9";

/// A dataset of three recordings, and a file beside it that nothing may touch.
struct Lake {
    recordings: Recordings,
}

impl Lake {
    fn new(more: &[&str]) -> Lake {
        let recordings = Recordings::new();
        std::fs::remove_file(recordings.at("traces/broken.nettrace")).unwrap();
        std::fs::remove_file(recordings.at("traces/night/7.corprof")).unwrap();
        let lake = Lake { recordings };
        std::fs::create_dir_all(lake.precious().parent().unwrap()).unwrap();
        std::fs::write(lake.precious(), "precious").unwrap();
        // Something of one of them was lost.
        let made = lake.append(more);
        assert_eq!(made.code, Some(2), "{}", made.err);
        lake
    }

    fn at(&self, name: &str) -> PathBuf {
        self.recordings.at("lake").join(name)
    }

    /// Where files of the recording would be, if a name led out of the dataset.
    fn precious(&self) -> PathBuf {
        self.recordings.at(&format!("elsewhere/trace={GC}/part-0.parquet"))
    }

    fn append(&self, more: &[&str]) -> Run {
        self.recordings.convert("lake", &[&["--append"], more].concat())
    }

    fn run(&self, command: &str, more: &[&str]) -> Run {
        self.recordings.run(&[&["dataset", command, "lake"], more].concat())
    }

    fn entry(&self) -> PathBuf {
        self.at(&format!("manifest/{GC}.json"))
    }

    /// The names of folders and files of the recording, and of what was not finished.
    fn left(&self) -> Vec<String> {
        let names = content(&self.recordings.at("lake")).into_keys();
        names.filter(|name| name.contains(GC) || name.ends_with(".half")).collect()
    }

    /// Holds that the entry is damaged: it is named, the others can be had, and it can be removed.
    fn costs_itself(&self, what: &str) {
        let name = format!("{GC}.json");
        let (listed, verified) = (self.run("list", &[]), self.run("verify", &[]));
        assert!(listed.code == Some(2) && listed.err.contains(&name), "{what}: {}", listed.err);
        assert!(listed.out.contains("events-") && listed.out.contains("old-"), "{what}: {}", listed.out);
        assert!(verified.code == Some(2) && verified.out.contains(&name), "{what}: {}", verified.out);
        let old = native("traces/night/old.nettrace");
        let added = self.recordings.run(&["convert", "-q", "--tables", FEW, &old, "-o", "lake", "--append"]);
        assert!(added.code == Some(2) && added.err.contains(&name), "{what}: {}", added.err);
        let removed = self.run("remove", &[GC]);
        assert_eq!(removed.code, Some(0), "{what}: {}", removed.err);
        assert_eq!((self.left(), self.precious().exists()), (Vec::new(), true), "{what}");
        assert_eq!(self.run("verify", &[]).code, Some(0), "{what}");
        let again = self.append(&[]);
        assert_eq!(again.code, Some(0), "{what}: {}", again.err);
        assert_eq!(self.run("verify", &[]).code, Some(0), "{what}");
    }
}

/// What is left is what a dataset has to which only the others were added.
#[test]
fn old_recordings_go_whole() {
    let lake = Lake::new(&[]);
    let whole = content(&lake.recordings.at("lake"));
    let start = |name: &String| {
        let entry: Value = serde_json::from_slice(&whole[name]).unwrap();
        (entry["start"].as_str().unwrap().to_owned(), entry["trace_id"].as_str().unwrap().to_owned())
    };
    let mut starts: Vec<_> = whole.keys().filter(|name| name.starts_with("manifest/")).map(start).collect();
    starts.sort();
    let (old, newest) = (&starts[..2], &starts[2].1);
    let plan = lake.run("expire", &["--keep-last", "1", "--older-than", "1h", "--dry-run"]);
    assert_eq!((plan.code, plan.out.lines().count()), (Some(0), 4), "{}{}", plan.out, plan.err);
    assert!(whole == content(&lake.recordings.at("lake")), "nothing is changed by a plan");
    let nothing = lake.run("expire", &["--keep-last", "1", "--where", "service=orders"]);
    assert_eq!(nothing.out, "0 recordings removed, 0 bytes\n");
    let expired = lake.run("expire", &["--keep-last", "1"]);
    assert_eq!(expired.out, plan.out.replace("would be removed", "removed"));
    for ((start, key), line) in old.iter().zip(expired.out.lines().skip(1)) {
        assert!(line.contains(start) && line.trim_start().starts_with(key), "{line}");
    }
    let left = content(&lake.recordings.at("lake"));
    let is_of_old = |name: &String| old.iter().any(|(_, key)| name.contains(key.as_str()));
    let is_summary = |name: &String| name == "manifest.json" || name == "views.sql";
    let expected = whole.iter().filter(|(name, _)| !is_of_old(name) && !is_summary(name));
    assert!(expected.eq(left.iter().filter(|(name, _)| !is_summary(name))));
    let listed = lake.run("list", &[]);
    assert_eq!(
        (listed.code, listed.out.lines().count(), listed.out.contains(newest)),
        (Some(0), 2, true),
        "{}",
        listed.out
    );
    assert_eq!(lake.run("verify", &[]).code, Some(0));
    // They can come back.
    assert_eq!(lake.append(&[]).code, Some(2));
    assert!(whole == content(&lake.recordings.at("lake")));
}

#[test]
fn a_recording_that_does_not_say_when_it_began_is_not_old() {
    let lake = Lake::new(&[]);
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/heap-10.gcdump");
    let sample = sample.to_str().unwrap();
    let added = lake.recordings.run(&["convert", "-q", "--tables", FEW, sample, "-o", "lake", "--append"]);
    assert!(added.code.is_some_and(|code| code != 1), "{}", added.err);
    let entries = std::fs::read_dir(lake.at("manifest")).unwrap().map(|entry| entry.unwrap().path());
    let of_dump: Vec<PathBuf> = entries.filter(|path| path.to_str().unwrap().contains("heap-10")).collect();
    let entry: Value = serde_json::from_slice(&std::fs::read(&of_dump[0]).unwrap()).unwrap();
    assert_eq!((of_dump.len(), entry.get("start")), (1, None), "{entry}");
    let listed = lake.run("list", &[]);
    assert!(listed.out.contains("heap-10") && !listed.out.contains("1970"), "{}", listed.out);
    for wanted in [&["--older-than", "1d"][..], &["--keep-last", "0"]] {
        let expired = lake.run("expire", wanted);
        assert!(expired.code == Some(0) && !expired.out.contains("heap-10"), "{}{}", expired.out, expired.err);
    }
    assert_eq!(lake.run("list", &[]).out.lines().count(), 2, "it is the only one that is left");
    assert_eq!(lake.run("verify", &[]).code, Some(0));
}

#[test]
fn figures_stay_when_rows_go() {
    let lake = Lake::new(&[]);
    let whole = content(&lake.recordings.at("lake"));
    let wrong = lake.run("expire", &["--keep-last", "0", "--keep-tables", "gc_puase"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("did you mean gc_pause?"), "{}", wrong.err);
    assert!(lake.run("expire", &["--keep-tables", "gc_pause"]).err.contains("--older-than"));
    let expired = lake.run("expire", &["--keep-last", "0", "--keep-tables", "gc_pause"]);
    assert!(expired.out.contains("3 recordings reduced to the tables that stay"), "{}{}", expired.out, expired.err);
    let left = content(&lake.recordings.at("lake"));
    let stays = |name: &String| {
        ["gc_pause/", "trace/", "trace_label/", "diagnostic/"].iter().any(|table| name.starts_with(table))
            || name.contains("trace=none")
    };
    let files = |content: &std::collections::BTreeMap<String, Vec<u8>>| {
        content.clone().into_iter().filter(|(name, _)| name.contains("/trace=")).collect::<Vec<_>>()
    };
    assert!(files(&left) == files(&whole).into_iter().filter(|(name, _)| stays(name)).collect::<Vec<_>>());
    let verified = lake.run("verify", &[]);
    assert_eq!(verified.code, Some(0), "{}", verified.out);
    // A question about the rest says that it was not kept, and not that there was nothing.
    let asked = lake.recordings.run(&["survived", "lake", "1", "0x1000", "--trace", GC]);
    assert!(asked.code == Some(1) && asked.err.contains("the dataset has no table gc"), "{}{}", asked.out, asked.err);
    // The recording is known, and comes back as a whole when that is asked for.
    assert_eq!(lake.append(&["--refresh"]).code, Some(2));
    assert!(whole == content(&lake.recordings.at("lake")));
}

#[test]
fn an_entry_that_names_other_places_costs_itself() {
    let lake = Lake::new(&[]);
    let whole = content(&lake.recordings.at("lake"));
    for name in ["../../elsewhere", "../elsewhere", "/elsewhere", "a/../../elsewhere", "gc/more", "trace=x", ""] {
        let mut entry: Value = serde_json::from_slice(&std::fs::read(lake.entry()).unwrap()).unwrap();
        entry["tables"][0]["name"] = name.into();
        std::fs::write(lake.entry(), entry.to_string()).unwrap();
        lake.costs_itself(name);
        assert!(whole == content(&lake.recordings.at("lake")), "{name}");
    }
}

#[test]
fn an_entry_that_is_too_large_costs_itself() {
    let lake = Lake::new(&[]);
    let whole = content(&lake.recordings.at("lake"));
    std::fs::File::options().write(true).open(lake.entry()).unwrap().set_len((64 << 20) + 1).unwrap();
    lake.costs_itself("too large");
    assert!(whole == content(&lake.recordings.at("lake")));
}

/// They are not read: what they say may be damaged, or meant to do harm.
#[test]
fn what_was_left_behind_goes_by_what_lies_there() {
    let lake = Lake::new(&[]);
    let whole = content(&lake.recordings.at("lake"));
    let hostile = r#"{"trace_id":"x","tables":[{"name":"../../elsewhere","rows":1,"bytes":1}]}"#;
    for (name, text) in
        [("x.json.half", hostile), ("y.json.half", ""), ("z.entry.half", "{"), ("...json.half", hostile)]
    {
        std::fs::write(lake.at("manifest").join(name), text).unwrap();
    }
    // One of a recording that is there takes nothing of it.
    std::fs::write(lake.at("manifest").join(format!("{GC}.json.half")), hostile).unwrap();
    std::fs::create_dir_all(lake.at("manifest/folder.json.half/more")).unwrap();
    std::fs::File::create(lake.at("manifest/large.json.half")).unwrap().set_len((64 << 20) + 1).unwrap();
    for name in ["gc/trace=x", "event/P/E/trace=y", "gc_pause/trace=large", "heap_object/trace=folder"] {
        std::fs::create_dir_all(lake.at(name)).unwrap();
        std::fs::write(lake.at(name).join("part-0.parquet"), "rows").unwrap();
    }
    let appended = lake.append(&[]);
    assert_eq!(appended.code, Some(0), "{}", appended.err);
    assert!(lake.precious().exists() && !lake.at("event/P").exists());
    assert!(whole == content(&lake.recordings.at("lake")));
}

#[cfg(unix)]
#[test]
fn nothing_is_written_or_removed_behind_a_link() {
    use std::os::unix::fs::symlink;

    let lake = Lake::new(&[]);
    let elsewhere = lake.recordings.at("away");
    let new = lake.recordings.at("new.nettrace");
    std::fs::copy("samples/server-gc.nettrace", &new).unwrap();
    let part = format!("gc/trace={GC}");
    let at_away = || match elsewhere.is_dir() {
        true => content(&elsewhere),
        false => [(String::new(), std::fs::read(&elsewhere).unwrap())].into(),
    };
    for name in ["gc", part.as_str(), "event", "manifest", "manifest/.lock"] {
        let link = lake.at(name);
        std::fs::rename(&link, &elsewhere).unwrap();
        symlink(&elsewhere, &link).unwrap();
        let before = at_away();
        let all = ["convert", "-q", "--tables", FEW, "-o", "lake"];
        let with = |more: &[&str]| lake.recordings.run(&[&all[..], more].concat());
        let refresh = ["convert", "-q", "--tables", "gc", "traces", "-o", "lake", "--append", "--refresh"];
        let runs = [
            ("remove", lake.run("remove", &[GC])),
            ("refresh", lake.recordings.run(&refresh)),
            ("overwrite", with(&["--overwrite", "traces"])),
        ];
        for (what, run) in runs {
            let named =
                run.err.contains(&format!("{name} is a link")) || run.err.contains(&format!("{name}: is a link"));
            let named = named || run.err.contains(&format!("{name}, which is a link"));
            assert!(run.code == Some(1) && named, "{name}, {what}: {:?} {}", run.code, run.err);
        }
        if name != part {
            let added = with(&["--append", new.to_str().unwrap()]);
            assert!(added.code == Some(1) && added.err.contains("is a link"), "{name}: {}", added.err);
        }
        // `--refresh` may have taken other recordings away, but nothing that lies elsewhere.
        assert!(before == at_away(), "{name}");
        std::fs::remove_file(&link).unwrap();
        std::fs::rename(&elsewhere, &link).unwrap();
        let mended = lake.append(&[]);
        assert_ne!(mended.code, Some(1), "{name}: {}", mended.err);
    }
    // The dataset itself may go by a link.
    symlink(lake.recordings.at("lake"), lake.recordings.at("by-link")).unwrap();
    let added =
        lake.recordings.run(&["convert", "-q", new.to_str().unwrap(), "--tables", FEW, "--append", "-o", "by-link"]);
    assert_eq!(added.code, Some(0), "{}", added.err);
}

#[test]
fn a_manifest_is_made_anew_of_the_entries() {
    for more in [&[][..], &["--format", "arrow", "--address-type", "int64"]] {
        let lake = Lake::new(more);
        let whole = content(&lake.recordings.at("lake"));
        let manifest = lake.at("manifest.json");
        type Damage<'d> = (&'d str, &'d dyn Fn(&Path));
        let damages: [Damage<'_>; 4] = [
            ("no JSON", &|path| std::fs::write(path, "{").unwrap()),
            ("nothing", &|path| std::fs::remove_file(path).unwrap()),
            ("too large", &|path| std::fs::File::create(path).unwrap().set_len((256 << 20) + 1).unwrap()),
            ("others", &|path| {
                let text = std::fs::read_to_string(path).unwrap();
                std::fs::write(path, text.replace("\"gc\"", "\"gcs\"")).unwrap();
            }),
        ];
        for (what, damage) in damages {
            damage(&manifest);
            std::fs::remove_file(lake.at("views.sql")).unwrap();
            assert_ne!(lake.run("verify", &[]).code, Some(0), "{what}");
            let repaired = lake.run("repair", &[]);
            assert_eq!((repaired.code, repaired.err.as_str()), (Some(0), ""), "{what}");
            assert!(whole == content(&lake.recordings.at("lake")), "{what}");
        }
        std::fs::write(lake.entry(), "{").unwrap();
        let repaired = lake.run("repair", &[]);
        assert!(repaired.code == Some(2) && repaired.err.contains(&format!("{GC}.json")), "{}", repaired.err);
        let again = lake.append(more);
        assert_eq!(again.code, Some(0), "{}", again.err);
        assert!(whole == content(&lake.recordings.at("lake")));
    }
    let lake = Lake::new(&[]);
    let refused = lake.recordings.run(&["dataset", "repair", "traces"]);
    assert!(refused.code == Some(1) && refused.err.contains("not a dataset of several recordings"), "{}", refused.err);
}

/// Entries of older releases have the options as a text, and keys with fewer digits.
#[test]
fn an_entry_of_an_older_release_is_read_and_stays() {
    let lake = Lake::new(&[]);
    let mut entry: Value = serde_json::from_slice(&std::fs::read(lake.entry()).unwrap()).unwrap();
    assert_eq!(entry["options"]["tables"], serde_json::json!(FEW.split(',').collect::<Vec<_>>()));
    let old = "gc-7be25f48";
    entry["trace_id"] = old.into();
    entry["options"] = format!("tables={FEW}").into();
    std::fs::write(lake.at(&format!("manifest/{old}.json")), entry.to_string()).unwrap();
    std::fs::remove_file(lake.entry()).unwrap();
    for name in lake.left() {
        let to = lake.at(&name.replace(GC, old));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(lake.at(&name), to).unwrap();
        std::fs::remove_dir(lake.at(&name).parent().unwrap()).unwrap();
    }
    let added = lake.recordings.run(&["convert", "--tables", FEW, "traces", "--append", "-o", "lake"]);
    assert!(added.code == Some(0) && added.err.contains(&format!("already as {old}")), "{}", added.err);
    let verified = lake.run("verify", &[]);
    assert_eq!(verified.code, Some(0), "{}", verified.out);
    // With --refresh it gets the key of now.
    assert_eq!(lake.append(&["--refresh"]).code, Some(0));
    assert!(lake.entry().is_file() && !lake.at(&format!("manifest/{old}.json")).exists());
    assert_eq!(lake.run("verify", &[]).code, Some(0));
}
