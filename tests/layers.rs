//! The layers use only layers upstream of them, files do not import each other in circles, files stay small, and only the
//! layers of tables know Arrow.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::imports::Graph;

const EVERYWHERE: &[&str] = &["bytes", "error", "guid", "time", "utf16"];

/// Each layer with the layers it may use beside itself and those that may be used everywhere. Data flows from top to
/// bottom; `pipeline` and `inspect` join the layers, and the sink does not know what the tables are about. `dataset` and
/// `analyze` are the way back: they read what the sink wrote.
const LAYERS: &[(&str, &[&str])] = &[
    ("bytes", &[]),
    ("error", &[]),
    ("guid", &[]),
    ("time", &[]),
    ("utf16", &[]),
    ("catalog", &[]),
    ("source", &[]),
    ("reader", &["source", "catalog"]),
    ("event", &["source", "reader", "catalog"]),
    ("normalize", &["catalog", "reader", "event"]),
    ("table_spec", &[]),
    ("table", &["reader", "event", "normalize", "table_spec"]),
    ("sink", &["table_spec"]),
    ("dataset", &["table_spec", "table", "sink"]),
    ("analyze", &["dataset", "normalize"]),
    ("inspect", &["source", "reader", "event", "normalize", "pipeline"]),
    ("pipeline", &["source", "reader", "event", "normalize", "table_spec", "table", "sink", "analyze"]),
];

/// The crates of the workspace, by the folders of their source.
const CRATES: &[&str] = &["src", "recorder/src", "corprof/src", "diagnostics-port/src"];

/// Files that are still longer than `MAX_LINES`. The list only shrinks.
const FILES_TO_SPLIT: &[&str] = &[];

/// Layers that are built without Arrow and Parquet.
const WITHOUT_ARROW: &[&str] =
    &["bytes", "error", "guid", "time", "utf16", "catalog", "source", "reader", "event", "normalize"];

