//! What a gate may conclude: nothing of what was not recorded, no baseline of a stranger; and what its reports say.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::metrics::stats::example;
use crate::support::program::run;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The step of action.yml itself: what it gives the script for a pull request of a fork whose branch is called main.
#[cfg(unix)]
#[test]
fn a_fork_whose_branch_is_called_main_is_no_baseline() {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let step = text.split("id: check").nth(1).unwrap().split("- name:").next().unwrap();
    let lines = step.split("run: |\n").nth(1).unwrap().lines().take_while(|line| line.starts_with("        "));
    let shell: String = lines.map(|line| format!("{}\n", line.trim())).collect();
    assert!(
        step.contains("HEAD_REPOSITORY: ${{ github.event.pull_request.head.repo.full_name || github.repository }}")
    );
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bin = Path::new(env!("CARGO_BIN_EXE_tracequet")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    std::fs::write(at("perf.toml"), "rules = ['allocation.bytes <= baseline * 1.10']").unwrap();
    let check = |repository: &str, branch: &str, kind: &str, commit: &str| {
        let mut bash = std::process::Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &shell]).current_dir(root()).env("PATH", &path);
        bash.env_remove("GITHUB_STEP_SUMMARY").env("GITHUB_OUTPUT", at("output")).env("GITHUB_ACTION_PATH", root());
        bash.env("RECORDINGS", format!("samples/ci/recordings/{kind}-[1-4].nettrace.zst"));
        bash.env("RULES", at("perf.toml")).env("DATASET", at("lake")).env("REPORTS", at("reports")).env("MORE", "");
        bash.env("BRANCH", branch).env("HEAD_REPOSITORY", repository).env("GITHUB_REPOSITORY", "us/app");
        bash.env("GITHUB_SHA", commit).env("NEW", format!("commit={commit}")).env("BASELINE", "branch=main");
        let output = bash.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // The runs of the fork allocate more: were they the baseline, ours would be better.
    let (code, out) = check("them/app", "main", "change", "1");
    assert_eq!(code, Some(2), "{out}");
    let (code, out) = check("us/app", "feature", "main", "2");
    assert!(code == Some(2) && out.contains("the baseline has no recording"), "{out}");
}

/// Names of providers are a stranger's text, and a job summary makes links and mentions of such.
#[test]
fn names_from_recordings_are_code_in_markdown() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let source = |name: &str, out: &str| {
        // The name of a source of `measures`, with another one of the same length.
        let mut bytes = std::fs::read(root().join("samples/measures.nettrace")).unwrap();
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (from, to) = (wide("System.Diagnostics.Metrics"), wide(name));
        assert_eq!(from.len(), to.len());
        let mut replaced = 0;
        let mut place = 0;
        while let Some(found) = bytes[place..].windows(from.len()).position(|window| window == from) {
            bytes[place + found..place + found + from.len()].copy_from_slice(&to);
            place += found + from.len();
            replaced += 1;
        }
        assert!(replaced > 0);
        std::fs::write(out, bytes).unwrap();
    };
    let (evil, lake) = ("https://evil.example/@root", at("lake"));
    source(evil, &at("a.nettrace"));
    let convert = |input: &str, label: &str| run(&["convert", "-q", input, "-o", &lake, "--append", "--label", label]);
    convert(&at("a.nettrace"), "kind=new");
    convert("samples/measures.nettrace", "kind=old");
    std::fs::write(at("perf.toml"), "rules = ['wait.count <= baseline']").unwrap();
    let rules = at("perf.toml");
    let checked = run(&[
        "check",
        &lake,
        "--rules",
        &rules,
        "--new",
        "kind=new",
        "--baseline",
        "kind=old",
        "--markdown",
        &at("out.md"),
    ]);
    assert_eq!(checked.code, Some(2), "{}{}", checked.out, checked.err);
    let text = std::fs::read_to_string(at("out.md")).unwrap();
    assert!(text.contains(evil), "{text}");
    for line in text.lines() {
        // What stands between fences is code; each line closes those that it opens.
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains("evil") && line.matches('`').count() % 2 == 0, "{line}");
    }
}

