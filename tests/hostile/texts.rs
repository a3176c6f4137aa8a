//! Every text of a dataset is foreign: in place of each stands one that would steer a terminal, be a link, a mention, a heading or a
//! command of a job summary, or a script of a page. Each command shows it in each form as what it is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use tracequet::trace::error::is_unseen;

use crate::support::files::sample;
use crate::support::program::{Run, run};

const HOSTILE: &str = "\u{1b}]0;PWN\u{7}\n::error::Q\r\u{202e}\u{3164} http://evil.example/x www.evil.example @octocat | ``a` # <script>alert(1)</script>";

/// Columns with words that the program itself writes: with others in them most commands have nothing to say.
const WORDS: &[&str] =
    &["kind", "verdict", "status", "code", "severity", "source", "scope", "unit", "reason", "outcome"];

/// Which texts are replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Replaced {
    /// Each has the hostile one behind it, but for words of the program.
    Names,
    /// Words of the program have it behind them.
    Words,
    /// In place of each stands a hostile one of 30,000 letters.
    All,
}

fn hostile(text: &str, column: &str, how: Replaced) -> String {
    match (how, WORDS.contains(&column)) {
        (Replaced::All, _) => format!("{HOSTILE}{}", "n".repeat(30_000)),
        (Replaced::Names, false) | (Replaced::Words, true) => format!("{text}{HOSTILE}"),
        _ => text.to_owned(),
    }
}

fn replaced(column: &ArrayRef, name: &str, how: Replaced) -> (ArrayRef, usize) {
    let of =
        |texts: &StringArray| -> StringArray { texts.iter().map(|text| Some(hostile(text?, name, how))).collect() };
    if let Some(texts) = column.as_any().downcast_ref::<StringArray>() {
        return (Arc::new(of(texts)), texts.len());
    }
    let Some(dictionary) = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>() else {
        return (column.clone(), 0);
    };
    match dictionary.values().as_any().downcast_ref::<StringArray>() {
        Some(texts) => (Arc::new(dictionary.with_values(Arc::new(of(texts)))), texts.len()),
        None => (column.clone(), 0),
    }
}

/// Replaces the texts of all tables, and says how many.
fn replace(dataset: &Path, how: Replaced) -> usize {
    let mut texts = 0;
    for entry in std::fs::read_dir(dataset).expect("a dataset") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "arrow") {
            continue;
        }
        let reader = FileReader::try_new(File::open(&path).expect("a table"), None).expect("Arrow");
        let schema = reader.schema();
        let batches: Vec<RecordBatch> = reader.map(|batch| batch.expect("a batch")).collect();
        let mut writer = FileWriter::try_new(File::create(&path).expect("room"), &schema).expect("a file");
        for batch in batches {
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| {
                let (column, count) = replaced(column, field.name(), how);
                texts += count;
                column
            });
            let batch = RecordBatch::try_new(schema.clone(), columns.collect()).expect("the same columns");
            writer.write(&batch).expect("written");
        }
        writer.finish().expect("its end");
    }
    texts
}

/// The text without its code, in which GitHub makes no links.
fn without_code(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(start) = rest.find('`') {
        out.push_str(&rest[..start]);
        let fence: String = rest[start..].chars().take_while(|c| *c == '`').collect();
        let behind = &rest[start + fence.len()..];
        let mut from = 0;
        let end = loop {
            let Some(next) = behind[from..].find('`').map(|next| from + next) else { break None };
            let length = behind[next..].chars().take_while(|c| *c == '`').count();
            if length == fence.len() {
                break Some(next + length);
            }
            from = next + length;
        };
        match end {
            Some(end) => rest = &behind[end..],
            None => return out + &rest[start..],
        }
    }
    out + rest
}

/// Nothing steers a terminal or a job.
fn assert_inert(what: &str, text: &str) {
    let steers = text.chars().find(|c| is_unseen(*c) && *c != '\n');
    assert_eq!(steers, None, "{what}: {text}");
    assert!(!text.lines().any(|line| line.starts_with("::")), "{what}: {text}");
}

fn assert_harmless(what: &str, text: &str) {
    assert_inert(what, text);
    for line in text.lines() {
        assert!(line.chars().count() < 20_000, "{what}: a line of {} characters", line.chars().count());
    }
}

