//! Figures of recordings: DuckDB computes the same by the SQL of docs/METRICS.md; rules, comparisons and exit codes on the
//! worked example of docs/CI.md.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracequet::analyze::metrics::{Metric, computed, definitions, metrics};
use tracequet::dataset::read::Dataset;

use crate::support::program::run;
#[cfg(unix)]
use crate::support::python::python;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// docs/METRICS.md as the definitions give it.
fn document() -> String {
    let mut out = String::from(
        "# Metrics\n\n`tracequet stats` prints these figures, and rules of `tracequet check` name them. Each figure belongs to one \
         recording. The\ntable `metric` of each dataset has a row for each figure. The SQL below computes the same in DuckDB: `cd \
         DATASET; duckdb -init\nviews.sql`. Of what was not recorded the SQL gives 0, or no row.\n\n\
         `stats` shows figures by subject, and leaves out those that were not recorded; a last line names the subjects of which nothing \
         was. The scores\nof findings are no figures there: a subject has the names of the rules that warn of it or find something of \
         interest, and\n`tracequet explain` shows these. `--format json` has every figure in one list, with the reason where there is no \
         value.\n\n\
         - A figure that was not recorded is null, never 0. Counts and sums of empty sets are 0 only where such events were asked \
         for\n  (`tracequet collect` stores what it asks for, as the table `session_provider`), or where others that come with \
         them are in\n  the recording. The column `missing` has the reason: `not_asked`; `not_seen` (no such event, and nothing \
         says whether they\n  were asked for); `empty` (recorded, and nothing to take the figure of, such as a percentile of no \
         pauses).\n\
         - A figure has a `process_id`. Where `scope` is `machine`, it is made of rows of several processes, as in an .etl. \
         `--process`\n  converts those of one.\n\
         - `source` is the kind of rows that a figure was made from, where there are several that stand for the same.\n\
         - Metrics with `[...]` have the 20 largest values (counters: 500). Rows without a type or a name count as \
         `[(unknown)]`.\n\
         - A percentile is the value at position `ceil(q * rows)` of the sorted values. With more than a million values its error is \
         at most 1/4,000.\n\
         - \"Better\" is the direction that `diff` calls better. Exact metrics are compared as they are, others by a test over the \
         runs\n  ([CI.md](CI.md)).\n\
         - How sure that test is, on recorded runs of one program ([samples/ci/noise](../samples/ci/noise)), ten on each side: of equal \
         builds it calls\n  1.9 % worse by allocations and 1.5 % by the longest pause (at most 2 % is promised). It finds 14 % more \
         allocation beyond a bound of\n  10 % in 90 % of draws (31 % more: in all), 10 % more survivors beyond a bound of 5 % in all, \
         and pauses of 2.6 times the length in all. With\n  5 runs these are 75, 100, 100 and 94 %. [CI.md](CI.md#how-a-rule-is-decided) \
         has the table, with what stays undecided.\n\n\
         The median of a figure for each commit of a branch:\n\n```bash\nduckdb -init views.sql -c \"SELECT labels['commit'], \
         median(value) / 1e6 AS pause_ms FROM metric JOIN labelled_trace USING (trace_id)\n  WHERE name = 'gc.pause.p99' AND \
         labels['branch'] = 'main' GROUP BY ALL\"\n```\n",
    );
    for definition in definitions().unwrap() {
        let better = format!("{:?}", definition.better).to_lowercase();
        let exact = if definition.exact { ", exact" } else { "" };
        out.push_str(&format!(
            "\n## {}\n\n**{}.** {} Unit: {}; better: {better}{exact}.\n\n```sql\n{}\n```\n",
            definition.name,
            definition.title,
            definition.doc,
            definition.unit,
            definition.sql()
        ));
    }
    out
}

