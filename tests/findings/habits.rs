//! Each rule of `explain` on a program that has its defect, on the same work without it, and on a recording that lacks its events:
//! `samples/src/bugs/Habits.cs`. Those of `samples/src/bugs/Bugs.cs` are in `bugs.rs`. What holds of every rule is in
//! `crates/analyze/src/findings/rules/tests.rs`: more of the defect never scores less, and a loss takes no warning away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::Digest;

use crate::findings::bugs::BUGS;
use crate::support::program::run;

/// A rule, and the recordings it is held against.
struct Row {
    rule: &'static str,
    with: &'static str,
    without: &'static str,
    verdict: &'static str,
    own_method: Option<&'static str>,
    /// What the subject begins with.
    subject: Option<&'static str>,
    /// A recording without its events. None: the rule needs no events of its own.
    unrecorded: Option<&'static str>,
}

const fn row(rule: &'static str, with: &'static str, without: &'static str, verdict: &'static str) -> Row {
    Row { rule, with, without, verdict, own_method: None, subject: None, unrecorded: Some("habits/formulas") }
}

impl Row {
    const fn by(self, own_method: &'static str) -> Row {
        Row { own_method: Some(own_method), ..self }
    }

    const fn of(self, subject: &'static str) -> Row {
        Row { subject: Some(subject), ..self }
    }

    const fn always_recorded(self) -> Row {
        Row { unrecorded: None, ..self }
    }
}

/// The rules that `findings::BUGS` does not have.
const ROWS: &[Row] = &[
    row("growing_live_set", "habits/grows", "habits/grows-clean", "warning"),
    row("growing_handles", "habits/handles", "habits/handles-clean", "warning"),
    row("starvation", "figures/recordings/starved", "figures/recordings/calm", "warning"),
    row("queue_delay", "habits/inbox", "habits/inbox-clean", "warning"),
    row("slow_queries", "habits/find", "habits/find-clean", "warning")
        .by("Depot.Search.Find")
        .of("SELECT * FROM parcel WHERE note LIKE @p?"),
    row("dies_in_gen2", "habits/belt", "habits/belt-clean", "warning").by("Depot.Parcel..ctor").of("System.Byte[]"),
    row("string_churn", "habits/strings", "habits/strings-clean", "warning")
        .by("Depot.Labels.Write")
        .of("System.String"),
    row("induced", "habits/induced", "habits/induced-clean", "warning").by("Depot.Cleaning.After"),
    row("pause_share", "habits/old", "habits/old-clean", "warning"),
    row("long_pause", "habits/unstoppable", "habits/unstoppable-clean", "warning").of("gc_id "),
    row("odd_pause", "habits/unstoppable", "habits/unstoppable-clean", "warning").of("gc_id "),
    row("suspension_dominates", "habits/unstoppable", "habits/unstoppable-clean", "warning"),
    row("slow_suspension", "habits/unstoppable", "habits/unstoppable-clean", "warning").of("gc_id "),
    row("loh_alloc_waits", "habits/large-waits", "habits/large-waits-clean", "warning").by("Depot.Photos.Develop"),
    row("blocking_full", "habits/photos", "habits/photos-clean", "warning"),
    row("many_gen0", "habits/often", "habits/often-clean", "warning").by("Depot.Garbage.Make"),
    row("many_gen2", "habits/induced", "habits/induced-clean", "warning"),
    row("gen1_survival", "habits/grows", "habits/grows-clean", "warning"),
    row("young_held_by_old", "habits/old", "habits/old-clean", "warning"),
    // A program that freed 90 % of generation 2 did not reach the 70 % of a warning: the runtime compacted at once.
    row("gen2_free_on_entry", "habits/holes", "habits/holes-clean", "info"),
    row("datas_cost", "habits/datas", "habits/datas-clean", "warning"),
    row("loh_free", "habits/large-holes", "habits/large-holes-clean", "warning"),
    row("high_memory_load", "habits/cache", "habits/cache-clean", "warning"),
    row("finalizers", "habits/finalizers", "habits/finalizers-clean", "warning"),
    row("pinned_survivors", "habits/pinned", "habits/pinned-clean", "warning"),
    row("type_dominates", "habits/strings", "habits/strings-clean", "info")
        .by("Depot.Labels.Write")
        .of("System.String"),
    Row {
        unrecorded: Some("habits/handles"),
        ..row("jit_time", "habits/formulas", "habits/formulas-clean", "warning")
    },
    row("requests_in_pauses", "habits/counter", "habits/counter-clean", "warning"),
    row("lost_events", "habits/noise", "habits/noise-clean", "warning").always_recorded(),
    row("unnamed_frames", "habits/unnamed", "habits/unnamed-clean", "warning").always_recorded(),
];

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

/// Each sample once, on all processors.
fn explained_all() -> BTreeMap<&'static str, BTreeMap<String, Value>> {
    let samples: BTreeSet<&'static str> =
        ROWS.iter().flat_map(|row| [Some(row.with), Some(row.without), row.unrecorded]).flatten().collect();
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
    let rules: BTreeSet<&str> = all.values().next().unwrap().keys().map(String::as_str).collect();
    let of_bugs = || BUGS.iter().map(|(_, rule, ..)| *rule);
    let held: BTreeSet<&str> = ROWS.iter().map(|row| row.rule).chain(of_bugs()).collect();
    assert_eq!(rules, held, "every rule has a program");
    assert_eq!(held.len(), ROWS.len() + BUGS.len(), "and one row");
    let mut wrong = Vec::new();
    for rule in of_bugs() {
        let finding = &all["habits/formulas"][rule];
        if finding["verdict"] != "not_recorded" || !finding["score"].is_null() {
            wrong.push(format!("{rule} of a recording of compilations: {finding:#}"));
        }
    }
    for row in ROWS {
        let of = |sample: &str| &all[sample][row.rule];
        let (with, without) = (of(row.with), of(row.without));
        let subject = with["subject"].as_str();
        let is_named = with["own_method"].as_str() == row.own_method
            && row.subject.is_none_or(|start| subject.is_some_and(|subject| subject.starts_with(start)));
        if with["verdict"] != row.verdict || !is_named {
            wrong.push(format!("{} of {}: {with:#}", row.rule, row.with));
        }
        // Where the worst verdict is worth a look, the twin has to be better than that.
        if without["verdict"] == "warning" || without["verdict"] == row.verdict {
            wrong.push(format!("{} of {}: {without:#}", row.rule, row.without));
        }
        let Some(sample) = row.unrecorded else { continue };
        if of(sample)["verdict"] != "not_recorded" || !of(sample)["score"].is_null() {
            wrong.push(format!("{} of {sample}: {:#}", row.rule, of(sample)));
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

/// The managed pool of .NET 6 and later writes its work items to another provider than the rest of the runtime: without it `queue_delay`
/// has no events.
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
