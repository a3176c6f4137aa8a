//! Spans, log messages and places in the IL, held against what the recorded program says of itself (`samples/spans/Spans.cs`), and the heap of a
//! generational-aware recording (`samples/genaware/GenAware.cs`).

use std::path::Path;

use serde_json::{Value, json};

use super::queries::asked;
use crate::support::dataset::Dataset;
use crate::support::program::run;
use crate::support::python::python;

fn dataset(name: &str) -> Dataset {
    Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name))
}

fn spans() -> Dataset {
    dataset("spans/spans.nettrace.zst")
}

/// The lines of one kind that the program wrote down, without the kind.
fn written_down(what: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/spans/spans.truth.jsonl");
    let text = std::fs::read_to_string(path).expect("what the program says");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found: Vec<Value> = lines.filter(|line| line["what"] == what).collect();
    assert!(!found.is_empty(), "the program wrote no line of {what}");
    found
}

/// A text of a column; null of an empty one.
fn text(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn sorted(mut rows: Vec<Value>) -> Vec<String> {
    rows.iter_mut().filter_map(Value::as_object_mut).for_each(|row| drop(row.remove("what")));
    let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

#[test]
fn spans_have_the_ids_that_the_program_gave_them() {
    let activities = spans().table("activity");
    let [names, traces, ids, parents] =
        ["name", "w3c_trace_id", "span_id", "parent_span_id"].map(|column| activities.texts(column));
    let row =
        |at: usize| json!({"name": names[at], "trace": traces[at], "span": ids[at], "parent": text(&parents[at])});
    assert_eq!(sorted((0..activities.rows()).map(row).collect()), sorted(written_down("span")));
    assert!(activities.signed("end_ts_ns").iter().all(Option::is_some));
}

#[test]
fn a_message_is_one_row_whichever_forms_were_recorded() {
    let logs = spans().table("log");
    let column = |name: &str| logs.texts(name);
    let [levels, categories, messages, templates] = ["level", "category", "message", "template"].map(column);
    let [arguments, types, thrown, traces, ids] =
        ["arguments", "exception_type", "exception_message", "w3c_trace_id", "span_id"].map(column);
    let numbers = logs.signed("event_id");
    let row = |at: usize| {
        let arguments = if arguments[at].is_empty() { "{}" } else { &arguments[at] };
        let exception = if types[at].is_empty() { String::new() } else { format!("{}: {}", types[at], thrown[at]) };
        json!({
            "level": levels[at], "category": categories[at], "id": numbers[at], "message": messages[at], "template": templates[at],
            "arguments": serde_json::from_str::<Value>(arguments).unwrap(), "exception": text(&exception),
            "trace": text(&traces[at]), "span": text(&ids[at]),
        })
    };
    assert_eq!(sorted((0..logs.rows()).map(row).collect()), sorted(written_down("log")));
    let named = column("event_name").iter().filter(|name| *name == "Slow").count();
    assert_eq!(named, 6);
}

#[test]
fn an_allocation_is_at_the_statement_that_the_metadata_says() {
    let dataset = spans();
    let (allocations, sites, frames) = (dataset.table("allocation"), dataset.table("callsite"), dataset.table("frame"));
    let (types, callsites) = (allocations.texts("type_name"), allocations.numbers("callsite_id"));
    let (tokens, offsets, frame_of) =
        (frames.numbers("method_token"), frames.optional("il_offset"), sites.numbers("frame_id"));
    let (mut before, mut found) = (-1, 0);
    for place in written_down("newarr") {
        let at = place["il_offset"].as_i64().unwrap();
        for site in types.iter().zip(&callsites).filter(|(name, _)| *name == &place["type"]).map(|(_, site)| *site) {
            let frame = frame_of[site as usize - 1] as usize - 1;
            assert_eq!(tokens[frame], place["token"].as_u64().unwrap(), "{place}");
            let statement = i64::try_from(offsets[frame].expect("an offset")).unwrap();
            assert!(before < statement && statement <= at, "{place}: {statement}");
            found += 1;
        }
        before = at;
    }
    assert_eq!(found, 9);
}

#[test]
fn views_have_spans_as_requests_with_what_they_logged() {
    let Some(python) = python("views_have_spans_as_requests_with_what_they_logged") else { return };
    let dataset = spans();
    for (query, expected) in [
        ("SELECT count(*), count(*) FILTER (is_root), max(depth), max(path) FROM spans", "(12, 6, 1, 'job/charge')\n"),
        ("SELECT side, source, count(*) FROM requests GROUP BY ALL", "('server', 'Shop.Queue/job', 6)\n"),
        ("SELECT count(*), count(duration_ms), max(source) FROM request_time", "(6, 6, 'Shop.Queue/job')\n"),
        (
            "SELECT basis, count(*), count(DISTINCT request_start_ts_ns) FROM request_log GROUP BY ALL",
            "('span', 15, 6)\n",
        ),
        (
            "SELECT level, messages, exceptions, most_frequent FROM log_by_category WHERE category = 'Shop.Audit'",
            "('error', 3, 3, 'Job {Job} failed \"badly\"')\n",
        ),
        (
            "SELECT assembly, method, sum(allocations), min(il_offset) > 0 FROM by_il_offset WHERE method LIKE '%.Allocate%' GROUP BY ALL",
            "('Spans', 'Shop.Jobs.Allocate()', 9, True)\n",
        ),
    ] {
        assert_eq!(asked(&python, &dataset, query), expected, "{query}");
    }
}

/// Samples and allocations of a trace: those of its spans that end on the thread on which they began, since there are no activity ids.
#[test]
fn exports_are_of_a_trace_or_a_span() {
    let dataset = spans();
    let activities = dataset.table("activity");
    let [traces, ids] = ["w3c_trace_id", "span_id"].map(|column| activities.texts(column));
    let [threads, ends] = ["thread_id", "end_thread_id"].map(|column| activities.numbers(column));
    let [from, to] = ["start_ts_ns", "end_ts_ns"].map(|column| activities.signed(column));
    let samples = dataset.table("cpu_sample");
    let (at, by, kinds) = (samples.signed("ts_ns"), samples.numbers("thread_id"), samples.texts("kind"));
    let mut compared = 0;
    for asked in traces.iter().chain(&ids) {
        let spans = (0..activities.rows()).filter(|row| threads[*row] == ends[*row]);
        let spans: Vec<usize> = spans.filter(|row| [&traces[*row], &ids[*row]].contains(&asked)).collect();
        let is_in = |sample: &usize| {
            let is_of =
                |span: &usize| threads[*span] == by[*sample] && from[*span] <= at[*sample] && at[*sample] < to[*span];
            kinds[*sample] == "managed" && spans.iter().any(is_of)
        };
        let expected = (0..samples.rows()).filter(is_in).count();
        let path = dataset.path();
        let arguments = ["export", path.to_str().unwrap(), "--request", asked, "--format", "folded"];
        let said = run(&arguments);
        let lines = said.out.lines().filter_map(|line| line.rsplit_once(' ')).count();
        assert_eq!((lines > 0, said.code == Some(0)), (expected > 0, expected > 0), "{asked}: {expected} {}", said.err);
        compared += expected;
    }
    assert!(compared > 50, "{compared}");
}

/// The analysis writes a recording of its own, of a walk of the heap without the collection around it.
#[test]
fn a_generational_aware_recording_is_complete_and_says_what_old_objects_hold() {
    let dataset = dataset("genaware/gcgenaware.nettrace.zst");
    let gc = dataset.table("gc");
    assert_eq!((gc.numbers("gc_number"), gc.bools("complete")), (vec![4], vec![true]));
    assert!(dataset.problems().iter().all(|(code, _)| *code == "unnamed_frames"), "{:?}", dataset.problems());
    let Some(python) = python("a_generational_aware_recording_is_complete_and_says_what_old_objects_hold") else {
        return;
    };
    let query = "SELECT holder_type, young_type, holders, held_references, young_objects, young_bytes, held_by_largest \
                 FROM old_to_young ORDER BY young_objects DESC LIMIT 1";
    let expected = "('Shop.Draft[]', 'Shop.Draft', 1, 5000, 5000, 160000, 5000)\n";
    assert_eq!(asked(&python, &dataset, query), expected, "the young list holds 100 more, and is young");
}

/// The old array holds them in one recording, a young list in the other.
#[test]
fn old_objects_that_hold_young_ones_are_found() {
    let found = |name: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/genaware").join(name);
        let said = run(&["explain", path.to_str().unwrap(), "--format", "json"]);
        let all: Value = serde_json::from_str(&said.out).unwrap();
        let findings = all[0]["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["rule"] == "young_held_by_old").unwrap().clone()
    };
    let (held, clean) = (found("gcgenaware.nettrace.zst"), found("gcgenaware-clean.nettrace.zst"));
    assert_eq!((&held["verdict"], &held["subject"]), (&json!("info"), &json!("Shop.Draft[]")), "{held:#}");
    assert!(held["figure"].as_f64().unwrap() > 0.8, "{held:#}");
    let sentence = held["sentence"].as_str().unwrap();
    assert!(sentence.contains("One Shop.Draft[] holds 5,000 of them, held by "), "{sentence}");
    assert!(sentence.ends_with(" > Shop.Draft[]."), "{sentence}");
    let next = held["next_step"].as_str().unwrap();
    assert!(next.starts_with("tracequet heap ") && next.contains(" --object 0x"), "{held:#}");
    assert_eq!(clean["verdict"], "fine", "{clean:#}");
    assert!(clean["figure"].as_f64().unwrap() < 0.2, "{clean:#}");
}
