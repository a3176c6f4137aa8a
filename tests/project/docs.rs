//! What the documents say is what the program does: tables, commands and options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that documents name and that the short help does not print: those of cargo, and an alias.
const OPTIONS_OF_OTHERS: &[&str] = &["--release", "--locked", "--features", "--no-default-features", "--profile"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tracequet")).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The documents beside the README, and everything in `docs/`.
fn documents() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .expect("the folder docs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    let others =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "schemas/README.md", "samples/README.md", "fuzz/README.md"];
    paths.extend(others.map(|name| root().join(name)));
    paths.sort();
    assert!(paths.len() > others.len() + 3, "{paths:?}");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// docs/TABLES.md is a few lines of our own and then what the program prints. `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_table_list_is_printed_by_the_program() {
    let path = root().join("docs/TABLES.md");
    let text = std::fs::read_to_string(&path).expect("docs/TABLES.md");
    let (head, printed) = text.split_once("\n## ").expect("a head and the tables");
    let expected = program(&["schema", "--format", "markdown"]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}\n{expected}")).expect("docs/TABLES.md can be written");
        return;
    }
    assert!(format!("## {printed}") == expected, "docs/TABLES.md is stale: UPDATE_DOCS=1 cargo test the_table_list");
}

/// The subjects of `collect --for` in docs/LIVE.md are those of the program. `UPDATE_DOCS=1` writes their table anew.
#[test]
fn the_table_list_of_subjects_is_that_of_the_presets() {
    let path = root().join("docs/LIVE.md");
    let text = std::fs::read_to_string(&path).expect("docs/LIVE.md");
    let head = "| `--for` | records | leaves | cheaper |\n|---|---|---:|---|\n";
    let (before, rest) = text.split_once(head).expect("the head of the table");
    let (table, after) = rest.split_once("\n\n").expect("the end of the table");
    let help = program(&["collect", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rows = Vec::new();
    for preset in &tracequet::trace::source::diagnostics::Presets::shipped().expect("the presets").all {
        let leaves = preset.leaves.map(|percent| format!("{percent} %")).unwrap_or_default();
        let cheaper = preset.cheaper.as_deref().unwrap_or_default();
        rows.push(format!("| `{}` | {} | {leaves} | {cheaper} |", preset.name, preset.doc));
        assert!(help.contains(&format!("- {}: {}", preset.name, preset.help())), "{} in --help", preset.name);
    }
    let expected = rows.join("\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{head}{expected}\n\n{after}")).expect("docs/LIVE.md can be written");
        return;
    }
    assert!(table == expected, "docs/LIVE.md is stale: UPDATE_DOCS=1 cargo test the_table_list");
}

/// `tracequet schema` knows each view and macro, by what its file says.
#[test]
fn views_and_macros_have_a_schema() {
    let mut views = 0;
    for entry in std::fs::read_dir(root().join("schemas/views")).expect("schemas/views") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        let printed = program(&["schema", &name, "--format", "json"]);
        let view: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let sql = view["sql"].as_str().expect("SQL");
        assert!(text.ends_with(sql) && sql.contains("CREATE OR REPLACE "), "{name}: {sql}");
        let doc = view["doc"].as_str().expect("a text");
        assert!(doc.len() > 40 && doc.ends_with(['.', ')']) && !doc.contains("-- "), "{name}: {doc}");
        assert!(view["needs"].as_array().is_some_and(|needs| !needs.is_empty()), "{name}");
        views += 1;
    }
    assert!(views > 30, "{views}");
}

/// The table of CONTRIBUTING names files that there are; `<name>` stands for any of a folder.
#[test]
fn the_files_that_a_change_touches_are_there() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let (_, table) = text.split_once("\n| to add |").expect("the table");
    let table = table.split("\n\n").next().unwrap_or_default();
    let mut looked_at = 0;
    for path in table.split('`').skip(1).step_by(2).filter(|part| part.contains('/') && !part.contains(' ')) {
        match path.split_once('<') {
            None => assert!(root().join(path).exists(), "{path}"),
            Some((folder, end)) => {
                let end = end.split_once('>').map_or("", |(_, end)| end);
                let files = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{path}: {error}"));
                let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
                assert!(names.filter(|name| name.ends_with(end)).count() > 2, "{path}");
            }
        }
        looked_at += 1;
    }
    assert!(looked_at > 12, "{looked_at}");
    let tests = super::layers::files("tests");
    for test in table.split('`').skip(1).step_by(2).filter(|part| part.starts_with("the_")) {
        assert!(tests.iter().any(|(_, text)| text.contains(&format!("fn {test}("))), "no test {test}");
    }
}

