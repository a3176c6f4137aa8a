//! What is wrong in a recording: programs with a bug each, under load (`samples/src/bugs/Bugs.cs`), and the same work without it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::expected::shared_folder;
use crate::support::program::run;
#[cfg(unix)]
use crate::support::python::python;

/// Bug, rule, own method, subject.
const BUGS: &[(&str, &str, &str, &str)] = &[
    ("leak", "leak", "Shop.Session..ctor", "Shop.Session"),
    ("sync", "blocked_workers", "Shop.Prices.Answer", "sync over async"),
    ("large", "large_object_triggers", "Shop.Pictures.Answer", "System.Byte[]"),
    ("boxing", "boxing", "Shop.Totals.Answer", "System.Int32"),
    ("convoy", "lock_convoy", "Shop.Stock.Answer", ""),
    ("exceptions", "exceptions", "Shop.Orders.Read", "System.FormatException"),
    ("queries", "n_plus_one", "Shop.Baskets.AnswerAsync", "SELECT * FROM article WHERE id = ?"),
    ("calls", "n_plus_one_calls", "Shop.Shelves.AnswerAsync", ""),
];

fn recording(bug: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/bugs/{bug}.nettrace.zst"))
}

/// The findings of the only recording, the most important first.
fn explained(input: &Path, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["explain", input.to_str().unwrap(), "--format", "json"];
    arguments.extend(more);
    let made = run(&arguments);
    assert_eq!(made.code, Some(0), "{}: {}", input.display(), made.err);
    let all: Value = serde_json::from_str(&made.out).unwrap();
    all[0]["findings"].as_array().unwrap().clone()
}

#[test]
fn each_bug_is_named_first_or_second_and_the_same_work_without_it_warns_of_nothing() {
    for (bug, rule, method, subject) in BUGS {
        let found = explained(&recording(bug), &[]);
        let place = found.iter().position(|finding| finding["rule"] == *rule).unwrap();
        assert!(place < 2, "{bug}: {:#?}", found.get(..3));
        let finding = &found[place];
        assert!(matches!(finding["verdict"].as_str(), Some("warning" | "info")), "{bug}: {finding:#}");
        if !method.is_empty() {
            assert_eq!(finding["own_method"], *method, "{bug}");
        }
        if !subject.is_empty() {
            assert_eq!(finding["subject"], *subject, "{bug}");
        }
        let clean = explained(&recording(&format!("{bug}-clean")), &[]);
        let warned: Vec<&Value> = clean.iter().filter(|finding| finding["verdict"] == "warning").collect();
        assert!(warned.is_empty(), "{bug} without it: {warned:#?}");
        let same = clean.iter().find(|finding| finding["rule"] == *rule).unwrap();
        assert!(!matches!(same["verdict"].as_str(), Some("warning" | "info")), "{bug}: {same:#}");
    }
}