#[test]
fn the_metrics_are_documented() {
    let path = root().join("docs/METRICS.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, document()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    assert!(text == document(), "docs/METRICS.md is stale: UPDATE_DOCS=1 cargo test the_metrics_are_documented");
}

// On Wine there is no Python with DuckDB.
#[cfg(unix)]
#[test]
fn duckdb_computes_the_same_figures() {
    let Some(python) = python("duckdb_computes_the_same_figures") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lake");
    let samples = ["gc-churn", "server-gc", "stacks", "heap", "events-3.1"];
    let mut arguments = vec!["convert".to_owned(), "-q".into(), "-o".into(), out.to_str().unwrap().into()];
    arguments.extend(samples.map(|sample| format!("samples/{sample}.nettrace")));
    // It counts the objects of each type, and says nothing of their bytes.
    arguments.push("samples/callbacks.corprof".into());
    arguments.push("samples/spans/spans.nettrace.zst".into());
    let subjects = "samples/subjects.nettrace";
    if root().join(subjects).is_file() {
        arguments.push(subjects.into());
    }
    // One that cannot be read has no figures.
    let broken = folder.path().join("broken.nettrace");
    std::fs::write(&broken, "Nettrace").unwrap();
    arguments.push(broken.to_str().unwrap().into());
    let made = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(made.code, Some(2), "{}", made.err);
    let stats = run(&["stats", out.to_str().unwrap(), "--format", "json"]);
    assert!(matches!(stats.code, Some(0 | 2)), "{}", stats.err);
    assert!(stats.out.contains("\"source\": \"tick\"") && !stats.out.contains("[]\""), "{}", stats.out);
    let figures = folder.path().join("stats.json");
    std::fs::write(&figures, &stats.out).unwrap();
    crate::dataset::readers::run(&python, "metrics.py", &[root().join("docs/METRICS.md"), out, figures]);
}

/// The figures that are made while a recording is converted are those of the tables that came of it.
#[test]
fn the_table_of_figures_has_what_the_other_tables_give() {
    let folder = tempfile::tempdir().unwrap();
    let convert = |sample: &str, more: &[&str]| -> (Dataset, Vec<Metric>) {
        let out = folder.path().join("out");
        let arguments = [&["convert", "-q", sample, "--overwrite", "-o", out.to_str().unwrap()], more].concat();
        let made = run(&arguments);
        assert!(matches!(made.code, Some(0 | 2)), "{}", made.err);
        let dataset = Dataset::open(out).unwrap();
        let stored = metrics(&dataset.recording(None).unwrap()).unwrap();
        (dataset, stored)
    };
    let mut compared = 0;
    for sample in ["gc-churn.nettrace", "stacks.nettrace", "subjects.nettrace", "kernel.etl", "callbacks.corprof"] {
        let sample = format!("samples/{sample}");
        let (dataset, stored) = convert(&sample, &[]);
        assert_eq!(stored, computed(&dataset.recording(None).unwrap()).unwrap(), "{sample}");
        compared += stored.len();
        for more in [&["--tables", "metric"][..], &["--layout", "hive", "--address-type", "int64", "--format", "arrow"]]
        {
            assert_eq!(stored, convert(&sample, more).1, "{sample} {more:?}");
        }
        let (dataset, few) = convert(&sample, &["--tables", "gc,gc_pause"]);
        assert!(few.len() < stored.len() && !few.is_empty(), "{sample}: {few:?}");
        // Without event_type nothing says what was recorded.
        let is_it = |metric: &Metric, other: &Metric| (&metric.name, metric.value) == (&other.name, other.value);
        let is_stored = |metric: &Metric| metric.value.is_none() || stored.iter().any(|other| is_it(metric, other));
        assert!(few.iter().all(is_stored), "{sample}: {few:?}");
        assert!(dataset.tables().iter().all(|table| table.name != "metric"));
    }
    assert!(compared > 150, "{compared}");
}

/// The difference that four deviations allow: objects of a size are sampled with a chance, each by itself.
pub fn four_deviations(objects: f64, size: f64) -> f64 {
    let chance = 1.0 - (1.0f64 - 1.0 / 102_400.0).powf(size);
    4.0 * (objects * (1.0 - chance) / chance).sqrt() * size
}

/// The worked example: five runs of a program, and five with a switch that makes it allocate more.
pub fn example(folder: &Path) -> PathBuf {
    let lake = folder.join("lake");
    for (kind, more) in [("main", "run=1"), ("change", "run=2")] {
        let recordings = format!("samples/ci/recordings/{kind}-*.zst");
        let label = format!("branch={kind}");
        let out = lake.to_str().unwrap();
        let made = run(&["convert", "-q", &recordings, "-o", out, "--append", "--label", &label, "--label", more]);
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
    lake
}

#[test]
fn the_worked_example_fails_with_the_switch_and_passes_without() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let lake = lake.to_str().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let check = |more: &[&str]| run(&[&["check", lake, "--rules", "samples/ci/perf.toml"], more].concat());
    let (junit, markdown) = (at("out.xml"), at("summary.md"));
    let worse =
        check(&["--new", "branch=change", "--baseline", "branch=main", "--junit", &junit, "--markdown", &markdown]);
    assert_eq!(worse.code, Some(3), "{}{}", worse.out, worse.err);
    assert!(worse.out.contains("FAILED") && worse.out.contains("allocation.bytes <= baseline * 1.10"), "{}", worse.out);
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("failures=\"1\"") && junit.contains("&lt;= baseline * 1.10"), "{junit}");
    // Where to look: the type that the change allocates, which its program says.
    assert!(junit.contains("see change-") && junit.contains("grew most: allocation.by_type[System.Byte[]]"), "{junit}");
    let markdown = std::fs::read_to_string(markdown).unwrap();
    assert!(markdown.starts_with("### Performance") && markdown.contains("| FAILED |"), "{markdown}");
    // The same program against itself, some of its runs against the others.
    let same = check(&["--new", "branch=main", "--baseline", "branch=main"]);
    assert_eq!(same.code, Some(2), "no run is left for the baseline: {}", same.out);
    let better = check(&["--new", "branch=main", "--baseline", "branch=change"]);
    assert_eq!(better.code, Some(0), "{}", better.out);
}