#[test]
fn every_table_is_in_the_list_of_the_dataset() {
    let list = std::fs::read_to_string(root().join("docs/DATASET.md")).expect("docs/DATASET.md");
    let files = std::fs::read_dir(root().join("schemas/tables")).expect("schemas/tables");
    let mut tables = 0;
    for file in files.map(|entry| entry.expect("an entry").path()) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // The header of payload tables is no table.
        if name != "event_header" {
            assert!(list.contains(&format!("`{name}`")), "docs/DATASET.md does not name the table `{name}`");
            tables += 1;
        }
    }
    assert!(tables > 20, "{tables}");
}

#[test]
fn every_document_is_in_the_index() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).expect("docs/README.md");
    let mut named = 0;
    for (path, _) in documents() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.parent() == Some(&root().join("docs")) && name != "README.md" {
            assert!(index.contains(&format!("]({name})")), "docs/README.md does not name {name}");
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}

/// A link to a file, or to a heading of one, leads somewhere.
#[test]
fn links_of_documents_lead_somewhere() {
    let anchor = |heading: &str| -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let mut links = 0;
    for (path, text) in documents() {
        for (link, _) in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = path.parent().expect("a folder").join(file);
            let target = if file.is_empty() { path.clone() } else { target };
            assert!(target.exists(), "{}: {link}", path.display());
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap_or_else(|e| panic!("{}: {e}", target.display()));
                let headings = text.lines().filter(|line| line.starts_with('#'));
                let found = headings.map(|line| anchor(line.trim_start_matches('#').trim())).any(|a| a == heading);
                assert!(found, "{}: {link}", path.display());
            }
            links += 1;
        }
    }
    assert!(links > 40, "{links}");
}

/// What the README shows of a terminal is what the commands print.
#[cfg(unix)]
#[test]
fn the_terminal_in_the_readme_is_what_the_program_prints() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let (_, shown) = readme.split_once("```console\n").expect("a terminal");
    let (shown, _) = shown.split_once("```").expect("its end");
    let mut commands = 0;
    for part in shown.split("$ ").skip(1) {
        let (command, printed) = part.split_once('\n').expect("a command and what it prints");
        let script = format!("tracequet() {{ '{}' \"$@\"; }}\n{command}", env!("CARGO_BIN_EXE_tracequet"));
        let output = Command::new("bash").args(["-c", &script]).current_dir(root()).output().expect("bash");
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "$ {command}");
        commands += 1;
    }
    assert!(commands > 1, "{commands}");
}

#[test]
fn every_rule_about_callbacks_has_a_test_that_names_it() {
    let text = std::fs::read_to_string(root().join("docs/PROFILER.md")).expect("docs/PROFILER.md");
    let (_, rules) = text.split_once("## What the tables make of it").expect("the rules");
    let numbers: Vec<u32> =
        rules.lines().filter_map(|line| line.split_once(". ").and_then(|(number, _)| number.parse().ok())).collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    assert!(numbers.len() >= 20);
    let files = ["ranges.rs", "survived.rs", "truth.rs"];
    let tests =
        files.map(|name| std::fs::read_to_string(root().join("tests/callback").join(name)).expect(name)).concat();
    for number in numbers {
        assert!(tests.contains(&format!("Rule {number}:")), "no test of rule {number}");
    }
}

#[test]
fn tests_that_a_promise_names_exist() {
    let text = std::fs::read_to_string(root().join("docs/RELIABILITY.md")).expect("docs/RELIABILITY.md");
    let mut named = 0;
    // `folder::file` or `folder::file::test`.
    for name in text.split('`').skip(1).step_by(2).filter(|span| span.contains("::") && !span.starts_with("folder::")) {
        let source = |module: &str| {
            let path = root().join("tests").join(format!("{}.rs", module.replace("::", "/")));
            std::fs::read_to_string(path).ok()
        };
        let (module, test) = name.rsplit_once("::").expect("a name of several parts");
        let there = source(name).is_some() || source(module).is_some_and(|text| text.contains(&format!("fn {test}()")));
        assert!(there, "{name}: no such test");
        named += 1;
    }
    assert!(named > 20, "{named}");
}

