//! What is left when a conversion fails in the middle: full disks, no place for temporary files, a kill at each step of
//! the commit. A dataset is there whole or not at all, and what stood there before stays until the new one is whole.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::lake::many::content;
use crate::support::files::files;
use crate::support::files::sample;
use crate::support::killed::killed_at;
use crate::support::patience::ends;
use crate::support::skip::{MOUNTS, can_trace, skip};

const TRACEQUET: &str = env!("CARGO_BIN_EXE_tracequet");

/// What writes a few tables. A dataset of all has a hundred files, and each is a step of its commit or of the removal
/// of the old one.
const FEW: [&str; 5] = ["convert", "--quiet", "--overwrite", "--tables", "gc,gc_pause"];
const ALL: [&str; 3] = ["convert", "--quiet", "--overwrite"];

/// The calls of a commit to one dataset, which makes few directories and syncs what it wrote.
const COMMIT: &str = "rename,renameat,renameat2,unlink,unlinkat,rmdir,fsync,fdatasync";

fn convert(how: &[&str], recording: &Path, out: &Path) {
    let status = Command::new(TRACEQUET).args(how).arg("-o").arg(out).arg(recording).status().unwrap();
    assert!(matches!(status.code(), Some(0 | 2)), "{}", recording.display());
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_kill_at_each_step_of_the_commit_leaves_the_old_dataset_or_the_new_one() {
    if !can_trace("a_kill_at_each_step_of_the_commit_leaves_the_old_dataset_or_the_new_one") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [old, new, at] = ["old", "new", "at"].map(|name| folder.path().join(name));
    std::fs::create_dir(&at).unwrap();
    let out = at.join("out");
    convert(&FEW, &sample("events.nettrace"), &old);
    convert(&FEW, &sample("gc-churn.nettrace"), &new);
    let (old, new) = (files(&old), files(&new));
    assert!(old != new && !old.is_empty());
    let mut kills = 0;
    loop {
        convert(&FEW, &sample("events.nettrace"), &out);
        assert_eq!(names(&at), ["out"], "what a kill left is removed by the next conversion");
        let mut command = killed_at(COMMIT, kills + 1);
        command.args(FEW).arg("-o").arg(&out);
        let status = command.arg(sample("gc-churn.nettrace")).status().unwrap();
        let there = files(&out);
        assert!(there == old || there == new, "kill {}: {:?}", kills + 1, names(&at));
        if status.success() {
            assert!(there == new);
            break;
        }
        kills += 1;
        assert!(kills < 2000, "it does not end");
    }
    // The exchange and the removal of the old dataset at least.
    assert!(kills >= 3, "{kills} kills");
    println!("{kills} kills");
}

/// What a killed run left is finished by the same command, and then nothing tells that there was a kill.
#[test]
fn a_kill_at_each_step_of_expiry_loses_nothing_else() {
    if !can_trace("a_kill_at_each_step_of_expiry_loses_nothing_else") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [whole, undisturbed, at] = ["whole", "undisturbed", "at"].map(|name| folder.path().join(name));
    let make = |lake: &Path| {
        let recordings = ["events.nettrace", "gc-churn.nettrace", "gc-churn-3.1.nettrace"].map(sample);
        let mut command = Command::new(TRACEQUET);
        command.args(["convert", "-q", "--append", "--tables", "gc,gc_pause", "-o"]).arg(lake).args(recordings);
        assert!(matches!(command.status().unwrap().code(), Some(0 | 2)));
    };
    make(&whole);
    let whole = content(&whole);
    for more in [&["--keep-last", "1"][..], &["--keep-last", "1", "--keep-tables", "gc_pause"]] {
        make(&undisturbed);
        let expire = |command: &mut Command, lake: &Path| {
            command.args(["dataset", "expire"]).arg(lake).args(more).stdout(Stdio::null()).status().unwrap().success()
        };
        assert!(expire(&mut Command::new(TRACEQUET), &undisturbed));
        let expected = content(&undisturbed);
        assert!(expected.len() < whole.len());
        let mut kills = 0;
        loop {
            make(&at);
            assert!(content(&at) == whole, "kill {kills}");
            let is_done = expire(&mut killed_at(COMMIT, kills + 1), &at);
            assert!(expire(&mut Command::new(TRACEQUET), &at));
            assert!(content(&at) == expected, "kill {}", kills + 1);
            std::fs::remove_dir_all(&at).unwrap();
            if is_done {
                break;
            }
            kills += 1;
            assert!(kills < 2000, "it does not end");
        }
        // The entry, the files of two tables and the summary, of two recordings.
        assert!(kills >= 8, "{kills} kills");
        std::fs::remove_dir_all(&undisturbed).unwrap();
    }
}

#[test]
fn a_kill_at_each_step_of_a_change_of_labels_loses_nothing() {
    if !can_trace("a_kill_at_each_step_of_a_change_of_labels_loses_nothing") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [undisturbed, at] = ["undisturbed", "at"].map(|name| folder.path().join(name));
    let make = |lake: &Path| {
        let mut command = Command::new(TRACEQUET);
        command.args(["convert", "-q", "--append", "--tables", "gc", "--label", "branch=main", "-o"]).arg(lake);
        command.args(["exit-early.nettrace", "gc-churn.nettrace"].map(sample));
        assert!(matches!(command.status().unwrap().code(), Some(0 | 2)));
    };
    make(&undisturbed);
    let label = |command: &mut Command, lake: &Path| {
        let change = ["--all", "--set", "baseline=2026-11", "--unset", "branch"];
        command.args(["dataset", "label"]).arg(lake).args(change).stdout(Stdio::null()).status().unwrap().success()
    };
    let whole = content(&undisturbed);
    assert!(label(&mut Command::new(TRACEQUET), &undisturbed));
    let expected = content(&undisturbed);
    assert!(expected != whole && expected.len() == whole.len());
    let mut kills = 0;
    loop {
        make(&at);
        let is_done = label(&mut killed_at(COMMIT, kills + 1), &at);
        assert!(label(&mut Command::new(TRACEQUET), &at));
        assert!(content(&at) == expected, "kill {}", kills + 1);
        std::fs::remove_dir_all(&at).unwrap();
        if is_done {
            break;
        }
        kills += 1;
        assert!(kills < 2000, "it does not end");
    }
    // The file, the note and the entry of two recordings, and the summary.
    assert!(kills >= 8, "{kills} kills");
}

/// Runs a script with a small file system of `kb` KiB at `$SMALL`, which is empty and gone afterwards: the lines that
/// it prints, and its errors. `None` where mounting is not allowed.
fn with_small_disk(folder: &Path, kb: u32, script: &str) -> Option<(Vec<String>, String)> {
    let small = folder.join("small");
    std::fs::create_dir_all(&small).unwrap();
    let whole = format!("mount -t tmpfs -o size={kb}k none \"$SMALL\" 2>/dev/null || exit 77\n{script}\nexit 0");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &whole]).env("SMALL", &small).env("TRACEQUET", TRACEQUET);
    command.stdin(Stdio::null());
    let output = ends("a conversion to a small disk", || command.output()).ok()?;
    match output.status.code() {
        Some(0) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(&output.stdout).lines().map(str::to_owned).collect(), text(&output.stderr)))
        }
        // The shell's own word for it (77), or unshare's: no namespaces are allowed here.
        Some(77 | 1) => None,
        _ => panic!("{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn a_full_disk_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    convert(&ALL, &sample("events.nettrace"), &old);
    let size: usize = files(&old).values().map(|bytes| bytes.len().next_multiple_of(4096) + 4096).sum();
    // The old dataset has room, the new one has none, little, more, and in the end enough.
    let (mut refused, mut last) = (0, 0);
    for more in [0, 16, 64, 128, 256, 400, 800, 4000] {
        let script = format!(
            "cp -r {old:?} \"$SMALL/out\" || exit 78\n\
             \"$TRACEQUET\" convert --quiet --overwrite {input:?} -o \"$SMALL/out\"; echo \"code $?\"\n\
             ls -A \"$SMALL\"; diff -r {old:?} \"$SMALL/out\" >/dev/null && echo old",
            input = sample("gc-churn.nettrace"),
        );
        let Some((said, errors)) = with_small_disk(folder.path(), (size / 1024) as u32 + 64 + more, &script) else {
            assert_eq!(refused, 0, "with {more} KiB");
            return skip("a_full_disk_leaves_what_was_there_and_nothing_else", "mounting is not allowed here", MOUNTS);
        };
        if said[0] == "code 0" {
            assert_eq!(said, ["code 0", "out"], "with {more} KiB");
            last = more;
            break;
        }
        assert_eq!(said, ["code 1", "out", "old"], "with {more} KiB: {errors}");
        assert!(errors.contains("No space left on device"), "with {more} KiB: {errors}");
        refused += 1;
    }
    assert!(refused >= 3 && last > 0, "{refused} refused, enough with {last}");
}