// On Wine there is no Python with DuckDB.
#[cfg(unix)]
/// The recording has a dump of the heap at its end. The source of the program says what holds a session: the event `News.Changed`.
#[test]
fn what_holds_the_objects_that_leak_is_named_from_a_heap_dump() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("leak");
    let input = recording("leak-heap");
    assert_eq!(run(&["convert", "-q", input.to_str().unwrap(), "-o", dataset.to_str().unwrap()]).code, Some(0));
    let query = format!(
        "SELECT count(*) FROM '{0}/heap_object.parquet' WHERE type_id IN (SELECT type_id FROM '{0}/type.parquet' WHERE name = 'Shop.Session')",
        dataset.display()
    );
    let Some(python) = python("what_holds_the_objects_that_leak_is_named_from_a_heap_dump") else { return };
    let code = "import duckdb, sys; duckdb.execute('SET enable_progress_bar = false'); print(duckdb.execute(sys.argv[1]).fetchone()[0])";
    let counted = std::process::Command::new(python).args(["-c", code, &query]).output().unwrap();
    let sessions = String::from_utf8(counted.stdout).unwrap();
    assert!(sessions.trim().parse::<u64>().unwrap() > 1000, "{sessions}");
    let held = format!("In the last heap dump {} objects of Shop.Session, which retain ", sessions.trim());
    let path = "held by static field Changed > System.Action`1[System.String] > System.Object[] > \
                System.Action`1[System.String] > Shop.Session.";
    for input in [&recording("leak-heap"), &dataset] {
        let found = explained(input, &[]);
        for rule in ["leak", "growing_live_set"] {
            let finding = found.iter().find(|finding| finding["rule"] == rule).unwrap();
            let sentence = finding["sentence"].as_str().unwrap();
            assert!(sentence.contains(&held) && sentence.ends_with(path), "{sentence}");
            let next = format!("tracequet heap {} --type Shop.Session", input.display());
            assert_eq!(finding["next_step"], next);
            assert_eq!(finding["subject"], "Shop.Session");
        }
    }
    // Without a dump the next step is to take one.
    let found = explained(&recording("leak"), &[]);
    let leak = found.iter().find(|finding| finding["rule"] == "leak").unwrap();
    assert!(
        !leak.to_string().contains("In the last heap dump")
            && leak.to_string().contains(" --heap -o heap && tracequet heap heap --type Shop.Session"),
        "{leak}"
    );
}

#[test]
fn a_warning_ends_with_the_code_of_a_broken_rule() {
    let [bug, clean] = ["convoy", "convoy-clean"].map(recording);
    let code = |input: &Path| run(&["explain", input.to_str().unwrap(), "--fail-on", "warning"]).code;
    assert_eq!((code(&bug), code(&clean)), (Some(3), Some(0)));
    let text = run(&["explain", bug.to_str().unwrap()]).out;
    assert!(text.contains("WARNING") && text.contains("where:  Shop.Stock.Answer"), "{text}");
    assert!(text.lines().count() <= 60, "at most a screen: {text}");
    let markdown = run(&["explain", bug.to_str().unwrap(), "--format", "markdown"]).out;
    assert!(markdown.contains("**WARNING ") && markdown.contains("`Shop.Stock.Answer`"), "{markdown}");
}

/// Each warning is shown with what to change and a command that runs, however many findings there are.
#[test]
fn warnings_are_never_cut_off() {
    let made = run(&["explain", recording("convoy").to_str().unwrap()]).out;
    let count = |text: &str, start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(count(&made, "  change: "), count(&made, "WARNING ") + count(&made, "INFO "), "{made}");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/fourth/right/explain-cuts.tar.zst");
    if !shared.is_file() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unpacked = zstd::decode_all(std::fs::File::open(shared).unwrap()).unwrap();
    let archive = folder.path().join("cuts.tar");
    std::fs::write(&archive, unpacked).unwrap();
    let tar = std::process::Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(tar.unwrap().success());
    let dataset = folder.path().join("c-gc");
    // Made by an earlier version; what is asked for is in its tables as it was.
    let manifest = dataset.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let now = format!("\"schema_version\": {}", tracequet::dataset::table::schema::SCHEMA_VERSION);
    std::fs::write(&manifest, text.replace("\"schema_version\": 11", &now)).unwrap();
    // The dataset is older, and its frames lack a column: the table is left out, as with --tables.
    std::fs::remove_file(dataset.join("frame.parquet")).unwrap();
    let text = run(&["explain", dataset.to_str().unwrap()]).out;
    assert!(text.contains(": 4 warnings") && count(&text, "WARNING ") == 4, "{text}");
}

