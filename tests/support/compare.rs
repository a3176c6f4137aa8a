//! Compares what was read with what an independent decoder found, event by event.

use serde_json::Value as Json;
use tracequet::trace::event::decode::Fit;
use tracequet::trace::event::plan::{Node, PlanField};
use tracequet::trace::event::value::Value;
use tracequet::trace::event::{Decoding, EventInfo};
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::Layout;

use super::collect::{Recording, Seen};

/// All differences between one expected event and the one that was read.
pub fn event_differences(expected: &Json, seen: &Seen, recording: &Recording) -> Vec<String> {
    let mut out = Vec::new();
    let info = recording.info_of(seen);
    let event_type = &info.event_type;
    let thread = &recording.threads[seen.thread as usize];
    let capture = &recording.threads[seen.capture_thread as usize];
    let mut check = |name: &str, equal: bool, ours: &dyn std::fmt::Debug| {
        if !equal {
            out.push(format!("{name}: expected {}, read {ours:?}", short(&expected[name])));
        }
    };
    check("ts", expected["ts"].as_i64() == Some(seen.ticks), &seen.ticks);
    let utc = recording.info.as_ref().and_then(|i| i.clock.utc_ns(i.clock.since_start(seen.ticks)?));
    // Python's integers do not overflow; ours are absent outside of 64 bits.
    check("utc_ns", utc.is_none() || expected["utc_ns"].as_i64() == utc, &utc);
    check("tid", number(&expected["tid"]) == thread.thread_id, &thread.thread_id);
    // V1 to V3 know no capturing thread: it is the event's own.
    let capture_is_known = !expected["capture_tid"].is_null() || expected["capture_index"].is_number();
    let theirs = number(&expected[if capture_is_known { "capture_tid" } else { "tid" }]);
    check("capture_tid", theirs == capture.thread_id, &capture.thread_id);
    check("pid", number(&expected["pid"]) == thread.process_id, &thread.process_id);
    check(
        "thread_name",
        is_undefined_thread(expected) || expected["thread_name"].as_str() == thread.name.as_deref(),
        &thread.name,
    );
    let processor = expected["proc"].as_u64().unwrap_or(u64::from(u32::MAX));
    check("proc", processor == u64::from(seen.processor), &seen.processor);
    if expected["provider"].is_null() {
        check("provider", event_type.layout == Layout::NoMetadata, &event_type.layout);
    } else {
        let provider = expected["provider"].as_str().map(|name| name.trim_matches(['{', '}']));
        check("provider", provider == Some(&info.provider), &info.provider);
        check("event_id", expected["event_id"].as_u64() == Some(u64::from(event_type.event_id)), &event_type.event_id);
        check("name", expected["name"].as_str() == Some(&event_type.name), &event_type.name);
        check("version", wrapped(&expected["version"]) == event_type.version, &event_type.version);
        check("level", wrapped(&expected["level"]) == event_type.level, &event_type.level);
        check("keywords", keywords(&expected["keywords"]) == event_type.keywords, &event_type.keywords);
        let opcode = event_type.opcode.map(u64::from);
        check("opcode", expected["opcode"].as_u64() == opcode, &opcode);
        let layout = info.catalogue.and_then(|c| c.layout(event_type.event_id, event_type.version));
        if expected["decoded_by"] == "manifest"
            && let Some(layout) = layout
        {
            let symbol = layout.symbol.as_ref().unwrap_or(&layout.name);
            check("symbol", expected["symbol"].as_str() == Some(symbol), symbol);
            check("manifest_opcode", number(&expected["manifest_opcode"]) == u64::from(layout.opcode), &layout.opcode);
        }
    }
    check("activity", is_guid(&expected["activity"], seen.labels.activity_id), &seen.labels.activity_id);
    check("related", is_guid(&expected["related"], seen.labels.related_activity_id), &seen.labels.related_activity_id);
    let pointer_size = recording.info.as_ref().map_or(8, |i| usize::from(i.pointer_size));
    check(
        "stack",
        stack(&expected["stack"]) == addresses(&seen.stack, pointer_size),
        &addresses(&seen.stack, pointer_size),
    );
    let payload = hex(&seen.payload);
    check("payload", expected["payload"].as_str() == Some(&payload), &short(&payload.as_str().into()));
    out.extend(label_differences(&expected["labels"], &seen.labels.json));
    out.extend(field_differences(expected, seen, recording));
    out
}

fn short(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap_or_default()
}

/// Levels and versions are 32 bits in a recording, and some write -1.
fn wrapped(json: &Json) -> u32 {
    json.as_i64().unwrap_or_default() as u32
}