/// What a growing dataset has when the disk is full stays, nothing is half there, and the next run goes on.
#[test]
fn a_full_disk_in_mid_batch_costs_the_recordings_that_had_no_room() {
    const TEST: &str = "a_full_disk_in_mid_batch_costs_the_recordings_that_had_no_room";
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join("recordings");
    std::fs::create_dir(&recordings).unwrap();
    for name in ["events-3.1", "gc-churn-3.1", "gc-churn"] {
        let name = format!("{name}.nettrace");
        std::fs::copy(sample(&name), recordings.join(name)).unwrap();
    }
    // With files of their own some recordings may have had room; a pack is there or not.
    for (how, all_entries, has_parts) in [(&[][..], "there 3", true), (&["--pack"], "there 1", false)] {
        let what = how.join(" ");
        let expected = folder.path().join(format!("expected{what}"));
        let mut undisturbed = Command::new(TRACEQUET);
        undisturbed.args(["convert", "--quiet", "--append"]).args(how).arg(&recordings).arg("-o").arg(&expected);
        assert_eq!(undisturbed.output().unwrap().status.code(), Some(0));
        let (mut refused, mut partly) = (0, 0);
        for kb in [64, 500, 900, 1_300, 20_000] {
            let script = format!(
                "add() {{ \"$TRACEQUET\" convert --quiet --append {what} --jobs 2 {recordings:?} -o \"$SMALL/lake\"; }}\n\
                 add; echo \"code $?\"; ls -A \"$SMALL/lake\" | grep 'tracequet-\\|packed.'\n\
                 find \"$SMALL/lake/manifest\" -name '*.half'\n\
                 echo \"there $(find \"$SMALL/lake/manifest\" -name '*.json' | wc -l)\"\n\
                 mount -o remount,size=20000k \"$SMALL\"\n\
                 add; echo \"then $?\"; \"$TRACEQUET\" dataset verify \"$SMALL/lake\" >/dev/null; echo \"verified $?\"\n\
                 diff -r -x .lock {expected:?} \"$SMALL/lake\" && echo same",
            );
            let Some((said, errors)) = with_small_disk(folder.path(), kb, &script) else {
                assert_eq!(refused, 0, "{what} with {kb} KiB");
                return skip(TEST, "mounting is not allowed here", MOUNTS);
            };
            let lines: Vec<&str> = said.iter().map(String::as_str).collect();
            let [code, there, then, verified, all] = lines[..] else {
                panic!("{what} with {kb} KiB: {said:?} {errors}")
            };
            assert_eq!((then, verified, all), ("then 0", "verified 0", "same"), "{what} with {kb} KiB: {errors}");
            if code == "code 0" {
                assert_eq!(there, all_entries);
                break;
            }
            assert!(code == "code 1" && errors.contains("No space left on device"), "{what} {kb} KiB: {code} {errors}");
            refused += 1;
            partly += usize::from(there != "there 0");
        }
        assert!(refused >= 2 && (partly >= 1) == has_parts, "{what}: {refused} refused, {partly} with some recordings");
    }
}

