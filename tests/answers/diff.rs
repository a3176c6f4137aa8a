//! `tracequet diff`, `heap --base` and `export --base`: against DuckDB over the tables of both sides, and programs with a bug and
//! without it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::answers::export::{fields, numbers};
use crate::support::files::sample;
use crate::support::program::run;

/// Bug, section, and the own method that comes first in it.
const BUGS: &[(&str, &str, &str)] = &[
    ("convoy", "contention", "Shop.Stock.Answer"),
    ("boxing", "allocation", "Shop.Totals.Answer"),
    ("large", "allocation", "Shop.Pictures.Answer"),
    ("exceptions", "exception", "Shop.Orders.Read"),
    ("sync", "wait", "Shop.Prices.Answer"),
    ("queries", "allocation", "Shop.Baskets.Query"),
];

fn recording(bug: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/bugs/{bug}.nettrace.zst"));
    path.to_str().unwrap().to_owned()
}

pub fn diff(arguments: &[&str]) -> Value {
    let made = run(&[&["diff", "--json"], arguments].concat());
    assert_eq!(made.code, Some(0), "{arguments:?}: {}", made.err);
    serde_json::from_str(&made.out).unwrap()
}

pub fn section<'v>(answer: &'v Value, what: &str) -> &'v Value {
    answer["sections"].as_array().unwrap().iter().find(|section| section["what"] == what).unwrap()
}

/// A dataset of some recordings, in a folder.
fn lake(folder: &Path, name: &str, recordings: &[String], options: &[&str]) -> String {
    let out = folder.join(name).to_str().unwrap().to_owned();
    let inputs: Vec<&str> = recordings.iter().map(String::as_str).collect();
    let made = run(&[&["convert", "-q", "-o", &out], options, &inputs[..]].concat());
    assert_eq!(made.code, Some(0), "{}", made.err);
    out
}

