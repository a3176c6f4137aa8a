//! Figures held against what a program says of itself: requests with known outcomes, counters with known values, a
//! thread pool that is starved, and one that is not (`samples/figures`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::dataset::Dataset;
use crate::support::program::run;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/figures/recordings/{name}.nettrace.zst"))
}

/// What the program says: the first words of each line with the number behind them.
fn written_down(name: &str) -> BTreeMap<String, Vec<f64>> {
    let path = recording(name).with_extension("").with_extension("truth.txt");
    let text = std::fs::read_to_string(path).expect("what the program says");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let (words, numbers): (Vec<&str>, Vec<&str>) = line.split(' ').partition(|word| word.parse::<f64>().is_err());
        // `answer 503 8`: the status is a name.
        let (key, numbers) = match (words.as_slice(), numbers.as_slice()) {
            (["answer"], [status, count]) => (format!("answer {status}"), vec![*count]),
            _ => (words.join(" "), numbers),
        };
        found.insert(key, numbers.iter().map(|number| number.parse().unwrap()).collect());
    }
    assert!(!found.is_empty());
    found
}

fn figures(name: &str) -> BTreeMap<String, Value> {
    figures_of(&recording(name))
}

/// The figures of a recording by name.
fn figures_of(recording: &Path) -> BTreeMap<String, Value> {
    let stats = run(&["stats", recording.to_str().unwrap(), "--json"]);
    assert_eq!(stats.code, Some(0), "{}", stats.err);
    let all: Value = serde_json::from_str(&stats.out).unwrap();
    let metrics = all[0]["metrics"].as_array().unwrap().iter();
    metrics.map(|metric| (metric["name"].as_str().unwrap().to_owned(), metric.clone())).collect()
}

fn value(figures: &BTreeMap<String, Value>, name: &str) -> Option<f64> {
    figures.get(name).unwrap_or_else(|| panic!("no {name}"))["value"].as_f64()
}

#[test]
fn requests_fail_as_often_as_the_client_saw() {
    let written = written_down("requests");
    let of = |status: &str| written[&format!("answer {status}")][0];
    let answered: f64 = ["200", "404", "500", "503"].iter().map(|status| of(status)).sum();
    let found = figures("requests");
    // HttpClient says the status of each answer, and which requests had none.
    let (all, failed) = (answered + of("none"), of("500") + of("503") + of("none"));
    assert_eq!(value(&found, "request.client.count"), Some(all));
    assert_eq!(value(&found, "request.client.failed.count"), Some(failed));
    assert_eq!(value(&found, "request.client.failed"), Some(failed / all));
    assert_eq!(found["request.client.count"]["source"], "System.Net.Http/Request");
    // ASP.NET Core's EventSource says which requests threw, and nothing of a status of 503: how large a part failed is
    // not known.
    assert_eq!(value(&found, "request.server.count"), Some(answered));
    assert_eq!(value(&found, "request.server.failed.count"), Some(of("500")));
    assert_eq!(value(&found, "request.server.failed"), None);
    assert_eq!(found["request.server.failed"]["missing"], "empty");
    assert_eq!(found["request.server.p99"]["source"], "Microsoft.AspNetCore.Hosting/Request");

    let activity = Dataset::of(&recording("requests")).table("activity");
    let (providers, names) = (activity.texts("provider_name"), activity.texts("name"));
    let (results, codes) = (activity.texts("result"), activity.optional("status_code"));
    let count = |provider: &str, result: &str, code: Option<u64>| {
        let rows = (0..activity.rows()).filter(|row| providers[*row] == provider && names[*row] == "Request");
        rows.filter(|row| results[*row] == result && codes[*row] == code).count() as f64
    };
    assert_eq!(count("System.Net.Http", "success", Some(404)), of("404"));
    assert_eq!(count("System.Net.Http", "failure", Some(503)), of("503"));
    assert_eq!(count("System.Net.Http", "failure", None), of("none"));
    assert_eq!(count("Microsoft.AspNetCore.Hosting", "failure", None), of("500"));
    assert_eq!(count("Microsoft.AspNetCore.Hosting", "unknown", None), answered - of("500"));
    assert_eq!(count("Microsoft-AspNetCore-Server-Kestrel", "unknown", None), answered);
}