#[test]
fn a_recording_of_collections_says_nothing_of_exceptions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sample = "samples/gc-churn.nettrace";
    let checks = [
        "exception.count == 0",
        "contention.duration <= 1ms",
        "threadpool.starvation.count == 0",
        "request.server.failed <= 1%",
        "wait.count <= 5",
        "jit.foreground.count <= 5",
        "cpu.samples <= 5",
    ];
    let rules = |more: &str| checks.map(|check| format!("[[rule]]\ncheck = '{check}'\n{more}\n")).concat();
    for (more, code, word, count) in
        [("", 2, "undecided", 7), ("absent = 0", 0, "passed", 7), ("severity = 'warn'", 0, "undecided", 7)]
    {
        std::fs::write(at("perf.toml"), rules(more)).unwrap();
        let checked = run(&["check", sample, "--rules", &at("perf.toml")]);
        assert_eq!(checked.code, Some(code), "{more}: {}", checked.out);
        assert!(checked.out.contains(&format!("{count} {word}")), "{more}: {}", checked.out);
    }
    let stats = run(&["stats", sample, "--json"]);
    let all: Value = serde_json::from_str(&stats.out).unwrap();
    let of = |name: &str| all[0]["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name).unwrap().clone();
    assert_eq!(
        (of("exception.count")["value"].clone(), of("exception.count")["missing"].clone()),
        (Value::Null, "not_seen".into())
    );
    assert!(of("gc.count")["value"].as_f64().unwrap() > 0.0 && of("gc.count")["missing"].is_null());
    assert_eq!(of("gc.count")["scope"], "process");
    assert!(of("gc.count")["process_id"].as_u64().unwrap() > 0);
    // An .etl has several processes.
    let etl = run(&["stats", "samples/kernel.etl", "--json"]);
    let all: Value = serde_json::from_str(&etl.out).unwrap();
    let of = |name: &str| all[0]["metrics"].as_array().unwrap().iter().find(|m| m["name"] == name).unwrap().clone();
    assert_eq!(
        (of("cpu.samples")["scope"].clone(), of("cpu.samples")["process_id"].clone()),
        ("machine".into(), 0.into())
    );
}

#[test]
fn reports_have_p_sizes_and_bounds_and_warnings_are_no_failures() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let lake = lake.to_str().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let rules = "rules = ['gc.pause.max <= 3600s', 'heap.size.max <= 1']\n\
                 [[rule]]\ncheck = 'allocation.bytes <= baseline * 1.10'\nseverity = 'warn'\n\
                 [[rule]]\ncheck = 'counter.max[none/such] <= 5'\nseverity = 'warn'\n";
    std::fs::write(at("perf.toml"), rules).unwrap();
    let check = |rules: &str| {
        let sides = ["--new", "branch=change", "--baseline", "branch=main"];
        let reports = ["--junit", &at("out.xml"), "--markdown", &at("out.md")];
        run(&[&["check", lake, "--rules", rules][..], &sides, &reports].concat())
    };
    let checked = check(&at("perf.toml"));
    assert_eq!(checked.code, Some(3), "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("1 failed, 1 warning, 1 undecided, 1 passed"), "{}", checked.out);
    let junit = std::fs::read_to_string(at("out.xml")).unwrap();
    let line =
        |name: &str| junit.lines().find(|line| line.contains(&format!("classname=\"{name}"))).unwrap().to_owned();
    let allocated = line("allocation.bytes");
    for part in ["bound ", "baseline ", "change +46.5 % (+36.8 to +59.8 %)", "5 against 5 runs", "p = 0.004"] {
        assert!(allocated.contains(part), "{allocated}");
    }
    let undecided = line("counter.max");
    assert!(
        !junit.contains("(bound") && undecided.contains("bound 5: 5 of 5 runs") && !undecided.contains("p ="),
        "{junit}"
    );
    let markdown = std::fs::read_to_string(at("out.md")).unwrap();
    let row = markdown.lines().find(|line| line.contains("allocation.bytes")).unwrap();
    assert!(row.contains("| warning |") && row.contains("| 5 / 5 | 0.004 |"), "{row}");
    // Warnings alone set no exit code, whether they are broken or undecided.
    let warnings = rules.split_once("[[rule]]").unwrap().1;
    std::fs::write(at("warn.toml"), format!("[[rule]]{warnings}")).unwrap();
    assert_eq!(check(&at("warn.toml")).code, Some(0));
}