const MAX_LINES: usize = 500;

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
fn layer_of(path: &Path) -> String {
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
fn layers_use_only_what_is_upstream() {
    let mut wrong = Vec::new();
    for (path, text) in files("src") {
        let layer = layer_of(&path);
        if matches!(layer.as_str(), "lib" | "main" | "cli") {
            continue;
        }
        let Some((_, upstream)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            wrong.push(format!("{}: a layer that tests/layers.rs does not know", path.display()));
            continue;
        };
        for (number, line) in code(&text) {
            for used in words_behind(line, "crate::") {
                let allowed = used == layer || EVERYWHERE.contains(&used) || upstream.contains(&used);
                // A macro of this crate, or several layers in one pair of braces, which this test does not read.
                if !allowed {
                    let what = if used.is_empty() { "one `use` for each layer, please" } else { used };
                    wrong.push(format!("{}:{number}: {layer} may not use: {what}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_command_line_uses_the_library_as_others_do() {
    for (path, text) in files("src") {
        let in_program = matches!(layer_of(&path).as_str(), "main" | "cli");
        for (number, line) in code(&text) {
            let wrong = if in_program { line.contains("crate::") } else { line.contains("mod cli") };
            assert!(!wrong, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn readers_and_meaning_know_no_arrow() {
    for (path, text) in files("src").iter().filter(|(path, _)| WITHOUT_ARROW.contains(&layer_of(path).as_str())) {
        for (number, line) in code(text) {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let found = words.into_iter().find(|w| w.starts_with("arrow_") || matches!(*w, "arrow" | "parquet"));
            assert_eq!(found, None, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn files_are_small_enough_to_be_read() {
    let mut long = Vec::new();
    let folders =
        ["src", "tests", "benches", "recorder", "corprof", "diagnostics-port", "examples", "fuzz/fuzz_targets"];
    for (path, text) in folders.iter().filter(|folder| root().join(folder).is_dir()).flat_map(|folder| files(folder)) {
        let name = path.to_string_lossy().replace('\\', "/");
        let lines = text.lines().count();
        if lines > MAX_LINES && !FILES_TO_SPLIT.contains(&name.as_str()) {
            long.push(format!("{name}: {lines} lines"));
        }
    }
    assert!(long.is_empty(), "more than {MAX_LINES} lines:\n{}", long.join("\n"));
}

/// The source of a crate, by paths below its folder.
fn crate_files(folder: &str) -> Vec<(PathBuf, String)> {
    let below = |(path, text): (PathBuf, String)| (path.strip_prefix(folder).expect("in its folder").to_owned(), text);
    files(folder).into_iter().map(below).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut wrong = Vec::new();
    for folder in CRATES.iter().filter(|folder| root().join(folder).is_dir()) {
        let files = crate_files(folder);
        let graph = Graph::new(&files);
        assert!(files.len() < 2 || graph.imports() > files.len() / 2, "{folder}: the imports were not found");
        for circle in graph.circles() {
            wrong.push(format!("{folder}:\n    {}", circle.imports.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "files that import each other in a circle:\n{}", wrong.join("\n"));
}

/// The circles of a crate made of these files.
fn circles_of(files: &[(&str, &str)]) -> BTreeSet<Vec<String>> {
    let files: Vec<_> = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    Graph::new(&files).circles().into_iter().map(|circle| circle.files).collect()
}

#[test]
fn circles_are_found() {
    let lib = ("lib.rs", "pub mod a;\npub mod b;\npub mod c;\n");
    let circle = |files: &[&str]| BTreeSet::from([files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>()]);
    let none = BTreeSet::new();
    // Two that use each other, in all the ways of writing a path.
    for (b, c) in [
        ("use crate::c::C;\npub struct B;", "use crate::b::B;\npub struct C;"),
        ("use super::c::C;\npub struct B;", "pub struct C;\nfn f() -> super::b::B { crate::b::B }"),
        ("use crate::{a, c::{self, C}};\npub struct B;", "pub struct C;\nfn f(_: crate::b::B) {}"),
        ("use crate::c::*;\npub struct B;", "pub struct C;\nmod inner { use super::super::b::B; }"),
    ] {
        assert_eq!(circles_of(&[lib, ("a.rs", ""), ("b.rs", b), ("c.rs", c)]), circle(&["b.rs", "c.rs"]), "{b} {c}");
    }
    // One by way of two others; one-way imports from outside do not belong to it.
    let longer = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::a::A; pub struct C;"),
        ("d.rs", "use crate::a::A;"),
    ];
    assert_eq!(circles_of(&longer), circle(&["a.rs", "b.rs", "c.rs"]));
    // A folder's `mod.rs` that defines what its files use, and uses them.
    let folder = [
        ("lib.rs", "pub mod a;"),
        ("a/mod.rs", "mod b;\npub struct A;\npub fn f() { b::g() }"),
        ("a/b.rs", "use super::A;\npub fn g() {}"),
    ];
    assert_eq!(circles_of(&folder), circle(&["a/mod.rs", "a/b.rs"]));
    // What it only hands on is defined elsewhere.
    let handed_on = [
        ("lib.rs", "pub mod a;"),
        ("a/mod.rs", "mod b;\nmod c;\npub use b::{B, g};\npub use self::c::C;"),
        ("a/b.rs", "use super::C;\npub struct B;\npub fn g() {}"),
        ("a/c.rs", "pub struct C;"),
    ];
    assert_eq!(circles_of(&handed_on), none);
    let mut both_ways = handed_on;
    both_ways[3].1 = "use crate::a::B;\npub struct C;";
    assert_eq!(circles_of(&both_ways), circle(&["a/b.rs", "a/c.rs"]));
    // Modules that import all of each other, and each what none of them has.
    let names: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    let all = |name: &String| format!("pub use crate::{name}::*;\n");
    let text = names.iter().map(all).collect::<String>() + "use crate::m3::Missing;\n";
    let everybody: Vec<_> = names.iter().map(|name| (format!("{name}.rs"), text.clone())).collect();
    let everybody: Vec<_> = everybody.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert!(circles_of(&everybody).len() <= 1);
    // Comments, literals and tests may name anything, and the program is a crate of its own.
    let c = "// use crate::b::B;\n/* crate::b::B */\npub struct C;\nconst T: &str = \"crate::b::B\";\n\
             const R: &str = r#\"crate::b::B \"quoted\" \"#;\nconst Q: char = '\"';\n\
             #[cfg(test)]\nmod tests { use crate::b::B; #[test] fn t() { crate::b::f() } }\n";
    assert_eq!(circles_of(&[lib, ("a.rs", ""), ("b.rs", "use crate::c::C; pub struct B;"), ("c.rs", c)]), none);
    let program = [
        ("lib.rs", "pub mod args;"),
        ("args.rs", "pub struct Args;"),
        ("main.rs", "mod cli;\nfn main() { cli::run() }"),
        ("cli/mod.rs", "mod args;\nuse args::Args;\npub fn run() {}"),
        ("cli/args.rs", "use super::run;\npub struct Args;"),
    ];
    assert_eq!(circles_of(&program), circle(&["cli/mod.rs", "cli/args.rs"]));
}