#[test]
fn files_that_a_document_names_exist() {
    // What a dataset has, not the repository; and the file that a table takes, named by its folder.
    let elsewhere = ["views.sql", "event_header.toml"];
    let mut named = 0;
    for (path, text) in documents() {
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = !name.contains(|c: char| c.is_whitespace() || "<*{$:".contains(c));
            let ends = [".rs", ".toml", ".sh", ".py", ".sql", ".md", ".yml"];
            if !is_path || !ends.iter().any(|end| name.ends_with(end)) || elsewhere.contains(&name) {
                continue;
            }
            let beside = path.parent().expect("a folder");
            let sources =
                ["trace", "facts", "dataset", "lake", "analyze", "convert"].map(|name| format!("crates/{name}/src"));
            let mut folders = vec![beside.to_owned(), root().to_owned(), root().join("src")];
            folders.extend(sources.map(|folder| root().join(folder)));
            assert!(folders.iter().any(|folder| folder.join(name).exists()), "{}: {name}", path.display());
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

/// Words of a command line, as far as a document needs them.
fn words(line: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '|' | ';' | ')' | '(' | ',');
    line.split(ends).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_guide_is_the_skill() {
    let skill = std::fs::read_to_string(root().join("skills/tracequet/SKILL.md")).unwrap();
    assert!(skill.starts_with("---\nname: tracequet\n"));
    assert_eq!(program(&["guide"]), skill);
}

#[test]
fn commands_in_the_documents_exist() {
    let commands = [
        "convert", "collect", "watch", "inspect", "survived", "cohorts", "lifetimes", "heap", "diff", "egress",
        "explain", "export", "schema", "generate", "guide", "stats", "check", "report",
    ];
    let mut help: Vec<(&str, String)> = commands.iter().map(|c| (*c, program(&[c, "--help"]))).collect();
    help.push((
        "dataset",
        ["list", "remove", "label", "expire", "compact", "verify", "repair"]
            .map(|c| program(&["dataset", c, "--help"]))
            .concat(),
    ));
    let knows = |text: &str, option: &str| {
        words(text).iter().any(|w| w.trim_end_matches(']') == option || w.starts_with(&format!("{option}[")))
    };
    let mut seen = BTreeSet::new();
    for (path, text) in documents() {
        for (number, line) in text.lines().enumerate() {
            let words = words(line);
            let place = format!("{}:{}", path.display(), number + 1);
            for (at, pair) in words.windows(2).enumerate() {
                // `tracequet convert ...` and `cargo run --locked -- convert ...`
                let Some((command, help)) = help.iter().find(|(c, _)| *c == pair[1]) else { continue };
                if !(pair[0].ends_with("tracequet") || pair[0] == "--") {
                    continue;
                }
                seen.insert(*command);
                let options = words[at + 2..].iter().take_while(|w| *w != "tracequet" && *w != "cargo");
                for option in options.filter(|w| w.starts_with("--")) {
                    let option = option.split('=').next().unwrap_or_default();
                    assert!(knows(help, option), "{place}: tracequet {command} has no option {option}");
                }
            }
        }
        // Options on their own, in backticks.
        for span in text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("--")) {
            let option = span.split(|c: char| c.is_whitespace() || "=[/,".contains(c)).next().unwrap_or_default();
            let known = OPTIONS_OF_OTHERS.contains(&option) || help.iter().any(|(_, help)| knows(help, option));
            assert!(known, "{}: no command has the option {option}", path.display());
        }
    }
    assert!(seen.contains("convert"), "no document has a command");
}

/// The other way round: what `--help` prints is explained in a document, too.
#[test]
fn every_option_is_in_a_document() {
    let listed = program(&["--help"]);
    let (_, listed) = listed.split_once("\nCommands:\n").expect("a list of commands");
    let (listed, _) = listed.split_once("\n\n").expect("the end of the list");
    // A description that goes on in the next line is further to the right.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let mut commands: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    commands.retain(|command| *command != "help");
    commands.push("generate");
    assert!(commands.len() > 10, "{commands:?}");

    let texts: String = documents().into_iter().map(|(_, text)| text).collect();
    let written: BTreeSet<String> = words(&texts.replace(['=', '[', '/'], " ")).into_iter().collect();
    let mut options = 0;
    for command in commands {
        let help = program(&[command, "--help"]);
        for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
            let option = words(line).into_iter().find(|word| word.starts_with("--"));
            let Some(option) = option.map(|word| word.split(['=', '[']).next().unwrap_or_default().to_owned()) else {
                continue;
            };
            if option != "--help" && option != "--version" {
                assert!(written.contains(&option), "no document has {option} of tracequet {command}");
                options += 1;
            }
        }
    }
    assert!(options > 60, "{options}");
}

/// They are no part of `cargo test`, because its last lines say what was skipped.
#[test]
fn examples_in_the_documentation_of_the_library_run() {
    let mut cargo = Command::new(env!("CARGO"));
    // Of the whole workspace, so that all that the tests were built with is used again.
    cargo.args(["test", "--locked", "--doc", "--workspace"]);
    let output = cargo.current_dir(root()).output().expect("cargo");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    let passed = |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u32>().ok();
    let passed: u32 = said.lines().filter_map(passed).sum();
    assert!(passed >= 5, "{said}{errors}");
}