/// What explain warns of, check fails on: of a recording, and of a dataset whose conversion followed no objects.
#[test]
fn check_knows_the_leak_that_explain_finds() {
    let input = recording("leak");
    let found = explained(&input, &[]);
    let leak = found.iter().find(|finding| finding["rule"] == "leak").unwrap();
    assert_eq!(leak["verdict"], "warning");
    let folder = tempfile::tempdir().unwrap();
    let (rules, set) = (folder.path().join("rules.toml"), folder.path().join("set"));
    std::fs::write(&rules, "[[rule]]\ncheck = \"finding.score[leak] <= 50\"\n").unwrap();
    let checked = |input: &Path| {
        let made = run(&["check", input.to_str().unwrap(), "--rules", rules.to_str().unwrap(), "--json"]);
        (made.code, serde_json::from_str::<Value>(&made.out).unwrap_or_else(|_| panic!("{} {}", made.out, made.err)))
    };
    assert_eq!(run(&["convert", "-q", input.to_str().unwrap(), "-o", set.to_str().unwrap()]).code, Some(0));
    for input in [&input, &set] {
        let (code, found) = checked(input);
        assert!(
            code == Some(3) && found.to_string().contains(&format!("\"value\":{}", leak["score"])),
            "{found} {leak}"
        );
    }
    // Without the ranges that objects are followed by, it says where to look.
    let lacks = folder.path().join("lacks");
    let made =
        run(&["convert", "-q", input.to_str().unwrap(), "-o", lacks.to_str().unwrap(), "--tables", "metric,gc,trace"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let (code, found) = checked(&lacks);
    assert!(code == Some(2) && found.to_string().contains("tracequet explain says what to record"), "{found}");
}

/// The server sends one request for each that comes in, on connections whose requests all have the same ids.
#[test]
fn a_call_belongs_to_the_request_of_its_time() {
    let Some(folder) = shared_folder("a_call_belongs_to_the_request_of_its_time", "fourth") else { return };
    let found = explained(&folder.join("right/one240.nettrace.zst"), &[]);
    let calls = found.iter().find(|finding| finding["rule"] == "n_plus_one_calls").unwrap();
    assert_eq!((&calls["verdict"], &calls["figure"]), (&"fine".into(), &1.0.into()), "{calls}");
}

#[test]
fn own_code_is_what_a_pattern_says() {
    let method = |more: &[&str]| {
        let found = explained(&recording("convoy"), more);
        found.into_iter().find(|finding| finding["rule"] == "lock_convoy").unwrap()["own_method"].clone()
    };
    assert_eq!(method(&["--own", "Bugs"]), "Shop.Stock.Answer");
    assert_eq!(method(&["--own", "Shop.Program.*"]), "Shop.Program.Answer");
    assert_eq!(method(&["--not-own", "Bugs"]), Value::Null);
    let folded = |more: &[&str]| {
        let input = recording("convoy");
        let mut arguments = vec!["export", input.to_str().unwrap(), "--what", "contention", "--format", "folded"];
        arguments.extend(more);
        run(&arguments).out
    };
    let (plain, own) = (folded(&[]), folded(&["--own"]));
    assert!(plain.contains(";System.Threading.") && !plain.contains("(framework)"), "{plain}");
    assert!(own.contains("(framework);") && !own.contains("System.Threading."), "{own}");
}

/// What the table has is what its other tables give, and what `metric` has.
#[test]
fn the_table_has_the_findings_and_the_figures_have_their_scores() {
    let folder = tempfile::tempdir().unwrap();
    let convert = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let (input, output) = (recording("convoy"), out.to_str().unwrap().to_owned());
        let mut arguments = vec!["convert", "-q", input.to_str().unwrap(), "-o", output.as_str()];
        arguments.extend(more);
        assert_eq!(run(&arguments).code, Some(0));
        out
    };
    let all = convert("all", &[]);
    let tables = tracequet::analyze::findings::Findings::tables().join(",");
    let others = convert("others", &["--tables", &tables]);
    let plain = |findings: Vec<Value>| -> Vec<Value> {
        let without = |mut finding: Value| {
            // One asks for the recording by its key, the other for the only one; and each has its own folder.
            ["evidence_sql", "next_step"].into_iter().for_each(|key| finding[key] = Value::Null);
            finding
        };
        findings.into_iter().map(without).collect()
    };
    let (stored, computed) = (explained(&all, &[]), explained(&others, &[]));
    assert_eq!(plain(stored.clone()), plain(computed));
    let stats = run(&["stats", all.to_str().unwrap(), "--format", "json"]);
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    let metrics = stats[0]["metrics"].as_array().unwrap();
    let judged: Vec<&Value> = stored.iter().filter(|finding| !finding["score"].is_null()).collect();
    assert!(judged.len() > 3);
    for finding in judged {
        let name = format!("finding.score[{}]", finding["rule"].as_str().unwrap());
        let metric = metrics.iter().find(|metric| metric["name"] == name.as_str()).expect(&name);
        assert_eq!(metric["value"], finding["score"], "{name}");
    }
}

// On Wine there is no Python with DuckDB.
#[cfg(unix)]
#[test]
fn the_evidence_of_each_finding_is_a_query_that_runs() {
    let Some(python) = python("the_evidence_of_each_finding_is_a_query_that_runs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lake");
    let mut arguments =
        vec!["convert".to_owned(), "-q".into(), "--lifetimes".into(), "-o".into(), out.to_str().unwrap().into()];
    arguments.extend(BUGS.iter().map(|(bug, ..)| recording(bug).to_str().unwrap().to_owned()));
    arguments.push("samples/subjects.nettrace".into());
    assert_eq!(run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).code, Some(0));
    let one = folder.path().join("one");
    let input = recording("boxing");
    assert_eq!(run(&["convert", "-q", input.to_str().unwrap(), "-o", one.to_str().unwrap()]).code, Some(0));
    crate::dataset::readers::run(&python, "findings.py", &[out, one]);
}