/// What each run is said to allocate, of all and of each type, is what the program counts: within four deviations of the samples.
#[test]
fn the_worked_example_shows_what_its_program_allocates() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let dataset = Dataset::open(&lake).unwrap();
    let mut compared = 0;
    for recording in dataset.each_recording() {
        let kind = &recording.info().labels["branch"];
        let truth = std::fs::read_to_string(root().join(format!("samples/ci/recordings/{kind}.truth.txt"))).unwrap();
        let figures = metrics(&recording).unwrap();
        for (name, bytes) in truth.lines().map(|line| line.split_once(' ').unwrap()) {
            let bytes: f64 = bytes.parse().unwrap();
            let name = if name == "total" { "allocation.bytes".into() } else { format!("allocation.by_type[{name}]") };
            let found = figures.iter().find(|metric| metric.name == name);
            assert!(found.is_none_or(|found| found.source.as_deref() == Some("sampled")));
            let found = found.map_or(0.0, |found| found.value.unwrap_or_default());
            // Objects of some 50 bytes, 400,000 of each type.
            let allowed = four_deviations(bytes / 48.0, 48.0) + 1e6;
            assert!(
                (found - bytes).abs() < allowed,
                "{}: {name} {found}, {bytes} allocated",
                recording.info().trace_id
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 40);
}

#[test]
fn comparing_says_what_is_worse_and_what_may_be_chance() {
    let folder = tempfile::tempdir().unwrap();
    let lake = example(folder.path());
    let lake = lake.to_str().unwrap();
    let compared = run(&["diff", lake, "--baseline", "branch=main", "--new", "branch=change", "--json"]);
    assert_eq!(compared.code, Some(0), "{}", compared.err);
    let all: Value = serde_json::from_str(&compared.out).unwrap();
    let of = |name: &str| all["metrics"].as_array().unwrap().iter().find(|m| m["metric"] == name).unwrap().clone();
    let bytes = of("allocation.bytes");
    assert_eq!(bytes["what"], "worse");
    // Five runs wholly above five: 2 of 252 ways.
    assert!((bytes["chance"].as_f64().unwrap() - 2.0 / 252.0).abs() < 1e-3, "{bytes}");
    assert_eq!(of("lost.events")["what"], "same");
    let one =
        run(&["diff", "samples/ci/recordings/main-1.nettrace.zst", "samples/ci/recordings/change-1.nettrace.zst"]);
    assert!(one.out.contains("Fewer than 4 recordings on a side: chance may have made"), "{}", one.out);
}

#[test]
fn what_is_not_comparable_and_what_was_lost_is_undecided() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake").to_str().unwrap().to_owned();
    let rules = folder.path().join("perf.toml");
    std::fs::write(&rules, "rules = ['gc.count <= baseline * 100', 'allocation.bytes <= 1GB']").unwrap();
    let rules = rules.to_str().unwrap();
    for (sample, label) in [("server-gc", "kind=server"), ("gc-churn", "kind=workstation"), ("exit-early", "kind=cut")]
    {
        let sample = format!("samples/{sample}.nettrace");
        run(&["convert", "-q", &sample, "-o", &lake, "--append", "--label", label]);
    }
    let check = |new: &str| run(&["check", &lake, "--rules", rules, "--new", new, "--baseline", "kind=workstation"]);
    let server = check("kind=server");
    assert_eq!(server.code, Some(2), "{}", server.out);
    assert!(server.out.contains("not comparable: GC heaps was 1, now"), "{}", server.out);
    let cut = check("kind=cut");
    assert_eq!(cut.code, Some(2), "{}", cut.out);
    assert!(cut.out.contains("has losses") && !cut.out.contains("passed  "), "{}", cut.out);
    assert_eq!(check("kind=none").code, Some(2));
    // One run of two could not be read.
    let broken = folder.path().join("broken.nettrace");
    std::fs::write(&broken, &std::fs::read("samples/heap.nettrace").unwrap()[..100]).unwrap();
    let kept = check("kind=workstation");
    assert!(kept.out.contains("1 passed"), "{}", kept.out);
    // The labels of a recording with a damaged entry are unknown.
    let entries = std::fs::read_dir(Path::new(&lake).join("manifest")).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.into_iter().find(|path| path.to_string_lossy().contains("server-gc")).unwrap();
    let whole = std::fs::read(&entry).unwrap();
    std::fs::write(&entry, &whole[..whole.len() / 2]).unwrap();
    let doubtful = check("kind=workstation");
    assert!(doubtful.code == Some(2) && doubtful.out.contains("0 passed"), "{}", doubtful.out);
    assert!(doubtful.out.contains("is damaged, so that it may belong here"), "{}", doubtful.out);
    for (arguments, what) in [
        (&["stats", lake.as_str()][..], "ITS ENTRY IS DAMAGED"),
        (&["diff", &lake, "--all", "--baseline", "kind=workstation", "--new", "kind=cut"], "gc.count"),
    ] {
        let stated = run(arguments);
        assert!(
            stated.code == Some(2) && stated.out.contains(what) && stated.err.contains("server-gc"),
            "{}",
            stated.out
        );
    }
    std::fs::write(&entry, whole).unwrap();
    run(&["convert", "-q", broken.to_str().unwrap(), "-o", &lake, "--append", "--label", "kind=workstation"]);
    let failed = check("kind=workstation");
    assert_eq!(failed.code, Some(2), "{}", failed.out);
    assert!(failed.out.contains("could not be read") && failed.out.contains("0 passed"), "{}", failed.out);
    std::fs::write(rules, "rules = ['allocation.byte <= 1GB']").unwrap();
    let typo = check("kind=server");
    assert!(typo.code == Some(1) && typo.err.contains("the nearest is allocation.bytes"), "{}", typo.err);
}