#[test]
fn counters_have_the_means_and_totals_of_what_was_measured() {
    let (written, found) = (written_down("counters"), figures("counters"));
    let [sum, count] = written["latency"][..] else { panic!() };
    let mean = value(&found, "counter.mean[Tracequet-Figures/latency]").unwrap();
    assert!((mean - sum / count).abs() < 1e-9, "{mean}, {sum} of {count}");
    assert_eq!(value(&found, "counter.increase[Tracequet-Figures/done]"), Some(written["done"][0]));
    assert_eq!(value(&found, "counter.increase[Tracequet.Figures/orders]"), Some(written["orders"][0]));
    assert_eq!(value(&found, "counter.total[Tracequet.Figures/orders]"), Some(written["orders"][0]));

    let counter = Dataset::of(&recording("counters")).table("counter");
    let names = counter.texts("name");
    let (values, intervals) = (counter.floats("value"), counter.signed("interval_ns"));
    for (name, key) in [("done", "Tracequet-Figures/done"), ("orders", "Tracequet.Figures/orders")] {
        let rows: Vec<usize> =
            (0..counter.rows()).filter(|row| names[*row] == name && values[*row].is_some()).collect();
        let seconds: f64 = rows.iter().map(|row| intervals[*row].expect("an interval") as f64 / 1e9).sum();
        let rate = value(&found, &format!("counter.mean[{key}]")).unwrap();
        let of_program = written[name][0] / seconds;
        assert!((rate / of_program - 1.0).abs() < 1e-9, "{name}: {rate} a second, {of_program}");
        // The program runs for four seconds and a half; 200 ms were asked for.
        assert!((2.0..6.0).contains(&seconds), "{seconds}");
    }
    let order = names.iter().position(|name| name == "orders").unwrap();
    for (column, expected) in [("meter_version", "1.2"), ("meter_tags", "region=north"), ("instrument_tags", "shop=7")]
    {
        assert_eq!(counter.texts(column)[order], expected, "{column}");
    }
    assert!(!counter.texts("meter_scope")[order].is_empty());
}

#[test]
fn a_pool_that_is_starved_shows_and_one_that_is_not_does_not() {
    let [before, most] = written_down("starved")["threads"][..] else { panic!() };
    let starved = value(&figures("starved"), "threadpool.starvation.count").unwrap();
    // Each thread beyond the two that may always be there was added because none came free; some were added again.
    assert!(before == 0.0 && starved >= most - 2.0 && starved <= 2.0 * most, "{starved} times, {most} threads");
    let calm = figures("calm");
    assert_eq!(value(&calm, "threadpool.starvation.count"), Some(0.0));
    assert_eq!(value(&calm, "exception.count"), None, "exceptions were not asked for");

    let pool = Dataset::of(&recording("starved")).table("thread_pool");
    let (reasons, workers) = (pool.texts("reason"), pool.optional("worker_count"));
    let mut goal = workers.iter().flatten().next().copied().unwrap();
    let mut added = 0;
    for row in (0..pool.rows()).filter(|row| reasons[*row] == "CooperativeBlocking") {
        let now = workers[row].unwrap();
        added += usize::from(now > goal);
        goal = now;
    }
    assert_eq!(starved, added as f64);
}

/// Jobs of a worker, each a span with one within it: the program says which lie in no other one, and which failed.
#[test]
fn the_work_of_a_worker_is_its_requests() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/spans");
    let (recording, truth) = (samples.join("spans.nettrace.zst"), samples.join("spans.truth.jsonl"));
    let said = std::fs::read_to_string(truth).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let roots = said.iter().filter(|line| line["what"] == "span" && line["parent"].is_null());
    let roots: Vec<&str> = roots.map(|line| line["span"].as_str().unwrap()).collect();
    let failed = said.iter().filter(|line| line["what"] == "log" && line["level"] == "error").count();
    assert_eq!((roots.len(), failed), (6, 3));
    let activities = Dataset::of(&recording).table("activity");
    let (spans, durations) = (activities.texts("span_id"), activities.signed("duration_ns"));
    let of_roots = spans.iter().zip(&durations).filter(|(span, _)| roots.contains(&span.as_str()));
    let mut durations: Vec<i64> = of_roots.map(|(_, duration)| duration.unwrap()).collect();
    durations.sort_unstable();
    let found = figures_of(&recording);
    assert_eq!(value(&found, "request.server.count"), Some(roots.len() as f64));
    assert_eq!(value(&found, "request.server.p50"), Some(durations[2] as f64));
    assert_eq!(value(&found, "request.server.p99"), Some(durations[5] as f64));
    assert_eq!(value(&found, "request.server.failed.count"), Some(failed as f64));
    assert_eq!(found["request.server.count"]["source"], "(spans)");
    assert!(found.keys().all(|name| !name.contains("(spans)")) && found.contains_key("activity.count[Shop.Queue/job]"));
    // They gate a build, and stand in a comparison.
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("perf.toml");
    let path = recording.to_str().unwrap();
    for (rule, code) in [("request.server.count >= 6", 0), ("request.server.failed.count <= 2", 3)] {
        std::fs::write(&rules, format!("rules = ['{rule}']")).unwrap();
        let checked = run(&["check", path, "--rules", rules.to_str().unwrap()]);
        assert_eq!(checked.code, Some(code), "{rule}: {}{}", checked.out, checked.err);
    }
    let compared = run(&["diff", path, path, "--format", "json"]);
    assert!(compared.out.contains("request.server.p99"), "{}{}", compared.out, compared.err);
}

/// Programs with an ActivitySource: five works with one within each, forty by eight tasks, and three.
#[test]
fn spans_without_ids_of_tasks_are_requests() {
    let test = "spans_without_ids_of_tasks_are_requests";
    let Some(shared) = crate::support::expected::shared_folder(test, "fourth") else { return };
    for (name, expected) in [("sources/act", 5.0), ("sources/act2", 40.0), ("right/act-noids", 3.0)] {
        let found = figures_of(&shared.join(name).with_extension("nettrace"));
        assert_eq!(value(&found, "request.server.count"), Some(expected), "{name}");
    }
}