fn keywords(json: &Json) -> u64 {
    json.as_u64().unwrap_or_else(|| json.as_i64().unwrap_or_default() as u64)
}

fn is_undefined_thread(expected: &Json) -> bool {
    expected["tid"].is_null() || expected["pid"].is_null()
}

fn is_guid(json: &Json, guid: Guid) -> bool {
    match json.as_str() {
        Some(text) => text == guid.to_string(),
        None => guid.is_none(),
    }
}

fn stack(json: &Json) -> Vec<u64> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal address");
    json.as_array().into_iter().flatten().filter_map(Json::as_str).map(hex).collect()
}

/// The addresses of a stack.
pub fn addresses(bytes: &[u8], pointer_size: usize) -> Vec<u64> {
    let wide = |chunk: &[u8]| chunk.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    bytes.chunks_exact(pointer_size).map(wide).collect()
}

/// Bytes as hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The expected labels are `{"TraceId": ..., "ints": [[key, value]], "strings": [[key, value]]}`.
fn label_differences(expected: &Json, ours: &str) -> Vec<String> {
    let mut flat = serde_json::Map::new();
    for (key, value) in expected.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            // These have columns of their own.
            ("ActivityId" | "RelatedActivityId" | "OpCode" | "Keywords" | "Level" | "Version", _) => {}
            (_, Json::Array(pairs)) => {
                for pair in pairs {
                    flat.insert(pair[0].as_str().expect("a key").to_owned(), pair[1].clone());
                }
            }
            // Shown in hexadecimal, as W3C trace contexts are.
            ("SpanId", Json::Number(id)) => {
                drop(flat.insert(key.clone(), format!("{:016x}", id.as_u64().unwrap_or_default()).into()))
            }
            _ => drop(flat.insert(key.clone(), value.clone())),
        }
    }
    let ours: Json =
        if ours.is_empty() { Json::Object(Default::default()) } else { serde_json::from_str(ours).expect("JSON") };
    let expected = Json::Object(flat);
    if expected == ours { Vec::new() } else { vec![format!("labels: expected {expected}, read {ours}")] }
}

fn field_differences(expected: &Json, seen: &Seen, recording: &Recording) -> Vec<String> {
    let info = recording.info_of(seen);
    let problem = expected["problem"].as_str();
    let fields = recording.with_event(seen, |event| {
        let (fields, fit) = event.fields()?;
        Ok::<_, &str>((fields.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), fit))
    });
    let (values, fit) = match fields {
        Err(why) => {
            let same = expected["fields"].is_null() && expected["decoded_by"] == "none";
            return if same {
                Vec::new()
            } else {
                vec![format!("fields: not decoded ({why}), expected {}", short(&expected["fields"]))]
            };
        }
        Ok(_) if expected["fields"].is_null() && seen.payload.is_empty() => return Vec::new(),
        Ok(decoded) => decoded,
    };
    if expected["fields"].is_null() {
        return vec![format!("fields: read {values:?}, expected none ({problem:?})")];
    }
    let plan = plan_fields(info, &seen.payload);
    let mut out = fit_differences(expected, problem, &fit, plan);
    // An event that describes itself has one object without a name, which tracequet takes away.
    let wrapped = expected["fields"].as_object().filter(|o| o.len() == 1 && is_wrapped(info)).and_then(|o| o.get(""));
    struct_differences(wrapped.unwrap_or(&expected["fields"]), plan, &values, problem.is_some(), "", &mut out);
    out
}

fn is_wrapped(info: &EventInfo) -> bool {
    use tracequet::trace::reader::{Field, FieldType};
    let Layout::Fields(fields) = &info.event_type.layout else { return false };
    matches!(fields.as_slice(), [Field { name, kind: FieldType::Object(_), .. }] if name.is_empty())
}

fn plan_fields<'i>(info: &'i EventInfo, payload: &[u8]) -> &'i [PlanField] {
    match &info.decoding {
        Decoding::Raw(_) => &[],
        _ => info.plan(payload).map_or(&[], |plan| &plan.fields),
    }
}

/// `problem` names the field that was short; `trailing` counts the bytes behind the last one.
fn fit_differences(expected: &Json, problem: Option<&str>, fit: &Fit, plan: &[PlanField]) -> Vec<String> {
    let mut out = Vec::new();
    let ours = fit.short.and_then(|s| plan.get(s.0)).map(|f| f.name.as_str());
    let theirs = problem.map(short_field);
    if ours != theirs {
        out.push(format!("problem: expected {problem:?}, read {:?} ({ours:?})", fit.short));
    }
    let trailing = expected["trailing"].as_u64().unwrap_or_default();
    if problem.is_none() && trailing != fit.surplus as u64 {
        out.push(format!("trailing: expected {trailing}, read {}", fit.surplus));
    }
    out
}