/// A compaction needs room for what it writes beside what is there. Without it the dataset stays as it was, or, once
/// its files are there, has the new ones and lacks only their summary.
#[test]
fn a_full_disk_in_mid_compaction_loses_nothing() {
    const TEST: &str = "a_full_disk_in_mid_compaction_loses_nothing";
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    let mut made = Command::new(TRACEQUET);
    made.args(["convert", "--quiet", "--append"])
        .args(["events-3.1", "gc-churn-3.1", "gc-churn"].map(|name| sample(&format!("{name}.nettrace"))));
    assert_eq!(made.arg("-o").arg(&old).output().unwrap().status.code(), Some(0));
    let size: usize = files(&old).values().map(|bytes| bytes.len().next_multiple_of(4096) + 4096).sum();
    let expected = folder.path().join("expected");
    std::fs::create_dir(&expected).unwrap();
    let copied = Command::new("cp").arg("-r").arg(old.join(".")).arg(&expected).status().unwrap();
    let compact = Command::new(TRACEQUET).args(["dataset", "compact", "--grace", "0"]).arg(&expected).output().unwrap();
    assert!(copied.success() && compact.status.success(), "{compact:?}");
    let (mut refused, mut kept, mut is_enough) = (0, 0, false);
    // From what the old dataset has no room in, in steps.
    for kb in (0..100).map(|step| (size / 2048) as u32 + 96 * step) {
        let script = format!(
            "cp -r {old:?} \"$SMALL/lake\" 2>/dev/null || {{ echo small; exit 0; }}\n\
             compact() {{ \"$TRACEQUET\" dataset compact --grace 0 \"$SMALL/lake\" >/dev/null; }}\n\
             compact; echo \"code $?\"; \"$TRACEQUET\" dataset verify \"$SMALL/lake\" | grep -c ' 0 wrong\\|manifest.json: does not match'\n\
             diff -r -x .lock -x .packing {old:?} \"$SMALL/lake\" >/dev/null && echo old\n\
             mount -o remount,size=40000k \"$SMALL\"\n\
             compact; echo \"then $?\"; diff -r -x .lock -x .packing {expected:?} \"$SMALL/lake\" && echo same",
        );
        let Some((said, errors)) = with_small_disk(folder.path(), kb, &script) else {
            assert_eq!(refused, 0, "with {kb} KiB");
            return skip(TEST, "mounting is not allowed here", MOUNTS);
        };
        if said == ["small"] {
            continue;
        }
        if said[0] == "code 0" {
            assert_eq!(said, ["code 0", "1", "then 0", "same"], "with {kb} KiB: {errors}");
            is_enough = true;
            break;
        }
        let is_old = said == ["code 1", "1", "old", "then 0", "same"];
        assert!(is_old || said == ["code 1", "1", "then 0", "same"], "with {kb} KiB: {said:?} {errors}");
        kept += usize::from(is_old);
        assert!(errors.contains("No space left on device"), "with {kb} KiB: {errors}");
        refused += 1;
    }
    assert!(kept >= 2 && is_enough, "{refused} refused, {kept} kept");
}

