//! The JSON that `--json` prints of recordings and conversions. Names are those of the tables where the tables have the
//! same thing; names stay, new ones may be added.

use serde_json::{Map, Value, json};
use tracequet::trace::reader::TraceInfo;
use tracequet::trace::time::format_utc;
use tracequet::{Done, FailedInput, InputSummary, ProblemSummary, Summary};

/// The header of a recording.
pub fn header(info: &TraceInfo) -> Map<String, Value> {
    let key_values = info.key_values.iter().map(|(key, value)| json!({ "key": key, "value": value }));
    let all = json!({
        "container": info.container, "format_version": info.version, "format_minor_version": info.minor,
        "start": info.start_known.then(|| format_utc(info.clock.sync_utc_ns)),
        "start_utc_ns": info.start_known.then_some(info.clock.sync_utc_ns), "clock_frequency": info.clock.frequency,
        "pointer_size": info.pointer_size, "process_id": info.process_id, "processor_count": info.processor_count,
        "sampling_ns": info.sampling_ns, "key_values": key_values.collect::<Vec<_>>(),
    });
    members(all)
}

fn members(object: Value) -> Map<String, Value> {
    if let Value::Object(members) = object { members } else { Map::new() }
}

/// The problems of a recording.
pub fn problems(problems: &[ProblemSummary]) -> Vec<Value> {
    let one = |p: &ProblemSummary| {
        json!({
            "code": p.code, "severity": p.severity.as_str(), "rows": p.rows, "count": p.count,
            "first_message": p.message, "first_byte_offset": p.offset,
        })
    };
    problems.iter().map(one).collect()
}

/// The summary of a conversion as one object.
pub fn summary(summary: &Summary) -> String {
    let inputs = summary.inputs.iter().map(input).map(Value::Object);
    let all = json!({
        "output": summary.output.to_string_lossy(), "elapsed_ns": summary.elapsed_ns, "has_losses": summary.has_losses(),
        "failed": summary.failed.iter().map(failed).map(Value::Object).collect::<Vec<_>>(),
        "inputs": inputs.collect::<Vec<_>>(), "tables": tables(summary),
    });
    format!("{all:#}\n")
}

/// The outcome of one of several recordings as one line.
pub fn recording(done: &Done) -> String {
    match done {
        Done::Converted(converted) => line("converted", input(converted)),
        Done::Failed(input) => line("failed", failed(input)),
        Done::Skipped(input) => {
            let skipped = json!({
                "path": input.path.to_string_lossy(), "trace_id": input.trace_id, "other_options": input.differs,
                "other_labels": input.other_labels,
            });
            line("skipped", members(skipped))
        }
        _ => String::new(),
    }
}

/// The summary of a conversion of several recordings, as the last line.
pub fn several(summary: &Summary) -> String {
    let all = json!({
        "output": summary.output.to_string_lossy(), "elapsed_ns": summary.elapsed_ns, "has_losses": summary.has_losses(),
        "converted_count": summary.inputs.len(), "failed_count": summary.failed.len(), "skipped_count": summary.skipped.len(),
        "damaged_entries": summary.damaged_entries, "tables": tables(summary),
    });
    line("summary", members(all))
}

/// A line of the output about several recordings: `outcome` says what it is about.
fn line(outcome: &str, mut object: Map<String, Value>) -> String {
    object.insert("outcome".into(), outcome.into());
    format!("{}\n", Value::Object(object))
}

fn tables(summary: &Summary) -> Vec<Value> {
    summary.tables.iter().map(|t| json!({ "name": t.name, "rows": t.rows, "bytes": t.bytes })).collect()
}

fn failed(f: &FailedInput) -> Map<String, Value> {
    let path = f.path.to_string_lossy();
    members(json!({ "path": path, "trace_id": f.trace_id, "error": f.error, "offset": f.offset }))
}

fn input(i: &InputSummary) -> Map<String, Value> {
    let mut all = members(json!({
        "path": i.path.to_string_lossy(), "trace_id": i.trace_id, "bytes": i.bytes, "complete": i.complete,
        "has_losses": i.has_losses(), "event_count": i.events, "dropped_events": i.dropped_events, "first_ns": i.first_ns,
        "last_ns": i.last_ns, "event_types": i.event_types, "decoded_full": i.decoded_full,
        "decoded_partial": i.decoded_partial, "raw": i.raw, "collection_count": i.collections,
        "incomplete_collection_count": i.incomplete_collections, "frame_count": i.frames.frames,
        "named_frame_count": i.frames.named, "problems": problems(&i.problems),
    }));
    all.extend(header(&i.info));
    all
}