/// The summary above the findings has all that was recorded, and names what was not: the same sentences in text, JSON and on the page.
#[test]
fn the_summary_needs_no_rule_and_says_what_was_not_recorded() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let orders = samples.join("requests/orders.nettrace.zst");
    let json: Value =
        serde_json::from_str(&run(&["explain", orders.to_str().unwrap(), "--format", "json"]).out).unwrap();
    let topics = json[0]["summary"]["topics"].as_array().unwrap();
    let names: Vec<&str> = topics.iter().map(|topic| topic["topic"].as_str().unwrap()).collect();
    let all =
        ["processor", "allocations", "pauses", "locks", "waits", "exceptions", "compiling", "requests", "threads"];
    assert_eq!(names, all);
    let methods = |name: &str| topics.iter().find(|topic| topic["topic"] == name).unwrap()["own_methods"].clone();
    assert_eq!(methods("locks")[0]["method"], "Shop.Orders.WaitForLock");
    assert_eq!(methods("allocations")[0]["method"], "Shop.Orders.Allocate");
    assert!(methods("processor").as_array().unwrap().len() <= 5);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    run(&["report", orders.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap().replace('\u{a0}', " ");
    let text = run(&["explain", orders.to_str().unwrap()]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    for topic in topics {
        let sentence = topic["text"].as_str().unwrap();
        assert!(text.contains(sentence), "{sentence}: {text}");
        let of_page = sentence.replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;");
        assert!(page.contains(&of_page), "{of_page}");
    }
    let requests = topics[7]["text"].as_str().unwrap();
    assert!(requests.starts_with("72 requests; the slowest routes: GET /cpu/{id} (99 % of 8 in"), "{requests}");
    assert!(requests.contains("on the processor") && requests.ends_with("unexplained"), "{requests}");
    let quiet = run(&["explain", samples.join("habits/handles-clean.nettrace.zst").to_str().unwrap()]).out;
    let quiet = quiet.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(quiet.contains("not recorded: processor, allocations, locks,"), "{quiet}");
    assert!(quiet.contains("tracequet collect --for cpu,allocations,contention,"), "{quiet}");
    assert!(!quiet.contains(": nothing found;"), "{quiet}");
}