#[test]
fn a_bug_is_the_first_change_of_its_section() {
    let folder = tempfile::tempdir().unwrap();
    let converted = |name: &str| lake(folder.path(), name, &[recording(name)], &[]);
    for (bug, what, method) in BUGS {
        let (base, new) = (converted(&format!("{bug}-clean")), converted(bug));
        let answer = diff(&[&base, &new]);
        let section = section(&answer, what);
        let first = &section["rows"][0];
        assert_eq!(first["own_method"], *method, "{bug}: {first:#}");
        assert_eq!(first["is_noise"], false, "{bug}: {first:#}");
        // What was not recorded is no zero: only where the base has the events there is a change.
        let is_known = section["base"]["absent"].is_null();
        assert_eq!(first["change"].is_null(), !is_known, "{bug}: {first:#}");
        assert_eq!(first["base"].is_null(), !is_known, "{bug}: {first:#}");
        // And the other way round.
        let back = diff(&[&new, &base]);
        let of_method = |answer: &Value| {
            let rows = self::section(answer, what)["rows"].as_array().unwrap().clone();
            rows.into_iter().find(|row| row["own_method"] == *method).unwrap()
        };
        assert_eq!(of_method(&back)["change"].as_f64(), of_method(&answer)["change"].as_f64().map(|change| -change));
        let text = run(&["diff", &base, &new]).out;
        assert!(text.lines().count() <= 60, "at most a screen: {text}");
        assert!(text.contains(method) && !text.contains("within noise\n\n\n"), "{text}");
    }
    // What a bug is called comes with it.
    let of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sync = diff(&[&of("sync-clean"), &of("sync")]);
    let found: Vec<(&str, &str)> = sync["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["rule"].as_str().unwrap(), finding["what"].as_str().unwrap()))
        .collect();
    assert!(found.contains(&("blocked_workers", "came")), "{found:?}");
    let back = diff(&[&of("sync"), &of("sync-clean")]);
    let went =
        back["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "blocked_workers").unwrap();
    assert_eq!((&went["what"], &went["own_method"]), (&"went".into(), &"Shop.Prices.Answer".into()));
    // One recording a side shows a way to go, and no difference.
    let metric = back["metrics"].as_array().unwrap().iter().find(|one| one["metric"] == "threadpool.starvation.count");
    let metric = metric.unwrap();
    assert_eq!(
        [&metric["what"], &metric["toward"], &metric["chance"]],
        [&"unclear".into(), &"better".into(), &Value::Null]
    );
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let same = [recording("leak"), sample("heap-10.nettrace").to_str().unwrap().to_owned(), recording("convoy")];
    for input in &same {
        for by in ["own", "method", "type"] {
            let answer = diff(&[input, input, "--by", by]);
            for row in answer["sections"].as_array().unwrap().iter().flat_map(|one| one["rows"].as_array().unwrap()) {
                assert_eq!((&row["change"], &row["is_noise"]), (&0.0.into(), &true.into()), "{row:#}");
                assert_eq!(row["base"], row["new"]);
            }
            let metrics = answer["metrics"].as_array().unwrap();
            assert!(metrics.len() > 10 && metrics.iter().all(|one| one["what"] == "same" && one["is_noise"] == true));
            assert_eq!(answer["findings"].as_array().unwrap().len(), 0);
            assert!(answer["heap"].is_null() || answer["heap"]["types"] == Value::Array(Vec::new()));
        }
    }
    let text = run(&["diff", &same[2], &same[2]]).out;
    assert!(text.contains("no change") && text.contains("none changed") && !text.contains('+'), "{text}");
}

/// The rows of a list that are not noise, by their names.
fn changed<'v>(answer: &'v Value, list: &str, name: &str) -> Vec<(&'v str, &'v Value)> {
    let rows = answer[list].as_array().unwrap().iter().filter(|row| row["is_noise"] == false);
    rows.map(|row| (row[name].as_str().unwrap(), row)).collect()
}

/// Six and eight recordings of one program: what chance makes is no change, in findings and metrics either.
#[test]
fn what_chance_made_of_one_program_is_no_change() {
    const TEST: &str = "what_chance_made_of_one_program_is_no_change";
    let Some(folder) = crate::support::expected::shared_folder(TEST, "fourth/right/diffnull") else { return };
    let side = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let answer = diff(&[&side("a"), &side("b")]);
    let sides = ["base", "new"].map(|side| answer[side].as_array().unwrap().len());
    assert_eq!((sides, &answer["is_tested"]), ([6, 8], &true.into()));
    for (list, name) in [("findings", "rule"), ("metrics", "metric")] {
        for (of, row) in changed(&answer, list, name) {
            assert!(row["chance"].as_f64().is_some_and(|chance| chance <= 0.05), "{of}: {row:#}");
        }
        for row in answer[list].as_array().unwrap().iter().filter(|row| row["chance"].is_null()) {
            assert!(row["what"] != "worse" && row["what"] != "better", "{row:#}");
        }
    }
    // A finding has the chance of its score as a metric.
    let of = |list: &str, key: &str, name: &str| {
        answer[list].as_array().unwrap().iter().find(|row| row[key] == name).unwrap().clone()
    };
    let finding = of("findings", "rule", "blocking_full");
    let metric = of("metrics", "metric", "finding.score[blocking_full]");
    assert_eq!((&finding["what"], &finding["is_noise"]), (&"unclear".into(), &true.into()), "{finding:#}");
    assert_eq!((&finding["chance"], &metric["what"]), (&metric["chance"], &"unclear".into()), "{finding:#} {metric:#}");
    let text = run(&["diff", &side("a"), &side("b")]).out;
    assert!(!text.contains("blocking_full") && !text.contains('?'), "{text}");
}

/// Where workers sleep, less work is done, so that all it costs falls: the queue says what is wrong.
#[test]
fn what_users_wait_for_comes_first() {
    const TEST: &str = "what_users_wait_for_comes_first";
    let Some(folder) = crate::support::expected::shared_folder(TEST, "fourth/bugs") else { return };
    let [healthy, buggy] = ["healthy", "buggy"]
        .map(|kind| folder.join(format!("poolsleep-{kind}.all.nettrace.zst")).to_str().unwrap().to_owned());
    let answer = diff(&[&healthy, &buggy]);
    let metrics = changed(&answer, "metrics", "metric");
    let (first, row) = metrics[0];
    assert!(first.starts_with("counter.") && first.contains("threadpool-queue-length"), "{first}");
    assert!(row["base"].as_f64() < Some(5.0) && row["new"].as_f64() > Some(1000.0), "{row:#}");
    // Nothing is better or worse where one recording a side says so.
    assert!(metrics.iter().all(|(_, row)| row["what"] != "better" && row["what"] != "worse"));
    assert!(metrics.iter().any(|(name, row)| *name == "contention.duration" && row["toward"] == "better"));
    for section in answer["sections"].as_array().unwrap() {
        let per_second = |side: &Value| side["per_second"].as_f64().unwrap();
        for row in section["rows"].as_array().unwrap().iter().filter(|row| row["is_noise"] == false) {
            let change = per_second(&row["new"]) - per_second(&row["base"]);
            assert!(section["unit"] != "ns" || change.abs() >= 1e6, "{row:#}");
        }
    }
    let text = run(&["diff", &healthy, &buggy]).out;
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
    assert!(place("Metrics:") < place("eadpool-queue-length]") && place("eadpool-queue-length]") < place("CPU:"));
    let all = run(&["diff", "--all", &healthy, &buggy]).out;
    assert!(text.contains("chance may have made any of these") && all.contains("better?"), "{text}");
}

#[test]
fn rows_are_told_apart_by_method_or_type() {
    let (base, new) = (recording("exceptions-clean"), recording("exceptions"));
    let first = |by: &str, what: &str| section(&diff(&[&base, &new, "--by", by]), what)["rows"][0].clone();
    let by_type = first("type", "exception");
    assert_eq!(
        (&by_type["own_method"], &by_type["type"]),
        (&"Shop.Orders.Read".into(), &"System.FormatException".into())
    );
    assert_eq!(by_type["method"], Value::Null);
    let by_method = first("method", "exception");
    assert!(by_method["method"].as_str().unwrap().starts_with("System."), "{by_method:#}");
    // The sums are the same however they are distinguished.
    let total = |by: &str| section(&diff(&[&base, &new, "--by", by]), "allocation")["new"]["total"]["amount"].clone();
    assert_eq!(total("own"), total("type"));
    let markdown = run(&["diff", &base, &new, "--by", "type", "--format", "markdown"]).out;
    assert!(markdown.contains("| `Shop.Orders.Read` | `System.FormatException` |"), "{markdown}");
    assert!(markdown.contains("|---:|"), "{markdown}");
}

// On Wine there is no Python with DuckDB.
#[cfg(unix)]
#[test]
fn sums_medians_and_chance_are_those_of_duckdb() {
    let Some(python) = crate::support::python::python("sums_medians_and_chance_are_those_of_duckdb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut at = 0;
    let mut compare = |base: &[&str], new: &[&str]| {
        at += 1;
        let all = |names: &[&str]| names.iter().map(|name| recording(name)).collect::<Vec<_>>();
        let base = lake(folder.path(), &format!("base-{at}"), &all(base), &[]);
        let new = lake(folder.path(), &format!("new-{at}"), &all(new), &[]);
        let answer = folder.path().join(format!("answer-{at}.json"));
        std::fs::write(&answer, run(&["diff", &base, &new, "--json"]).out).unwrap();
        crate::dataset::readers::run(&python, "diff.py", &[base.into(), new.into(), answer]);
    };
    compare(&["convoy-clean"], &["convoy"]);
    // Four on each side are enough for a test, and not all of them have exceptions and locks.
    compare(
        &["convoy-clean", "boxing-clean", "exceptions-clean", "sync-clean"],
        &["convoy", "boxing", "exceptions", "sync"],
    );
}

#[test]
fn sides_are_labels_directories_and_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let (base, new) = (recording("convoy-clean"), recording("convoy"));
    let expected = diff(&[&base, &new]);
    // Next steps name the recordings of a side, and run.
    let steps = std::cell::RefCell::new(Vec::new());
    let plain = |answer: &Value| {
        let mut answer = answer.clone();
        for finding in answer["findings"].as_array_mut().unwrap() {
            let step = finding.as_object_mut().unwrap().remove("next_step").unwrap();
            steps.borrow_mut().push(step.as_str().unwrap().to_owned());
        }
        ["sections", "findings", "metrics", "per"].map(|key| answer[key].clone())
    };
    let lake = lake(folder.path(), "lake", std::slice::from_ref(&base), &["--append", "--label", "branch=main"]);
    let more = run(&["convert", "-q", &new, "-o", &lake, "--append", "--label", "branch=feature"]);
    assert_eq!(more.code, Some(0), "{}", more.err);
    let of_labels = diff(&[&lake, "--baseline", "branch=main", "--new", "branch!=main"]);
    assert_eq!(plain(&of_labels), plain(&expected));
    assert_eq!(of_labels["new"][0]["labels"]["branch"], "feature");
    for (name, input) in [("before", &base), ("after", &new)] {
        let inside = folder.path().join(name);
        std::fs::create_dir(&inside).unwrap();
        std::fs::copy(input, inside.join("one.nettrace.zst")).unwrap();
    }
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(plain(&diff(&[&place("before"), &place("after/*.zst")])), plain(&expected));
    let steps = steps.into_inner();
    assert!(steps.iter().any(|step| step.contains("/lake --trace ")), "{steps:?}");
    for step in steps {
        let words: Vec<&str> = step.split(' ').collect();
        let made = run(&words[1..]);
        assert!(words[0] == "tracequet" && made.code == Some(0) && !made.out.is_empty(), "{step}: {}", made.err);
    }
    let empty = run(&["diff", &lake, "--baseline", "branch=other", "--new", "branch=main"]);
    assert!(empty.code == Some(1) && empty.err.contains("no recording that could be read"), "{}", empty.err);
}

#[test]
fn a_difference_is_rows_of_csv() {
    let (base, new) = (recording("exceptions-clean"), recording("exceptions"));
    let csv = run(&["diff", &base, &new, "--by", "type", "--format", "csv"]).out;
    assert!(csv.starts_with("part,name,beside,what,unit,base,new,chance,is_noise\n"), "{csv}");
    let answer = diff(&[&base, &new, "--by", "type"]);
    let lists = ["findings", "metrics"].map(|list| answer[list].as_array().unwrap().len());
    let rows: usize =
        answer["sections"].as_array().unwrap().iter().map(|one| one["rows"].as_array().unwrap().len()).sum();
    assert_eq!(csv.lines().count(), 1 + lists[0] + lists[1] + rows);
    assert!(csv.contains("\nexception,Shop.Orders.Read,System.FormatException,,count/s,,"), "{csv}");
}

#[test]
fn what_a_dataset_was_made_without_is_reported_and_not_zero() {
    let folder = tempfile::tempdir().unwrap();
    let whole = lake(folder.path(), "whole", &[recording("convoy")], &[]);
    let some =
        lake(folder.path(), "some", &[recording("convoy")], &["--tables", "trace,callsite,frame,wait,process,metric"]);
    let answer = diff(&[&some, &whole]);
    let locks = section(&answer, "contention");
    assert_eq!((&locks["base"]["absent"], &locks["new"]["absent"]), (&"no_table".into(), &Value::Null));
    for row in locks["rows"].as_array().unwrap() {
        assert!(
            row["base"].is_null() && row["change"].is_null() && row["new"]["amount"].as_f64() > Some(0.0),
            "{row:#}"
        );
    }
    // What both have is the same.
    assert!(section(&answer, "wait")["rows"].as_array().unwrap().iter().all(|row| row["change"] == 0.0));
    let text = run(&["diff", &some, &whole]).out;
    assert!(text.contains("nothing is known before: its dataset was made without the table contention"), "{text}");
    let nameless =
        lake(folder.path(), "nameless", &[recording("convoy")], &["--tables", "trace,wait,contention,metric"]);
    let answer = diff(&[&nameless, &whole]);
    assert!(answer["sections"].as_array().unwrap().iter().all(|one| one["base"]["absent"] == "no_table"), "{answer:#}");
}

#[test]
fn damaged_tables_are_errors_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = lake(folder.path(), "whole", &[recording("convoy")], &[]);
    for table in ["callsite", "frame", "cpu_sample", "allocation", "contention", "wait", "finding", "metric"] {
        let path = Path::new(&whole).join(format!("{table}.parquet"));
        let bytes = std::fs::read(&path).unwrap();
        for damaged in [&b"nothing"[..], &bytes[..bytes.len() / 2], &vec![0xff; bytes.len()]] {
            std::fs::write(&path, damaged).unwrap();
            let made = run(&["diff", &whole, &whole]);
            assert!(made.code == Some(1) && made.err.contains(table), "{table}: {:?} {}", made.code, made.err);
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(run(&["diff", &whole, &whole]).code, Some(0));
}

/// Call sites that name themselves as their own code, and callers and frames that are not there.
#[test]
fn rows_that_lead_nowhere_are_without_a_method() {
    use tracequet::analyze::check::runs;
    use tracequet::analyze::diff::{By, Measurer, Options, difference};
    let folder = tempfile::tempdir().unwrap();
    let whole = lake(folder.path(), "whole", &[recording("convoy")], &[]);
    let opened = tracequet::Dataset::open(&whole).unwrap();
    let run = runs(&opened, &[], None).unwrap().remove(0);
    let measure = |dataset: &tracequet::Dataset| {
        let run = run.clone();
        Measurer::new(By::Own).measure(&dataset.recording(None).unwrap(), run)
    };
    let measured = [measure(&opened).unwrap()];
    let all = difference(&measured, &measured, Options::default()).unwrap();
    assert!(all.sections.iter().flat_map(|section| &section.rows).all(|row| row.is_noise && row.change == Some(0.0)));
    // Without frames nothing has a name, and sums are what they were.
    let total = |difference: &tracequet::analyze::diff::Difference| {
        difference.sections.iter().map(|section| section.new.total.map(|total| total.amount)).collect::<Vec<_>>()
    };
    let frames = tempfile::tempdir().unwrap();
    let other = lake(frames.path(), "other", &[sample("heap.nettrace").to_str().unwrap().to_owned()], &[]);
    for table in ["callsite", "frame"] {
        let file = format!("{table}.parquet");
        std::fs::copy(Path::new(&other).join(&file), Path::new(&whole).join(&file)).unwrap();
        let strange = [measure(&tracequet::Dataset::open(&whole).unwrap()).unwrap()];
        let found = difference(&measured, &strange, Options::default()).unwrap();
        assert_eq!(total(&found), total(&all), "{table}");
    }
    // Less memory than the sums take is an error.
    let small = tracequet::Dataset::open(&whole).unwrap().holding(64);
    let error = measure(&small).unwrap_err().to_string();
    assert!(error.contains("more than"), "{error}");
}

#[test]
fn heaps_are_compared_by_type() {
    let [old, new, dump] =
        ["heap.nettrace", "heap-10.nettrace", "heap-10.gcdump"].map(|name| sample(name).to_str().unwrap().to_owned());
    let types = |input: &str| {
        let made = run(&["heap", input, "--json"]);
        let answer: Value = serde_json::from_str(&made.out).unwrap();
        let row = |row: &Value| {
            let number = |key: &str| row[key].as_f64().unwrap();
            (
                row["type"].as_str().unwrap().to_owned(),
                [number("objects"), number("size_bytes"), number("retained_bytes")],
            )
        };
        answer["types"].as_array().unwrap().iter().map(row).collect::<BTreeMap<_, _>>()
    };
    let compared = |base: &str, new: &str| -> Value {
        let made = run(&["heap", new, "--base", base, "--by", "size", "--json"]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        serde_json::from_str(&made.out).unwrap()
    };
    let (before, after) = (types(&old), types(&new));
    let answer = compared(&old, &new);
    let mut found = 0;
    for change in answer["types"].as_array().unwrap() {
        let name = change["type"].as_str().unwrap();
        for (side, of) in [("base", &before), ("new", &after)] {
            let expected = of.get(name).copied().unwrap_or_default();
            let [objects, size, retained] =
                ["objects", "size_bytes", "retained_bytes"].map(|key| change[side][key].as_f64().unwrap());
            assert_eq!([objects, size, retained], expected, "{name} {side}");
        }
        found += 1;
    }
    let names = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(found, names.into_iter().filter(|name| before.get(*name) != after.get(*name)).count());
    // The same walk twice, and the dump of the same heap.
    assert_eq!(compared(&new, &new)["types"], Value::Array(Vec::new()));
    let of_dump = compared(&dump, &new);
    for change in of_dump["types"].as_array().unwrap() {
        let [base, new] = ["base", "new"].map(|side| (&change[side]["objects"], &change[side]["size_bytes"]));
        assert_eq!(base, new, "{change:#}");
    }
    // Its path is one that `heap --object` finds, too.
    let held = &answer["held"][0];
    let last = held["shortest_path"].as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], held["type"]);
    let address = format!("{:#x}", last["address"].as_u64().unwrap());
    let explained: Value = serde_json::from_str(&run(&["heap", &new, "--object", &address, "--json"]).out).unwrap();
    assert_eq!(explained["shortest_path"], held["shortest_path"]);
    assert_eq!(explained["root"]["description"], held["root"]);
    // `diff` has the same part, unless the graph is larger than is allowed.
    let both = diff(&[&old, &new]);
    assert_eq!(both["heap"]["types"], answer["types"]);
    let small = run(&["diff", &old, &new, "--memory", "1K", "--json"]);
    assert!(small.err.contains("heaps are not compared"), "{}", small.err);
    let text = run(&["heap", &new, "--base", &old, "--by", "count"]).out;
    assert!(text.contains("held by static field") && text.contains(" more (--all)"), "{text}");
    let none = run(&["heap", &new, "--base-gc", "7"]);
    assert!(none.code == Some(1) && none.err.contains("no walk of the heap in collection 7"), "{}", none.err);
}

#[test]
fn a_profile_differs_by_both_weights() {
    let (base, new) = (recording("convoy-clean"), recording("convoy"));
    let folded = |arguments: &[&str]| {
        let made = run(&[&["export", "--format", "folded", "--what", "allocation"], arguments].concat());
        assert_eq!(made.code, Some(0), "{}", made.err);
        made.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let weights = |input: &str| -> BTreeMap<String, u64> {
        let lines = folded(&[input]);
        let pair = |line: &String| line.rsplit_once(' ').map(|(stack, n)| (stack.to_owned(), n.parse().unwrap()));
        lines.iter().filter_map(pair).collect()
    };
    let (before, after) = (weights(&base), weights(&new));
    let both = folded(&[&new, "--base", &base]);
    for line in &both {
        let (rest, now) = line.rsplit_once(' ').unwrap();
        let (stack, then) = rest.rsplit_once(' ').unwrap();
        assert_eq!(then.parse::<u64>().unwrap(), before.get(stack).copied().unwrap_or_default(), "{line}");
        assert_eq!(now.parse::<u64>().unwrap(), after.get(stack).copied().unwrap_or_default(), "{line}");
    }
    let stacks = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
    assert!(both.len() == stacks.len() && before.len() > 3 && after.len() > 3);
    let refused = run(&["export", &new, "--base", &base]);
    assert!(refused.code == Some(1) && refused.err.contains("--format folded or pprof"), "{}", refused.err);

    // Of pprof each sample of the base is negative and has its label, and frames are those of its own.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diff.pb");
    let arguments =
        ["export", &new, "--base", &base, "--format", "pprof", "--what", "allocation", "-o", path.to_str().unwrap()];
    assert_eq!(run(&arguments).code, Some(0));
    let bytes = std::fs::read(&path).unwrap();
    let all = fields(&bytes);
    let of = |number: u64| all.iter().filter(move |(field, ..)| *field == number).map(|(_, _, content)| *content);
    let strings: Vec<&str> = of(6).map(|text| std::str::from_utf8(text).unwrap()).collect();
    let one = |message: &[u8], field: u64| fields(message).iter().find(|(f, ..)| *f == field).map_or(0, |(_, v, _)| *v);
    let functions: BTreeMap<u64, &str> = of(5).map(|f| (one(f, 1), strings[one(f, 2) as usize])).collect();
    let function = |location: &[u8]| {
        let line = fields(location).into_iter().find(|(field, ..)| *field == 4).expect("a line").2.to_vec();
        functions[&one(&line, 1)]
    };
    let locations: BTreeMap<u64, &str> = of(4).map(|location| (one(location, 1), function(location))).collect();
    let mut sums: [BTreeMap<String, u64>; 2] = Default::default();
    for sample in of(2) {
        let parts = fields(sample);
        let content = |field: u64| parts.iter().filter(move |(f, ..)| *f == field).map(|(_, _, content)| *content);
        let mut stack: Vec<&str> = numbers(content(1).next().unwrap()).iter().map(|id| locations[id]).collect();
        stack.reverse();
        let weight = numbers(content(2).next().unwrap())[1].cast_signed();
        let is_base = content(3)
            .any(|label| strings[one(label, 1) as usize] == "pprof::base" && strings[one(label, 2) as usize] == "true");
        assert_eq!(is_base, weight < 0);
        *sums[usize::from(is_base)].entry(stack.join(";")).or_default() += weight.unsigned_abs();
    }
    assert_eq!(sums, [after, before]);
}
