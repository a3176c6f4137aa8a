//! Waits, limits and workers of the thread pool, loads of assemblies, activities of an ActivitySource and instruments,
//! held against what the recorded program says of itself (`samples/src/Measures.cs`).

use std::path::Path;

use crate::support::dataset::{Dataset, Table};

/// What the program wrote down: the lines of one kind, as words without the first one.
fn reported(kind: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/measures.truth.txt");
    let text = std::fs::read_to_string(path).expect("what the program says");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines = text.lines().map(words).filter(|words| words[0] == kind);
    let lines: Vec<Vec<String>> = lines.map(|words| words[1..].to_vec()).collect();
    assert!(!lines.is_empty(), "nothing of {kind}");
    lines
}

fn table(name: &str) -> Table {
    Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/measures.nettrace")).table(name)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

#[test]
fn waits_take_as_long_as_the_program_measures() {
    let waits = table("wait");
    let (durations, sources, objects) =
        (waits.signed("duration_ns"), waits.texts("source"), waits.numbers("object_id"));
    let threads = waits.numbers("thread_id");
    let ms = |row: usize| durations[row].map(|ns| ns as f64 / 1e6);
    // The one thread of the program with waits for a monitor.
    let own = threads[sources.iter().position(|source| source == "MonitorWait").expect("a monitor")];
    let mut rows = (0..waits.rows()).filter(|row| threads[*row] == own);
    let expected = reported("wait");
    assert!(expected.len() >= 12);
    for line in expected {
        // The program measures around the call, with the time to be scheduled.
        let program = number(&line[1]);
        let is_it = |row: &usize| ms(*row).is_some_and(|event| (program - 3.0..=program).contains(&event));
        let row = rows.find(is_it).unwrap_or_else(|| panic!("no wait of {line:?}"));
        let is_monitor = line[0] == "monitor";
        assert_eq!(sources[row], if is_monitor { "MonitorWait" } else { "Unknown" }, "{line:?}");
        assert_eq!(objects[row] != 0, is_monitor, "{line:?}");
    }
}

#[test]
fn the_thread_pool_has_the_limits_and_workers_that_the_program_sees() {
    let pool = table("thread_pool");
    let (kinds, workers, most) =
        (pool.texts("kind"), pool.optional("worker_count"), pool.optional("retired_worker_count"));
    let last = kinds.iter().rposition(|kind| kind == "min_max").expect("limits");
    let limits = reported("limit");
    assert_eq!(limits[0], ["min".to_owned(), workers[last].unwrap().to_string()]);
    assert_eq!(limits[1], ["max".to_owned(), most[last].unwrap().to_string()]);
    let started = (0..pool.rows()).filter(|row| kinds[*row] == "worker_start").filter_map(|row| workers[row]);
    assert_eq!(reported("workers")[0], [started.max().expect("workers").to_string()]);
}

#[test]
fn loads_of_assemblies_end_as_the_program_sees_them() {
    let loads = table("assembly_load");
    let (names, results) = (loads.texts("name"), loads.texts("result_name"));
    let success = loads.bools("success");
    let expected = reported("load");
    assert_eq!(expected.iter().filter(|line| line[1] == "False").count(), 2);
    for line in expected {
        let is_it = |row: &usize| names[*row].split(',').next() == Some(&line[0]);
        let rows: Vec<usize> = (0..loads.rows()).filter(is_it).collect();
        assert!(!rows.is_empty(), "{line:?}");
        for row in rows {
            assert_eq!(success[row], line[1] == "True", "{line:?}");
            assert_eq!(results[row].starts_with(&line[0]), success[row], "{line:?}: {}", results[row]);
        }
    }
}

#[test]
fn activities_take_as_long_as_the_program_measures() {
    let activity = table("activity");
    let (names, providers) = (activity.texts("name"), activity.texts("provider_name"));
    let (durations, starts) = (activity.signed("duration_ns"), activity.signed("start_ts_ns"));
    let ends = activity.signed("end_ts_ns");
    let of = |name: &str| -> Vec<usize> {
        let is_it = |row: &usize| providers[*row] == "Tracequet.Measures" && names[*row] == name;
        (0..activity.rows()).filter(is_it).collect()
    };
    for name in ["Order", "Step"] {
        let rows = of(name);
        let expected: Vec<_> = reported("activity").into_iter().filter(|line| line[0] == name).collect();
        assert_eq!(rows.len(), expected.len(), "{name}");
        for (row, line) in rows.into_iter().zip(expected) {
            let event = durations[row].unwrap() as f64 / 1e6;
            assert!((number(&line[1])..=number(&line[2])).contains(&event), "{name}: {event} ms, {line:?}");
        }
    }
    // Each step lies within its order.
    for (step, order) in of("Step").into_iter().zip(of("Order")) {
        assert!(starts[order] < starts[step] && ends[step] < ends[order]);
    }
}

#[test]
fn instruments_have_the_values_that_the_program_gave_them() {
    let counter = table("counter");
    let (names, kinds, units) = (counter.texts("name"), counter.texts("kind"), counter.texts("unit"));
    let (values, counts, totals) = (counter.floats("value"), counter.optional("count"), counter.floats("total"));
    let quantiles = counter.floats("quantile");
    let of = |name: &str, kind: &str, unit: &str| -> Vec<usize> {
        let rows: Vec<usize> = (0..counter.rows()).filter(|row| names[*row] == name).collect();
        assert!(rows.len() > 3 && rows.iter().all(|row| kinds[*row] == kind && units[*row] == unit), "{name}");
        rows
    };
    // The gauge has another value each time that it is read.
    let gauge: Vec<f64> = of("asked", "gauge", "1").into_iter().map(|row| values[row].unwrap()).collect();
    let expected: Vec<f64> = reported("gauge").iter().map(|line| number(&line[0])).collect();
    assert_eq!(gauge[..], expected[..gauge.len()]);
    assert!(gauge.len() + 1 >= expected.len(), "{gauge:?}");
    let level = of("level", "up_down_counter", "{thing}");
    assert_eq!(values[*level.last().unwrap()], Some(number(&reported("level")[0][0])));

    for line in reported("histogram") {
        let unit = if line[0] == "even" { "ms" } else { "By" };
        let rows = of(&line[0], "histogram", unit);
        let with_values: Vec<usize> = rows.iter().copied().filter(|row| values[*row].is_some()).collect();
        let medians = with_values.iter().filter(|row| quantiles[**row] == Some(0.5));
        let (count, sum) =
            medians.fold((0, 0.0), |(count, sum), row| (count + counts[*row].unwrap(), sum + totals[*row].unwrap()));
        assert_eq!((count as f64, sum), (number(&line[1]), number(&line[2])), "{line:?}");
        assert_eq!(with_values.len() % 3, 0, "three quantiles each");
        for row in with_values {
            let quantile = quantiles[row].unwrap();
            assert!([0.5, 0.95, 0.99].contains(&quantile));
            // Intervals have whole bursts of the numbers from 1 to 1000. The runtime rounds to one in a thousand.
            let whole = counts[row].unwrap() % 1000 == 0;
            let expected = if line[0] == "even" { quantile * 1000.0 } else { 42.5 };
            let near = (values[row].unwrap() / expected - 1.0).abs() < 0.01;
            assert!(near || !whole && line[0] == "even", "{line:?}: {quantile} is {:?}", values[row]);
        }
    }
}

#[test]
fn times_among_the_fields_of_a_start_are_text() {
    let activities = table("activity");
    let (names, fields, ends) =
        (activities.texts("name"), activities.texts("start_fields"), activities.signed("end_ts_ns"));
    let rows: Vec<usize> = (0..activities.rows()).filter(|row| names[*row] == "Collection").collect();
    assert!(rows.len() > 5);
    let mut last = String::new();
    for row in rows {
        let fields: serde_json::Value = serde_json::from_str(&fields[row]).unwrap();
        let [start, end] =
            ["intervalStartTime", "intervalEndTime"].map(|name| fields[name].as_str().expect("a time").to_owned());
        assert!(start.starts_with("2026-11-22T09:25:4") && start < end, "{start} {end}");
        // One interval begins where the last one ended.
        assert!(last.is_empty() || last == start, "{last} {start}");
        assert!(ends[row].is_some());
        last = end;
    }
}
