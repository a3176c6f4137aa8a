//! docs/FINDINGS.md: the rules as their files give them.

use std::fmt::Write;
use std::path::Path;

use tracequet::analyze::findings::{Rule, rule, rules};

/// The section of a rule.
fn section(rule: &Rule) -> String {
    let mut out = format!("\n### {}\n\n**{}.** {}\n\n", rule.name, rule.title, rule.about);
    writeln!(out, "- Metric: {}", rule.measure).unwrap();
    let (info, warning) = (rule.limit(rule.info), rule.limit(rule.warning));
    writeln!(out, "- Limits: {info} and {warning}. Source: {}", rule.source).unwrap();
    writeln!(out, "- Record: `tracequet collect --for {}`", rule.record).unwrap();
    writeln!(out, "- Change: {}", rule.advice).unwrap();
    let closer: Vec<String> = rule.closer().map(|command| format!("`{command}`")).collect();
    writeln!(out, "- Look closer: {}", closer.join(", or ")).unwrap();
    if !rule.causes.is_empty() {
        let causes: Vec<String> = rule.causes.iter().map(|cause| format!("[`{cause}`](#{cause})")).collect();
        writeln!(out, "- May come from: {}", causes.join(", ")).unwrap();
    }
    writeln!(out, "- Example: `tracequet explain samples/{}.nettrace.zst`", rule.example.with).unwrap();
    out
}

/// The document is a few sections of our own and then the rules. `UPDATE_DOCS=1` writes them anew.
#[test]
fn the_rules_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/FINDINGS.md");
    let text = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let (own, _) = text.split_once("\n## Rules\n").expect("the heading of the rules");
    let expected = format!("{own}\n## Rules\n{}", rules().map(section).collect::<String>());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(text == expected, "docs/FINDINGS.md is stale: UPDATE_DOCS=1 cargo test the_rules_are_documented");
}

#[test]
fn rules_are_complete_and_name_rules_that_there_are() {
    for of in rules() {
        for text in [of.title, of.about, of.measure, of.source, of.record, of.advice] {
            assert!(!text.is_empty(), "{}", of.name);
        }
        assert!(!of.title.ends_with('.') && of.advice.ends_with('.'), "{}", of.name);
        assert!(of.causes.iter().all(|cause| rule(cause).is_some()), "{}", of.name);
        assert!(of.closer().last().is_some_and(|command| command.starts_with("tracequet ")), "{}", of.name);
        assert!(!of.evidence.sections.is_empty(), "{}", of.name);
    }
    assert!(rules().count() >= 38);
}

/// A log of a machine names whose finding it is, and answers for one process.
#[test]
fn a_finding_of_a_log_names_its_process() {
    use crate::support::program::run;
    let Some(folder) = crate::support::expected::shared_folder("a_finding_of_a_log_names_its_process", "etl") else {
        return;
    };
    let log = folder.join("DynamicEvents.etl").to_str().unwrap().to_owned();
    let whole = run(&["explain", &log]);
    assert!(whole.out.contains(", Benchmarks.exe (7608)\n"), "{}", whole.out);
    // A finding about the recording names no process: the idle process has the number 0, too.
    let frames = run(&["explain", folder.join("net.4.5.2.x64.etl").to_str().unwrap()]).out;
    assert!(frames.contains("unnamed_frames: Call stacks have frames without names\n"), "{frames}");
    let markdown = run(&["explain", "--format", "markdown", &log]).out;
    assert!(markdown.contains("`Benchmarks.exe (7608)`"), "{markdown}");
    for process in ["benchmarks", "Benchmarks.exe", "7608"] {
        assert_eq!(run(&["explain", &log, "--process", process]).out, whole.out, "{process}");
    }
    let other = run(&["explain", &log, "--process", "devenv"]);
    assert!(other.code == Some(1) && other.err.contains("nothing is judged of a process devenv"), "{}", other.err);
}
