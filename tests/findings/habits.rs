//! Each rule of `explain` on its `example`: a program that has the defect, the same work without it, and a recording
//! that lacks its events (`samples/src/bugs/Habits.cs` and `Bugs.cs`). What holds of every rule is in
//! `crates/analyze/src/findings/rules/tests.rs`: more of the defect never scores less, and a loss takes no warning
//! away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::Digest;
use tracequet::analyze::findings::{Verdict, rules};

use crate::support::program::run;

/// Rules that a program without the habit may not be warned of, though it does something like it: the rule, and why.
const HARMLESS: &[(&str, &str, &str)] = &[
    ("gen1_survival", "habits/counter-clean", "a tree that is made when the program starts lives on"),
    ("gen1_survival", "habits/holes-clean", "the same with an array"),
];

/// The findings of a sample by rule.
fn explained(sample: &str) -> BTreeMap<String, Value> {
    let input: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(sample).with_extension("nettrace.zst");
    let made = run(&["explain", input.to_str().unwrap(), "--format", "json"]);
    assert!(matches!(made.code, Some(0 | 2)), "{sample}: {}", made.err);
    let all: Value = serde_json::from_str(&made.out).unwrap();
    let findings = all[0]["findings"].as_array().unwrap();
    let by_rule: BTreeMap<_, _> =
        findings.iter().map(|finding| (finding["rule"].as_str().unwrap().to_owned(), finding.clone())).collect();
    assert_eq!(by_rule.len(), findings.len(), "{sample} is of one process");
    by_rule
}

fn verdict(finding: &Value) -> Verdict {
    let all = [Verdict::NotRecorded, Verdict::TooLittle, Verdict::Fine, Verdict::Info, Verdict::Warning];
    all.into_iter().find(|verdict| finding["verdict"] == verdict.word()).unwrap()
}

/// Each sample once, on all processors.
fn explained_all() -> BTreeMap<&'static str, BTreeMap<String, Value>> {
    let samples = rules().map(|rule| &rule.example).flat_map(|of| [Some(of.with), Some(of.without), of.unrecorded]);
    let samples: BTreeSet<&'static str> = samples.flatten().collect();
    let samples: Vec<_> = samples.into_iter().collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (part, samples) = (samples.len().div_ceil(workers), &samples);
    std::thread::scope(|scope| {
        let all: Vec<_> = samples
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().map(|sample| (*sample, explained(sample))).collect::<Vec<_>>()))
            .collect();
        all.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn each_rule_names_its_defect_in_a_program_and_does_not_warn_of_the_same_work_without_it() {
    let all = explained_all();
    let mut wrong = Vec::new();
    for rule in rules() {
        let (example, of) = (&rule.example, |sample: &str| &all[sample][rule.name]);
        let (with, without) = (of(example.with), of(example.without));
        let is_named = with["own_method"].as_str() == example.own_method
            && example.subject.is_none_or(|start| with["subject"].as_str().is_some_and(|text| text.starts_with(start)));
        if verdict(with) < example.verdict || !is_named {
            wrong.push(format!("{} of {}: {with:#}", rule.name, example.with));
        }
        // Where the worst verdict is worth a look, the twin has to be better than that.
        if verdict(without) >= example.verdict {
            wrong.push(format!("{} of {}: {without:#}", rule.name, example.without));
        }
        let Some(sample) = example.unrecorded else { continue };
        if verdict(of(sample)) != Verdict::NotRecorded || !of(sample)["score"].is_null() {
            wrong.push(format!("{} of {sample}: {:#}", rule.name, of(sample)));
        }
    }
    for (rule, sample, why) in HARMLESS {
        let finding = &all[sample][*rule];
        if finding["verdict"] == "warning" {
            wrong.push(format!("{rule} of {sample}, though {why}: {finding:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_samples_are_those_of_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let list = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut found = 0;
    for file in std::fs::read_dir(root.join("habits")).unwrap() {
        let file = file.unwrap();
        let name = format!("habits/{}", file.file_name().to_str().unwrap());
        let bytes = std::fs::read(file.path()).unwrap();
        let sum: String = sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let row = list.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        assert!(row.is_some_and(|row| row.ends_with(&format!("| `{sum}` |"))), "{name} {sum}: {row:?}");
        found += 1;
    }
    let listed = list.lines().filter(|line| line.starts_with("| `habits/")).count();
    assert!(found > 30 && found == listed, "{found} samples, {listed} in the list");
}

/// The managed pool of .NET 6 and later writes its work items to another provider than the rest of the runtime: without
/// it `queue_delay` has no events.
#[test]
fn the_profile_of_the_thread_pool_asks_for_work_items() {
    let dry = run(&["collect", "-p", "1", "--for", "threadpool", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    let asked = dry.out.lines().find(|line| line.starts_with("System.Diagnostics.Eventing.FrameworkEventSource:"));
    let [keywords, level] =
        asked.map(|line| line.rsplitn(3, ':').take(2).collect::<Vec<_>>()).map_or([0, 0], |parts| {
            [parts[1].trim_start_matches("0x"), parts[0]].map(|text| u64::from_str_radix(text, 16).unwrap())
        });
    assert!(keywords & 2 == 2 && level == 5, "{}", dry.out);
}