/// What was said on both streams, in a form.
fn check(what: &str, format: &str, run: &Run) {
    assert!(matches!(run.code, Some(0..=3)) && !run.err.contains("panic"), "{what}: {:?} {}", run.code, run.err);
    assert_harmless(what, &run.err);
    match format {
        "json" if !run.out.is_empty() => {
            serde_json::from_str::<serde_json::Value>(&run.out).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        "markdown" => {
            assert_harmless(what, &run.out);
            for line in run.out.lines() {
                let plain = without_code(line);
                let active = ["evil.example", "@octocat", "<script"].iter().find(|text| plain.contains(**text));
                assert_eq!(active, None, "{what}: {line}");
                let bars = |line: &str| line.replace("\\|", "").matches('|').count();
                assert!(!line.starts_with("| ") || bars(line) > 1, "{what}: {line}");
            }
        }
        "text" => assert_harmless(what, &run.out),
        // A line is a whole call stack.
        "folded" => assert_inert(what, &run.out),
        _ => {}
    }
}

#[test]
fn every_text_of_a_dataset_is_shown_as_what_it_is_by_every_command_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "[[rule]]\ncheck = \"gc.count >= 1\"\n\n[[rule]]\ncheck = \"allocation.bytes <= 1\"\n")
        .expect("room");
    let rules = rules.to_str().expect("a name");
    let (mut shown, mut answers, mut exports, mut binary) = (0, 0, 0, 0);
    for name in ["requests/orders.nettrace.zst", "heap-10.nettrace", "lifetimes.nettrace"] {
        for how in [Replaced::Names, Replaced::Words, Replaced::All] {
            let out = folder.path().join(format!("{}-{how:?}", name.replace('/', "-")));
            let out = out.to_str().expect("a name");
            let recording = sample(name);
            let recording = recording.to_str().expect("a name");
            let made = run(&[
                "convert", recording, "-q", "--format", "arrow", "--compression", "none", "--lifetimes", "-o", out,
            ]);
            assert_eq!(made.code, Some(0), "{}", made.err);
            assert!(replace(Path::new(out), how) > 100, "{name}");
            let commands: [&[&str]; 10] = [
                &["explain", out, "--all"],
                &["stats", out],
                &["heap", out],
                &["heap", out, "--type", "City"],
                &["lifetimes", out],
                &["cohorts", out],
                &["survived", out, "2", "0x7f0000000000"],
                &["diff", out, out, "--all"],
                &["check", out, "--rules", rules],
                &["dataset", "list", out],
            ];
            for command in commands {
                for format in ["text", "json", "markdown", "csv"] {
                    let run = run(&[command, &["--format", format]].concat());
                    check(&format!("{command:?} {format} {how:?}"), format, &run);
                    shown += usize::from(run.out.contains("PWN"));
                    answers += usize::from(run.code != Some(1));
                }
            }
            let markdown = folder.path().join("summary.md");
            let said = run(&["check", out, "--rules", rules, "--markdown", markdown.to_str().expect("a name")]);
            check(&format!("check {how:?}"), "text", &said);
            if let Ok(text) = std::fs::read_to_string(&markdown) {
                check(&format!("check {how:?}"), "markdown", &Run { out: text, ..said });
            }
            for (format, form) in [("folded", "folded"), ("speedscope", "json"), ("firefox", "json")] {
                for what in ["cpu", "allocation", "exception"] {
                    let run = run(&["export", out, "--what", what, "--format", format]);
                    check(&format!("export {what} {format} {how:?}"), form, &run);
                    exports += usize::from(run.code == Some(0));
                }
            }
            // Messages of protocol buffers, whose texts other programs print.
            let of_all = |format| [(format, "cpu"), (format, "allocation"), (format, "exception")];
            for (format, what) in [of_all("pprof"), of_all("otlp")].concat().into_iter().chain([("perfetto", "cpu")]) {
                let file = folder.path().join("exported");
                let path = file.to_str().expect("a name");
                let run = run(&["export", out, "--what", what, "--format", format, "-o", path, "--overwrite"]);
                check(&format!("export {what} {format} {how:?}"), "text", &run);
                if run.code == Some(0) {
                    let message = std::fs::read(&file).expect("a file");
                    let has = |text: &str| message.windows(text.len()).any(|part| part == text.as_bytes());
                    for steers in ["\u{1b}]0;PWN", "\u{7}\n::error::Q", "\u{202e}"] {
                        assert!(!has(steers), "export {what} {format} {how:?}: {steers:?}");
                    }
                    binary += usize::from(has("PWN"));
                }
            }
            let page = run(&["report", out]);
            assert!(!page.out.contains("<script>alert") && !page.out.contains('\u{1b}'), "{name} {how:?}");
            assert_harmless("report", &page.err);
        }
    }
    assert!(
        shown > 30 && answers > 60 && exports > 20 && binary > 10,
        "{shown} of {answers} answers have the text, {exports} exports, {binary} binary ones"
    );
}

/// Names of providers, events and fields stand in a recording itself: `inspect` shows them without a dataset.
#[test]
fn names_of_a_recording_are_shown_as_what_they_are() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut recording = std::fs::read(sample("events.nettrace")).expect("a sample");
    let mut replaced = 0;
    for (name, other) in [
        ("Tracequet-Churn-Described", "\u{1b}]0;PWN\u{7}\n::error::Q\r\u{202e}@oc|"),
        ("RequestStart", "\u{1b}[2J\n::eq::\u{3164}"),
        ("Missing", "<script"),
    ] {
        let (from, to) = (utf16(name), utf16(other));
        assert_eq!(from.len(), to.len(), "{name}");
        let places: Vec<usize> =
            (0..recording.len() - from.len()).filter(|at| recording[*at..].starts_with(&from)).collect();
        for at in places {
            recording[at..at + to.len()].copy_from_slice(&to);
            replaced += 1;
        }
    }
    assert!(replaced >= 3, "{replaced}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hostile.nettrace");
    std::fs::write(&file, recording).expect("room");
    for format in ["text", "json", "markdown", "csv"] {
        let run = run(&["inspect", file.to_str().expect("a name"), "--all", "--format", format]);
        check(&format!("inspect {format}"), format, &run);
        assert!(run.out.contains("PWN"), "{format}: {}", run.out);
    }
}