#[test]
fn what_has_no_figures_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (out, rules) = (folder.path().join("out"), folder.path().join("perf.toml"));
    std::fs::write(&rules, "rules = ['gc.count <= 5']").unwrap();
    let (out, rules) = (out.to_str().unwrap(), rules.to_str().unwrap());
    let made = run(&["convert", "-q", "--tables", "thread", "samples/gc-churn.nettrace", "-o", out]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    for arguments in [&["stats", out][..], &["diff", "--all", out, out]] {
        let some = run(arguments);
        assert_eq!(some.code, Some(0), "{}", some.err);
        assert!(some.err.contains("there are no metrics of finding, gc, gc_pause, "), "{}", some.err);
        assert!(some.out.contains("recording.duration"), "{}", some.out);
    }
    let undecided = run(&["check", out, "--rules", rules]);
    assert_eq!(undecided.code, Some(2), "{}", undecided.err);
    assert!(undecided.out.contains("it is made of the table gc"), "{}", undecided.out);
    let whole = run(&["stats", "samples/gc-churn.nettrace"]);
    assert!(whole.code == Some(0) && whole.err.is_empty(), "{}", whole.err);
}

#[test]
fn the_verdict_is_told_when_a_report_cannot_be_written_and_rules_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("perf.toml"), "rules = ['gc.count <= 5']").unwrap();
    let check = |more: &[&str]| run(&[&["check", "samples/gc-churn.nettrace"], more].concat());
    let unwritten = check(&["--rules", &at("perf.toml"), "--junit", &at("none/out.xml")]);
    assert!(unwritten.code == Some(1) && unwritten.out.contains("FAILED"), "{}", unwritten.out);
    std::fs::write(at("long.toml"), format!("rules = []{}", " ".repeat(1 << 20))).unwrap();
    let long = check(&["--rules", &at("long.toml")]);
    assert!(long.code == Some(1) && long.err.contains("at most 1 MiB"), "{}", long.err);
    #[cfg(unix)]
    assert_eq!(check(&["--rules", "/dev/zero"]).code, Some(1));
}

