//! Benchmarks by the events of BenchmarkDotNet's engine, held against what the recorded program says of itself (`samples/benchmarks/Bench.cs`).

use std::path::Path;

use serde_json::Value;

use crate::support::dataset::Dataset;
use crate::support::python;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

#[test]
fn an_operation_costs_what_the_program_wrote_down() {
    let Some(python) = python::python("an_operation_costs_what_the_program_wrote_down") else { return };
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/benchmarks");
    let dataset = Dataset::of(&samples.join("bench.nettrace.zst"));
    let asked = |query: &str| -> Vec<Value> {
        let rows = format!("SELECT to_json(r)::VARCHAR FROM ({query}) r");
        let text = super::queries::asked(&python, &dataset, &rows);
        let json = |line: &str| serde_json::from_str(&line[2..line.len() - 3].replace("\\\\", "\\")).expect(line);
        text.lines().map(json).collect()
    };
    let text = std::fs::read_to_string(samples.join("bench.truth.jsonl")).unwrap();
    let truth: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = asked("SELECT * FROM benchmark_iteration ORDER BY start_ts_ns");
    assert_eq!(found.len(), truth.len());
    for (found, truth) in found.iter().zip(&truth) {
        for column in ["benchmark", "kind", "stage", "operations"] {
            assert_eq!(found[column], truth[column], "{found} {truth}");
        }
        let [taken, wrote] = [&found["duration_ns"], &truth["ns"]].map(|ns| ns.as_i64().unwrap());
        // The program's clock runs around the events, and writing them takes a while.
        assert!(taken <= wrote && (taken > wrote * 9 / 10 || wrote - taken < 500_000), "{found} {truth}");
    }
    let rows = asked("SELECT * FROM benchmark ORDER BY benchmark");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let is_it =
            |of: &&Value, kind| of["benchmark"] == row["benchmark"] && of["stage"] == "actual" && of["kind"] == kind;
        let sum = |name: &str| {
            truth.iter().filter(|of| is_it(of, "workload")).map(|of| of[name].as_f64().unwrap()).sum::<f64>()
        };
        let operations = sum("operations");
        assert_eq!((row["operations"].as_f64(), row["iterations"].as_u64()), (Some(operations), Some(5)));
        for generation in ["gen0", "gen1", "gen2"] {
            assert_eq!(row[generation].as_f64(), Some(sum(generation) * 1000.0 / operations), "{row}");
        }
        let (bytes, wrote) = (row["allocated_bytes"].as_f64().unwrap(), sum("bytes") / operations);
        assert!((bytes - wrote).abs() <= 1.0 + wrote / 10.0, "{bytes} is not about {wrote}");
        let median = |kind| {
            let mut all: Vec<f64> = truth
                .iter()
                .filter(|of| is_it(of, kind))
                .map(|of| of["ns"].as_f64().unwrap() / of["operations"].as_f64().unwrap())
                .collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (took, wrote) = (row["operation_ns"].as_f64().unwrap(), median("workload") - median("overhead"));
        assert!((took / wrote - 1.0).abs() < 0.1, "{took} is not about {wrote}");
    }
    let most = asked(
        "SELECT own_method, share FROM benchmark_by_method WHERE benchmark LIKE '%Sum%' ORDER BY samples DESC LIMIT 1",
    );
    assert_eq!(most[0]["own_method"], "Shop.Totals.Sum");
    assert!(most[0]["share"].as_f64() > Some(0.9), "{most:?}");
}

/// A recording without events of collections and allocations does not say that there were none.
#[test]
fn what_was_not_recorded_of_a_benchmark_is_null() {
    let Some(python) = python::python("what_was_not_recorded_of_a_benchmark_is_null") else { return };
    let kind = |id, name| Kind { id, provider: "BenchmarkDotNet.EngineEventSource", event_id: id, version: 0, name };
    let mut writer = Writer::new(Form::V6);
    writer.described(kind(1, "BenchmarkStart"), &[("benchmarkName", Type::String)]);
    writer.described(kind(2, "WorkloadActualStart"), &[("totalOperations", Type::Long)]);
    writer.described(kind(3, "WorkloadActualStop"), &[("totalOperations", Type::Long)]);
    let operations = 10u64.to_le_bytes().to_vec();
    let name: Vec<u8> = "B(\"x\")".encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let events = [(1, 1, name), (2, 100, operations.clone()), (3, 300, operations)];
    let row = |(metadata_id, ticks, payload)| Row {
        metadata_id,
        sequence: metadata_id,
        capture_thread: 1,
        thread: 1,
        ticks,
        payload,
        ..Row::default()
    };
    let bytes = writer.threads(&[(1, 50, 60)]).events(&events.map(row)).end();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let query = "SELECT benchmark, operation_ns, allocated_bytes, gen0, gen1, gen2, pause_ns FROM benchmark";
    let found = super::queries::asked(&python, &Dataset::of(file.path()), query);
    assert_eq!(found, "('B(\"x\")', 2000.0, None, None, None, None, None)\n");
}