/// The top-level field in `short:Values (1 of 2)`, `Values[0].short:Name`, `bad:Array:why`, `unterminated:s`.
fn short_field(problem: &str) -> &str {
    let end = |text: &str| text.find([' ', '[', '.', ':']).unwrap_or(text.len());
    let text = match problem.split_once(':') {
        Some((head, _)) if head.contains('[') => head,
        Some((_, tail)) => tail,
        None => problem,
    };
    &text[..end(text)]
}

fn struct_differences(
    expected: &Json,
    plan: &[PlanField],
    values: &[Value],
    partial: bool,
    at: &str,
    out: &mut Vec<String>,
) {
    let Some(object) = expected.as_object() else {
        out.push(format!("fields{at}: expected {}, read a struct", short(expected)));
        return;
    };
    let fields: Vec<_> = plan.iter().filter(|f| !matches!(f.node, Node::Padding(_))).collect();
    let mut names: Vec<String> = Vec::new();
    for (index, (field, value)) in fields.iter().zip(values).enumerate() {
        // The independent decoder numbers names that repeat.
        let repeated = names.contains(&field.name);
        let name = if repeated { format!("{}#{index}", field.name) } else { field.name.clone() };
        match object.get(&name) {
            Some(json) => value_differences(json, &field.node, value, &format!("{at}/{name}"), out),
            None if partial && *value == Value::Null => {}
            // A list that is short keeps its whole elements; the independent decoder leaves it out unless it is the
            // catalogue's.
            None if partial && matches!(value, Value::List(_)) => {}
            None => out.push(format!("fields{at}/{name}: not expected, read {value:?}")),
        }
        names.push(name);
    }
    for name in object.keys().filter(|name| !names.contains(name)) {
        out.push(format!("fields{at}/{name}: expected {}, read nothing", short(&object[name])));
    }
}

fn value_differences(expected: &Json, node: &Node, value: &Value, at: &str, out: &mut Vec<String>) {
    let equal = match value {
        Value::Struct(values) => {
            let Node::Struct(plan) = node else { panic!("{at}: a struct for {node:?}") };
            return struct_differences(expected, plan, values, false, at, out);
        }
        Value::List(values) => {
            let (Node::List(_, element), Some(list)) = (node, expected.as_array()) else {
                out.push(format!("fields{at}: expected {}, read a list", short(expected)));
                return;
            };
            if list.len() != values.len() {
                out.push(format!("fields{at}: expected {} elements, read {}", list.len(), values.len()));
            }
            for (index, (json, value)) in list.iter().zip(values).enumerate() {
                value_differences(json, element, value, &format!("{at}[{index}]"), out);
            }
            return;
        }
        Value::Null => expected.is_null(),
        Value::Bool(bool) => match expected {
            Json::Bool(expected) => expected == bool,
            // A Boolean that is neither 0 nor 1 is shown as a number.
            Json::Number(n) => *bool && n.as_i64().is_some_and(|n| n != 0 && n != 1),
            _ => false,
        },
        Value::Uint(number) => expected.as_u64() == Some(*number),
        Value::Int(number) => expected.as_i64() == Some(*number),
        Value::Float(number) => match expected {
            Json::String(text) => match text.as_str() {
                "NaN" => number.is_nan(),
                "Infinity" => *number == f64::INFINITY,
                "-Infinity" => *number == f64::NEG_INFINITY,
                _ => false,
            },
            other => other.as_f64().is_some_and(|f| f == *number || (f - number).abs() <= f.abs() * 1e-15),
        },
        Value::Guid(guid) => expected.as_str() == Some(&guid.to_string()),
        Value::FileTime(time) => expected["filetime"].as_u64() == Some(*time),
        // A single UTF-8 unit is text for us and a number for the independent decoder.
        Value::Text(text) if *node == Node::Utf8Unit => {
            matches!((text.as_bytes(), expected.as_u64()), ([unit], Some(number)) if u64::from(*unit) == number)
        }
        Value::Text(text) => expected.as_str() == Some(text),
        Value::Bytes(bytes) => match expected {
            Json::Array(list) => list.iter().map(Json::as_u64).eq(bytes.iter().map(|b| Some(u64::from(*b)))),
            Json::Object(object) => object.get("bytes").and_then(Json::as_str) == Some(&hex(bytes)),
            _ => false,
        },
        other => panic!("{at}: a value of a new kind: {other:?}"),
    };
    if !equal {
        let value: String = format!("{value:?}").chars().take(200).collect();
        out.push(format!("fields{at}: expected {}, read {value}", short(expected)));
    }
}
