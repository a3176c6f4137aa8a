//! What cargo cannot say of the order of the layers: files do not import each other in circles, the program uses the
//! library and no crate behind it, and the crates that read know no Arrow.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::imports::Graph;

/// The folders with the source of the crates of the workspace.
const CRATES: &[&str] = &[
    "src",
    "crates/trace/src",
    "crates/facts/src",
    "crates/dataset/src",
    "crates/lake/src",
    "crates/analyze/src",
    "crates/convert/src",
    "crates/duckdb/src",
    "crates/corprof/src",
    "crates/diagnostics-port/src",
    "crates/recorder/src",
    "crates/report/src",
    "crates/tracequet/src",
    "python/src",
    "schemas/src",
];

/// Crates that others use without tables.
const WITHOUT_ARROW: &[&str] =
    &["crates/trace", "crates/facts", "crates/corprof", "crates/diagnostics-port", "schemas"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder, with their text, by path.
pub fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a readable folder") {
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

#[test]
fn every_crate_is_looked_at() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains(r#"members = ["benches", "crates/*", "python", "schemas", "tests/untested", "web"]"#),
        "CRATES follows the members"
    );
    for entry in std::fs::read_dir(root().join("crates")).expect("a readable folder") {
        let name = format!("crates/{}/src", entry.expect("an entry").file_name().to_string_lossy());
        assert!(CRATES.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn readers_and_facts_need_no_arrow() {
    for folder in WITHOUT_ARROW {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a manifest");
        assert!(manifest.contains("[package]"), "{folder}");
        for line in manifest.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let tables = [
                "tracequet-dataset", "tracequet-lake", "tracequet-analyze", "tracequet-report", "tracequet-convert",
                "tracequet", "parquet",
            ];
            assert!(!name.starts_with("arrow") && !tables.contains(&name), "{folder}: {line}");
        }
    }
}

#[test]
fn the_program_uses_the_library() {
    let program = files("src");
    assert!(program.len() > 20, "the program was not found");
    for (path, text) in program {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let behind = line.split("tracequet_").nth(1).unwrap_or_default();
            let is_crate = ["trace", "facts", "dataset", "lake", "analyze", "report", "convert"]
                .iter()
                .any(|name| behind.starts_with(name));
            assert!(!is_crate, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// Names of the packages of `Cargo.lock`, and of those that one of them is built with.
fn packages_of(name: &str) -> [BTreeSet<String>; 2] {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let lock: toml::Table = lock.parse().expect("TOML");
    let packages = lock["package"].as_array().expect("packages");
    let mut needed = BTreeSet::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        if needed.insert(name.to_owned()) {
            let of_name = packages.iter().filter(|package| package["name"].as_str() == Some(name));
            let named = of_name.filter_map(|package| package.get("dependencies")?.as_array()).flatten();
            // A name, and a version behind it where there are several.
            open.extend(named.filter_map(|name| name.as_str()?.split(' ').next()));
        }
    }
    [packages.iter().filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect(), needed]
}

#[test]
fn who_reads_one_recording_builds_nothing_of_many() {
    for name in ["tracequet-dataset", "tracequet-analyze", "tracequet-report"] {
        let [_, needed] = packages_of(name);
        assert!(needed.contains("tracequet-trace") && !needed.contains("tracequet-lake"), "{name}: {needed:?}");
    }
    assert!(packages_of("tracequet-convert")[1].contains("tracequet-lake"));
}

#[test]
fn who_depends_on_the_library_builds_no_command_line() {
    let [packages, needed] = packages_of("tracequet");
    assert!(needed.contains("tracequet-trace") && needed.contains("parquet"), "{needed:?}");
    for name in ["tracequet-cli", "clap", "clap_builder", "indicatif", "signal-hook", "terminal_size", "anyhow"] {
        assert!(packages.contains(name), "{name}");
        assert!(!needed.contains(name), "{name}");
    }
}

/// The source of a crate, by paths below its folder.
fn crate_files(folder: &str) -> Vec<(PathBuf, String)> {
    let below = |(path, text): (PathBuf, String)| (path.strip_prefix(folder).expect("in its folder").to_owned(), text);
    files(folder).into_iter().map(below).collect()
}

/// What a person can type is for the command line to say: the library serves Python and Rust, too. The findings name
/// commands as a next step, which is data of theirs, and so does the page.
#[test]
fn the_library_names_no_options_of_the_command_line() {
    let mut looked_at = 0;
    let is_library =
        |folder: &str| folder.starts_with("crates/") && !folder.contains("recorder") && !folder.contains("report");
    for folder in CRATES.iter().filter(|folder| is_library(folder)) {
        for (path, text) in files(folder).iter().filter(|(path, _)| !path.to_string_lossy().contains("findings")) {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
                let mut texts = line.split('"').skip(1).step_by(2);
                let is_option = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
                let names =
                    texts.find(|text| [" --", "`--", "(--"].iter().any(|at| text.split(at).skip(1).any(is_option)));
                assert!(names.is_none(), "{}:{}: {names:?}", path.display(), number + 1);
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 300, "{looked_at}");
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut wrong = Vec::new();
    for folder in CRATES.iter().filter(|folder| root().join(folder).is_dir()) {
        let files = crate_files(folder);
        let graph = Graph::new(&files);
        assert!(files.len() < 4 || graph.imports() > files.len() / 2, "{folder}: the imports were not found");
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
    // Modules that import all of each other, and each one that the others do not have.
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
