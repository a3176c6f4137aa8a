//! Tables of what a runtime does beside collecting, held against what the recorded program says of itself
//! (`samples/src/Subjects.cs`).

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::dataset::{Dataset, Table};

/// What a program wrote down: the lines of one kind, without their first word.
fn stated(name: &str, kind: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/{name}.truth.txt"));
    let text = std::fs::read_to_string(path).expect("what the program says");
    let lines = text.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{name} says nothing of {kind}");
    lines
}

const SAMPLES: [&str; 2] = ["subjects", "subjects-3.1"];

fn dataset(name: &str) -> Dataset {
    Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/{name}.nettrace")))
}

/// The rows of a table where a text column has this value.
fn rows_with(table: &Table, column: &str, value: &str) -> Vec<usize> {
    table.texts(column).iter().enumerate().filter(|(_, text)| *text == value).map(|(row, _)| row).collect()
}

fn ms(duration: Option<i64>) -> f64 {
    duration.expect("an end") as f64 / 1e6
}

#[test]
fn exceptions_are_those_that_the_program_threw() {
    for name in SAMPLES {
        let table = dataset(name).table("exception");
        let (types, messages) = (table.texts("type_name"), table.texts("message"));
        let (catches, handlers) = (table.numbers("catch_count"), table.texts("catch_method_name"));
        let (flags, thrown) = (table.texts("flags_text"), table.signed("ts_ns"));
        let (caught, ended) = (table.signed("catch_ts_ns"), table.signed("end_ts_ns"));
        let mut found = Vec::new();
        for row in 0..table.rows() {
            // .NET Core 3.1 writes what `throw;` passes on a second time.
            if flags[row].contains("ReThrown") {
                assert_eq!((name, messages[row].as_str()), ("subjects-3.1", "again"));
                continue;
            }
            let is_again = name == "subjects-3.1" && messages[row] == "again";
            let catch_count = if is_again { 2 } else { catches[row] };
            let handler = handlers[row].rsplit("::").next().unwrap().trim_end_matches("()");
            found.push(format!("{}|{}|{catch_count}|{handler}", types[row], messages[row]));
            assert!(caught[row] > thrown[row], "{name}: {}", messages[row]);
            // The handler of the first one is left by another exception, and does not end.
            let is_left = messages[row] == "first" || is_again;
            assert!(ended[row] > caught[row] || is_left, "{name}: {}", messages[row]);
        }
        found.sort();
        let mut expected = stated(name, "exception");
        expected.sort();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn waits_for_a_lock_take_as_long_as_the_program_measures() {
    for name in SAMPLES {
        let table = dataset(name).table("contention");
        let (durations, reported) = (table.signed("duration_ns"), table.signed("reported_ns"));
        let owners = table.numbers("owner_thread_id");
        let mut found: Vec<f64> = Vec::new();
        for row in rows_with(&table, "kind", "Managed") {
            let (event, runtime) = (ms(durations[row]), reported[row].map(|ns| ns as f64 / 1e6));
            assert!(runtime.is_none_or(|runtime| (runtime - event).abs() < 1.0), "{name}: {event} ms, {runtime:?} ms");
            // Others are short waits inside the runtime's library.
            if event > 15.0 {
                found.push(event);
                assert_eq!(owners[row] != 0, name == "subjects", "the owner is recorded since .NET 8");
            }
        }
        // The program measures from before the call to behind it, with the time to be scheduled.
        for program in stated(name, "lock").iter().map(|text| text.parse::<f64>().unwrap()) {
            let own = found.iter().position(|event| (program - 5.0..program + 0.1).contains(event));
            let own = own.unwrap_or_else(|| panic!("{name}: the program says {program} ms, the events {found:?}"));
            found.remove(own);
        }
    }
}

/// Whether a time lies between two that the program measured.
fn is_between(time: f64, times: &str) -> bool {
    let (inner, outer) = times.split_once(' ').unwrap();
    (inner.parse().unwrap()..=outer.parse().unwrap()).contains(&time)
}

#[test]
fn requests_are_paired_as_the_program_measures_them() {
    for name in SAMPLES {
        let table = dataset(name).table("activity");
        let (durations, outcomes) = (table.signed("duration_ns"), table.texts("outcome"));
        let (fields, paired) = (table.texts("start_fields"), table.texts("paired_by"));
        let provider = table.texts("provider_name");
        let rows = rows_with(&table, "name", "Request");
        let mut found = BTreeMap::new();
        for row in rows.into_iter().filter(|row| provider[*row] == "Tracequet-Subjects") {
            let fields: serde_json::Value = serde_json::from_str(&fields[row]).unwrap();
            let id = fields["requestId"].as_u64().unwrap();
            assert_eq!(fields["path"], format!("/item/{id}"));
            assert_eq!(paired[row], "activity_id_and_fields");
            let before = found.insert(id, (ms(durations[row]), outcomes[row].clone()));
            assert!(before.is_none(), "{name}: request {id} is there twice");
        }
        let expected = stated(name, "request");
        assert_eq!(found.len(), expected.len(), "{name}");
        for line in expected {
            let (id, rest) = line.split_once(' ').unwrap();
            let (times, outcome) = rest.rsplit_once(' ').unwrap();
            let (event, found) = &found[&id.parse().unwrap()];
            assert_eq!(found, outcome, "{name}: request {id}");
            assert!(is_between(*event, times), "{name}: request {id}: {event} ms, the program says {times}");
        }
        // Naps have no id among their fields, and one thread.
        let naps = rows_with(&table, "name", "Nap");
        assert_eq!(naps.len(), stated(name, "nap").len());
        for (row, program) in naps.into_iter().zip(stated(name, "nap")) {
            assert_eq!(paired[row], "activity_id");
            assert!(is_between(ms(durations[row]), &program), "{name}: {program}");
        }
    }
}

#[test]
fn counters_have_the_values_that_the_program_gave_them() {
    for name in SAMPLES {
        let table = dataset(name).table("counter");
        let float = |column: &str| table.floats(column);
        let (values, totals, counts) = (float("value"), float("total"), table.optional("count"));
        let (kinds, units) = (table.texts("kind"), table.texts("unit"));
        let load = rows_with(&table, "name", "load");
        assert!(load.iter().all(|row| kinds[*row] == "mean" && units[*row] == "MB"));
        let count: u64 = load.iter().map(|row| counts[*row].unwrap()).sum();
        let sum: f64 = load.iter().map(|row| counts[*row].unwrap() as f64 * values[*row].unwrap()).sum();
        assert_eq!(stated(name, "counter"), [format!("load {count} {}", sum.round())], "{name}");
        // .NET Core 3.1 has no instruments.
        if name == "subjects" {
            let made = rows_with(&table, "name", "made");
            assert!(made.iter().all(|row| kinds[*row] == "counter" && units[*row] == "{thing}"));
            let sum: f64 = made.iter().filter_map(|row| values[*row]).sum();
            let last = made.iter().filter_map(|row| totals[*row]).fold(0.0, f64::max);
            assert_eq!((sum, last), (210.0, 210.0));
            assert_eq!(stated(name, "instrument"), ["made 20 210"]);
        }
    }
}

#[test]
fn work_items_wait_for_a_worker() {
    for name in SAMPLES {
        let table = dataset(name).table("thread_pool_work");
        let waits = table.signed("wait_ns");
        assert!(waits.iter().all(|wait| wait.is_some_and(|wait| wait > 0)), "{name}");
        let expected: usize = stated(name, "work")[0].parse().unwrap();
        // Continuations of the requests are work items, too.
        assert!(waits.len() >= expected, "{name}: {}", waits.len());
    }
}

#[test]
fn methods_are_compiled_before_they_throw() {
    for name in SAMPLES {
        let dataset = dataset(name);
        let table = dataset.table("method_compilation");
        let (starts, ends) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"));
        let thrown = dataset.table("exception").signed("ts_ns")[0].unwrap();
        let namespace = table.texts("namespace");
        let row = rows_with(&table, "name", "Exceptions").into_iter().find(|row| namespace[*row] == "Subjects");
        let row = row.unwrap_or_else(|| panic!("{name}: Subjects.Exceptions was compiled"));
        assert!(starts[row].unwrap() < ends[row].unwrap() && ends[row].unwrap() < thrown, "{name}");
        assert_eq!(table.texts("kind")[row], "jit");
        assert!(["QuickJitted", "MinOptJitted", "Optimized"].contains(&table.texts("tier")[row].as_str()));
        assert!(
            table.optional("il_size_bytes")[row] > Some(100) && table.optional("native_size_bytes")[row] > Some(300)
        );
    }
}