#[test]
fn a_dataset_of_nothing_that_could_be_read_has_losses() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("broken.nettrace"), "Nettrace").unwrap();
    std::fs::write(at("perf.toml"), "rules = ['gc.count <= 5']").unwrap();
    let lake = at("lake");
    run(&["convert", "-q", &at("broken.nettrace"), "-o", &lake, "--append"]);
    for more in [&["--latest"][..], &[]] {
        let stats = run(&[&["stats", lake.as_str()], more].concat());
        assert_eq!((stats.code, stats.err.as_str()), (Some(2), ""), "{}", stats.out);
        assert!(stats.out.contains("COULD NOT BE READ"), "{}", stats.out);
    }
    let check = run(&["check", &lake, "--rules", &at("perf.toml")]);
    assert!(check.code == Some(2) && check.out.contains("could not be read"), "{}", check.out);
}

/// GitHub drops a summary that is too large as a whole.
#[test]
fn the_summary_of_a_job_stays_under_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (rules, summary) = (folder.path().join("perf.toml"), folder.path().join("steps.md"));
    let many = vec!["'gc.count <= 5'"; 100].join(", ");
    std::fs::write(&rules, format!("rules = [{many}]")).unwrap();
    for before in [0, (1 << 20) - 2000, (1 << 20) - 10, 2 << 20] {
        std::fs::write(&summary, vec![b'x'; before]).unwrap();
        let recording = "samples/gc-churn.nettrace";
        let mut check = crate::support::program::command(&["check", recording, "--rules", rules.to_str().unwrap()]);
        let output = check.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let after = std::fs::read(&summary).unwrap().split_off(before);
        let text = String::from_utf8(after).unwrap();
        assert!(text.is_empty() || before + text.len() <= 1 << 20, "{before}: {} more", text.len());
        assert_eq!(text.matches("| FAILED |").count() == 100, before == 0, "{text}");
        assert_eq!(text.contains(" more\n"), before == (1 << 20) - 2000, "{text}");
    }
}

#[test]
fn a_dataset_is_listed_verified_and_recordings_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let out = lake.to_str().unwrap();
    let convert = |name: &str| {
        let sample = format!("samples/{name}.nettrace");
        assert_eq!(run(&["convert", "-q", "--tables", "gc", &sample, "-o", out, "--append"]).code, Some(0));
    };
    convert("gc-churn");
    let before = crate::support::files::files(&lake);
    convert("server-gc");
    let listed = run(&["dataset", "list", out]);
    assert_eq!(listed.code, Some(0));
    let key =
        listed.out.lines().find_map(|line| line.split_whitespace().find(|w| w.starts_with("server-gc-"))).unwrap();
    assert_eq!(run(&["dataset", "verify", out]).code, Some(0));
    std::fs::create_dir_all(lake.join("gc/trace=stray")).unwrap();
    let stray = run(&["dataset", "verify", out]);
    assert!(stray.code == Some(2) && stray.out.contains("trace=stray"), "{}", stray.out);
    std::fs::remove_dir(lake.join("gc/trace=stray")).unwrap();
    #[cfg(unix)]
    links_are_not_followed(out);
    std::fs::write(lake.join(format!("gc/trace={key}/part-0.parquet")), "PAR1 damaged").unwrap();
    assert_eq!(run(&["dataset", "verify", out]).code, Some(2));
    assert_eq!(run(&["dataset", "remove", out, "nobody"]).code, Some(1));
    assert_eq!(run(&["dataset", "remove", out, key]).code, Some(0));
    assert!(before == crate::support::files::files(&lake), "as if it had never been added");
    let latest = run(&["stats", out, "--latest"]);
    assert!(latest.code == Some(0) && latest.out.contains("gc.count.gen2"), "{}", latest.out);
}

/// A link in a circle ends the search no later; one that readers of the table would follow is reported.
#[cfg(unix)]
fn links_are_not_followed(lake: &str) {
    use std::os::unix::fs::symlink;

    let at = |name: &str| std::path::Path::new(lake).join("gc").join(name);
    symlink(lake, at("circle")).unwrap();
    let verified = run(&["dataset", "verify", lake]);
    // Were the circle followed, there would be one in each round.
    assert!(verified.code == Some(2) && verified.out.ends_with(" 1 wrong\n"), "{}", verified.out);
    symlink(lake, at("trace=link")).unwrap();
    let verified = run(&["dataset", "verify", lake]);
    assert_eq!(
        (verified.code, verified.out.matches("belongs to no recording").count()),
        (Some(2), 1),
        "{}",
        verified.out
    );
    ["circle", "trace=link"].into_iter().for_each(|name| std::fs::remove_file(at(name)).unwrap());
}
