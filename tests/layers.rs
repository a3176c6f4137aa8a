//! The rooms of the house use only rooms upstream of them, files stay small, and only `table` and `sink` know Arrow.

use std::path::{Path, PathBuf};

const EVERYWHERE: &[&str] = &["bytes", "error", "guid", "time"];

/// Each room with the rooms it may use beside itself and those that may be used everywhere. Data flows from top to
/// bottom; `pipeline` and `inspect` join the rooms, and the sink does not know what the tables are about.
const ROOMS: &[(&str, &[&str])] = &[
    ("bytes", &[]),
    ("error", &[]),
    ("guid", &[]),
    ("time", &[]),
    ("catalog", &[]),
    ("source", &[]),
    ("reader", &["source", "catalog"]),
    ("event", &["reader", "catalog"]),
    ("normalize", &["reader", "event"]),
    ("table", &["reader", "event", "normalize"]),
    ("sink", &[]),
    ("inspect", &["source", "reader", "event", "normalize", "pipeline"]),
    ("pipeline", &["source", "reader", "event", "normalize", "table", "sink"]),
    ("survived", &["normalize"]),
];

/// Rooms that are built without Arrow and Parquet.
const WITHOUT_ARROW: &[&str] = &["bytes", "error", "guid", "time", "catalog", "source", "reader", "event", "normalize"];

const MAX_LINES: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, with their text, by path.
fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("a readable file");
                found.push((path.strip_prefix(root()).expect("below the root").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// `src/reader/nettrace/v6.rs` and `src/pipeline.rs` to `reader` and `pipeline`.
fn room_of(path: &Path) -> String {
    let part = path.components().nth(1).expect("a file in src").as_os_str().to_string_lossy();
    part.trim_end_matches(".rs").to_owned()
}

/// Lines of code with their numbers; comments, which may point anywhere, are left out.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(n, line)| (n + 1, line))
}

/// The words behind every `prefix` in a line.
fn words_behind<'l>(line: &'l str, prefix: &'l str) -> impl Iterator<Item = &'l str> {
    line.split(prefix).skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""))
}

#[test]
fn rooms_use_only_what_is_upstream() {
    let mut wrong = Vec::new();
    for (path, text) in files("src") {
        let room = room_of(&path);
        if matches!(room.as_str(), "lib" | "main" | "cli") {
            continue;
        }
        let Some((_, upstream)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: a room that tests/layers.rs does not know", path.display()));
            continue;
        };
        for (number, line) in code(&text) {
            for used in words_behind(line, "crate::") {
                let allowed = used == room || EVERYWHERE.contains(&used) || upstream.contains(&used);
                // A macro of this crate, or several rooms in one pair of braces, which this test does not read.
                if !allowed {
                    let what = if used.is_empty() { "one `use` for each room, please" } else { used };
                    wrong.push(format!("{}:{number}: {room} may not use: {what}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_command_line_uses_the_library_as_others_do() {
    for (path, text) in files("src") {
        let in_program = matches!(room_of(&path).as_str(), "main" | "cli");
        for (number, line) in code(&text) {
            let wrong = if in_program { line.contains("crate::") } else { line.contains("mod cli") };
            assert!(!wrong, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn readers_and_meaning_know_no_arrow() {
    for (path, text) in files("src").iter().filter(|(path, _)| WITHOUT_ARROW.contains(&room_of(path).as_str())) {
        for (number, line) in code(text) {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let found = words.into_iter().find(|w| w.starts_with("arrow_") || matches!(*w, "arrow" | "parquet"));
            assert_eq!(found, None, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn files_are_small_enough_to_be_read() {
    for (path, text) in ["src", "tests", "benches"].iter().flat_map(|folder| files(folder)) {
        let lines = text.lines().count();
        assert!(lines < MAX_LINES, "{}: {lines} lines, expected less than {MAX_LINES}", path.display());
    }
}