/// A recorder that still writes.
#[test]
fn a_recording_that_is_being_written_is_told_and_read_again_later() {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    let folder = tempfile::tempdir().unwrap();
    let growing = folder.path().join("app.nettrace");
    std::fs::copy(sample("stacks.nettrace"), &growing).unwrap();
    let lake = folder.path().join("lake");
    let add = |path: &Path| {
        let mut command = Command::new(TRACEQUET);
        command.args(["convert", "--quiet", "--append", "-o"]).arg(&lake).arg(path).arg(sample("events.nettrace"));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let is_done = AtomicBool::new(false);
    let (code, errors) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::File::options().append(true).open(&growing).unwrap();
            while !is_done.load(Ordering::Relaxed) {
                file.write_all(&[0]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let added = add(&growing);
        is_done.store(true, Ordering::Relaxed);
        added
    });
    assert!(code == Some(2) && errors.contains("the file changed while it was read"), "{code:?} {errors}");
    std::fs::copy(sample("stacks.nettrace"), &growing).unwrap();
    assert_eq!(add(&growing).0, Some(0));
    let lake = tracequet::dataset::read::Dataset::open(&lake).unwrap();
    assert_eq!((lake.recordings().len(), lake.failed().len()), (2, 0));
}

/// A pipe and an archive are copied to a temporary file when they have to be read more than once.
#[test]
fn no_place_for_temporary_files_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("machine.etl");
    std::fs::write(&recording, crate::etl::processes::recording()).unwrap();
    let out = folder.path().join("out");
    for missing in ["/nonexistent", "/dev/full"] {
        let mut command = Command::new(TRACEQUET);
        command.args(["convert", "--quiet", "-", "-o"]).arg(&out).env("TMPDIR", missing);
        let mut cat = Command::new("cat").arg(&recording).stdout(Stdio::piped()).spawn().unwrap();
        command.stdin(cat.stdout.take().unwrap());
        let output = ends(missing, || command.output().unwrap());
        cat.wait().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{missing}: {errors}");
        assert!(errors.contains("temporary file"), "{missing}: {errors}");
        assert_eq!(names(folder.path()), ["machine.etl"]);
    }
}