#[test]
fn a_baseline_is_the_newest_runs_or_those_since_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let rules = folder.path().join("perf.toml");
    std::fs::write(&rules, "rules = ['allocation.bytes <= baseline * 1.10']").unwrap();
    let check = |more: &[&str]| {
        let sides = ["--json", "--new", "branch=change", "--baseline", "branch=main"];
        let given = ["check", lake.to_str().unwrap(), "--rules", rules.to_str().unwrap()];
        run(&[&given[..], &sides, more].concat())
    };
    let runs = |more: &[&str]| {
        let checked = check(more);
        let found: Value = serde_json::from_str(&checked.out).unwrap_or_else(|_| panic!("{more:?}: {}", checked.err));
        (found[0]["baseline_runs"].as_u64().unwrap(), found[0]["verdict"].as_str().unwrap().to_owned())
    };
    assert_eq!(runs(&[]), (5, "failed".into()));
    assert_eq!(runs(&["--last", "4"]), (4, "failed".into()));
    // The runs have one value of the label: they belong together.
    assert_eq!(runs(&["--last", "1", "--by", "branch"]), (5, "failed".into()));
    assert_eq!(runs(&["--since", "36500d"]), (5, "failed".into()));
    assert_eq!(runs(&["--since", "2100-01-01"]), (0, "undecided".into()));
    for wrong in [["--since", "yesterday"], ["--since", "2026/01/01"], ["--last", "0"]] {
        assert_eq!(check(&wrong).code, Some(1), "{wrong:?}");
    }
}

/// Ten recordings of one program and ten of another: copies, each packed with a time of its own.
#[test]
fn a_history_shows_where_metrics_stepped() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake").to_str().unwrap().to_owned();
    for build in ["main", "change"] {
        let packed = std::fs::read(format!("samples/ci/recordings/{build}-1.nettrace.zst")).unwrap();
        let recording = zstd::decode_all(packed.as_slice()).unwrap();
        for copy in 0..10 {
            let file = std::fs::File::create(folder.path().join(format!("{build}-{copy}.nettrace.gz"))).unwrap();
            let mut file = flate2::GzBuilder::new().mtime(copy + 1).write(file, flate2::Compression::fast());
            file.write_all(&recording).unwrap();
            file.finish().unwrap();
        }
        let recordings = folder.path().join(format!("{build}-*.nettrace.gz"));
        let label = format!("branch={build}");
        let converted = ["convert", "-q", recordings.to_str().unwrap(), "-o", &lake, "--append", "--label", &label];
        assert_eq!(run(&converted).code, Some(0));
    }
    let history = |more: &[&str]| run(&[&["check", &lake, "--history"][..], more].concat());
    let found = history(&["--format", "json"]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    let steps: Value = serde_json::from_str(&found.out).unwrap();
    let of = |name: &str| steps.as_array().unwrap().iter().find(|step| step["metric"] == name).cloned();
    let step = of("allocation.bytes").unwrap_or_else(|| panic!("{steps:#}"));
    let value = |sample: &str| {
        let stats = run(&["stats", &format!("samples/ci/recordings/{sample}-1.nettrace.zst"), "--json"]);
        let runs: Value = serde_json::from_str(&stats.out).unwrap();
        let metrics = runs[0]["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == "allocation.bytes").unwrap()["value"].as_f64()
    };
    assert_eq!([&step["before"], &step["after"]].map(Value::as_f64), [value("main"), value("change")], "{step:#}");
    assert!(step["at"].as_str().unwrap().starts_with("change-") && step["direction"] == "worse", "{step:#}");
    assert_eq!(of("lost.events"), None);
    // Values of a label count once each: two are too few for a step.
    assert!(history(&["--by", "branch"]).out.starts_with("0 steps in "));
    assert!(history(&["branch=main"]).out.contains("of 10 runs"));
    assert_eq!(history(&["--rules", "samples/ci/perf.toml"]).code, Some(1));
    assert_eq!(run(&["check", &lake]).code, Some(1), "without rules");
}

#[test]
fn metrics_for_bencher_are_medians_of_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let lake = lake.to_str().unwrap();
    let json = |arguments: &[&str]| serde_json::from_str::<Value>(&run(arguments).out).unwrap();
    let [printed, runs] = [json(&["stats", lake, "--bencher", "branch"]), json(&["stats", lake, "--json"])];
    assert_eq!(printed.as_object().unwrap().keys().collect::<Vec<_>>(), ["change", "main"]);
    for branch in ["change", "main"] {
        let of_branch = runs.as_array().unwrap().iter().filter(|run| run["labels"]["branch"] == branch);
        let metrics = of_branch.flat_map(|run| run["metrics"].as_array().unwrap());
        let mut values: Vec<f64> =
            metrics.filter(|one| one["name"] == "allocation.bytes").map(|one| one["value"].as_f64().unwrap()).collect();
        values.sort_by(f64::total_cmp);
        let [least, _, middle, _, most] = values[..] else { panic!("five runs: {values:?}") };
        let expected = serde_json::json!({"value": middle, "lower_value": least, "upper_value": most});
        assert_eq!(printed[branch]["allocation.bytes"], expected);
        let names: Vec<_> = printed[branch].as_object().unwrap().keys().collect();
        assert!(names.len() > 10 && names.iter().all(|name| !name.contains('[')), "{names:?}");
    }
}