#[test]
fn a_full_place_for_temporary_files_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("machine.etl");
    std::fs::write(&recording, crate::etl::processes::recording()).unwrap();
    let script = format!(
        "head -c 100000 /dev/zero > \"$SMALL/other\" 2>/dev/null\n\
         cat {recording:?} | TMPDIR=\"$SMALL\" \"$TRACEQUET\" convert --quiet - -o {out:?}; echo \"code $?\"\nls -A \"$SMALL\"",
        out = folder.path().join("out"),
    );
    let Some((said, errors)) = with_small_disk(folder.path(), 64, &script) else {
        return skip("a_full_place_for_temporary_files_is_said_at_once", "mounting is not allowed here", MOUNTS);
    };
    assert_eq!(said, ["code 1", "other"], "{errors}");
    assert!(errors.contains("No space left on device"), "{errors}");
    assert_eq!(names(folder.path()), ["machine.etl", "small"], "no dataset, whole or half");
}

/// Runs the program where a thread takes a gigabyte of address space, of which there are `limit` kilobytes.
#[cfg(target_os = "linux")]
fn with_few_threads(limit: &str, out: &Path) -> Output {
    let script = format!("ulimit -v {limit}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", TRACEQUET]).args(ALL).arg("-o").arg(out).arg(sample("events.nettrace"));
    command.env("RUST_MIN_STACK", (1 << 30).to_string()).output().unwrap()
}

/// Each thread that cannot be made is done without; where none can be made, that is an error and no panic.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_made_are_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let [out, all] = ["out", "all"].map(|name| folder.path().join(name));
    convert(&ALL, &sample("events.nettrace"), &all);
    let mut codes = Vec::new();
    for gigabytes in 0..7 {
        let limit = ((gigabytes << 20) + 500_000).to_string();
        let output = with_few_threads(&limit, &out);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!message.contains("panic"), "{gigabytes}: {message}");
        codes.push(output.status.code());
        match output.status.code() {
            Some(1) => assert!(!out.exists() && message.contains("Resource temporarily unavailable"), "{message}"),
            Some(0 | 2) => {
                assert_eq!(names(&out), names(&all), "{gigabytes}");
                std::fs::remove_dir_all(&out).unwrap();
            }
            other => panic!("{gigabytes}: {other:?} {message}"),
        }
    }
    assert_eq!(codes.first(), Some(&Some(1)), "without any thread");
    assert_eq!(codes.last(), codes.get(2), "with all of them, and with two: {codes:?}");
    assert_ne!(codes.first(), codes.last());
}
