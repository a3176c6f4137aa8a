//! Every .etl among the shared traces against what an independent reader found in it.
//!
//! Differences that are meant, and nothing else:
//! - The load of an image (hook 0x030A) is filed under processes in the file. The independent reader leaves it there;
//!   we report it as an image event, opcode 10, as every consumer of ETW does.
//! - A session that shares its buffers between processors says processor 0 for each event. We say that it is unknown.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use tracequet::trace::error::Severity;
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::{EtwForm, EtwLayout, EventType, Layout, Order};
use tracequet::trace::source::Input;

use crate::support::collect::{Recording, Seen};
use crate::support::expected::shared_folder;

const PROCESS: &str = "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c";
const IMAGE: &str = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518";
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

pub struct Shared {
    pub name: String,
    pub path: PathBuf,
    pub expected: Json,
}

/// The shared traces; none, and a line that says so, where they are not on this machine.
pub fn shared(test: &str) -> Vec<Shared> {
    let Some(folder) = shared_folder(test, "etl") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "etl") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(folder.join(format!("{name}.expected.json"))).expect("what is expected");
            found.push(Shared { expected: serde_json::from_str(&text).expect("valid JSON"), name, path });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!found.is_empty());
    found
}

/// One of them by its name. `None` only where there are no shared traces, of which `shared` prints a line.
pub fn shared_file(test: &str, name: &str) -> Option<Shared> {
    let files = shared(test);
    if files.is_empty() {
        return None;
    }
    let found = files.into_iter().find(|file| file.name == name);
    assert!(found.is_some(), "{name} is not among the shared traces");
    found
}

fn etw(event_type: &EventType) -> &EtwLayout {
    match &event_type.layout {
        Layout::Etw(etw) => etw,
        other => panic!("{}: {other:?}", event_type.name),
    }
}

/// The class under which a kernel event is reported.
fn moved(guid: &str, opcode: u64) -> &str {
    if (guid, opcode) == (PROCESS, 10) { IMAGE } else { guid }
}

/// What is expected by kind, image loads where they belong.
fn expected_counts(expected: &Json) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (key, count) in expected.as_object().expect("counts by kind") {
        let (guid, rest) = key.split_once('|').expect("a GUID");
        let opcode = rest.split('|').nth(2).and_then(|o| o.parse().ok()).expect("an opcode");
        let guid = if rest.starts_with("classic") { moved(guid, opcode) } else { guid };
        *counts.entry(format!("{guid}|{rest}")).or_default() += count.as_u64().expect("a count");
    }
    counts
}

fn id(event_type: &EventType) -> u32 {
    if etw(event_type).form == EtwForm::Classic { 0 } else { event_type.event_id }
}

/// Problems without a loss: hints, and what became of stacks (`stacks.rs`).
fn told_of(code: &str) -> bool {
    matches!(code, "sequence_gap" | "attached_stacks" | "unattached_stacks")
}

#[test]
fn counts_and_payloads_of_real_files() {
    let mut wrong = Vec::new();
    let (mut files, mut events) = (0, 0);
    let all = shared("counts_and_payloads_of_real_files");
    if all.is_empty() {
        // Said by `shared`.
        return;
    }
    for Shared { name, path, expected } in all {
        let recording = Recording::open(&path);
        let mut check = |what: &str, ours: Json, theirs: &Json| {
            if ours != *theirs {
                wrong.push(format!("{name}: {what}: expected {theirs}, read {ours}"));
            }
        };
        check("refused", recording.refused.clone().into(), &Json::Null);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut processes: BTreeMap<String, u64> = BTreeMap::new();
        let mut widths: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        // In the order of the file stacks that are events of their own are left where they are.
        let plain = Recording::read_in(Input::open(&path).expect("the file can be opened"), Order::File);
        let stacks = plain.events.iter().filter(|event| !event.stack.is_empty()).count();
        for event in &recording.events {
            let event_type = &recording.info_of(event).event_type;
            let guid = event_type.provider_guid.expect("a GUID");
            let opcode = event_type.opcode.unwrap_or_default();
            let (form, width) = match (etw(event_type).form, etw(event_type).pointer_size) {
                (EtwForm::Classic, 4) => ("classic", "32"),
                (EtwForm::Classic, _) => ("classic", "64"),
                (EtwForm::Message, _) => ("message", "message"),
                (_, 4) => ("event", "32"),
                (_, _) => ("event", "64"),
            };
            *counts.entry(format!("{guid}|{form}|{}|{opcode}|{}", id(event_type), event_type.version)).or_default() +=
                1;
            *processes.entry(recording.threads[event.capture_thread as usize].process_id.to_string()).or_default() += 1;
            *widths.entry(width).or_default() += 1;
            hash.update(&event.payload);
            bytes += event.payload.len();
        }
        let mut their_widths: BTreeMap<&str, u64> = BTreeMap::new();
        for (kind, count) in expected["by_header_kind"].as_object().expect("kinds") {
            let width = if kind.ends_with("32") {
                "32"
            } else if kind.ends_with("64") {
                "64"
            } else {
                "message"
            };
            *their_widths.entry(width).or_default() += count.as_u64().expect("a count");
        }
        check("widths", serde_json::json!(widths), &serde_json::json!(their_widths));
        check("events", recording.events.len().into(), &expected["events"]);
        check("counts", serde_json::json!(counts), &serde_json::json!(expected_counts(&expected["counts"])));
        // Of many processes only those with most events are listed.
        processes.retain(|process, _| expected["events_by_pid"].get(process).is_some());
        check("events_by_pid", serde_json::json!(processes), &expected["events_by_pid"]);
        check("payload_bytes", bytes.into(), &expected["payload_bytes"]);
        check("with_stack", stacks.into(), &expected["with_stack"]);
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        check("payload_sha256_in_time_order", hash.into(), &expected["payload_sha256_in_time_order"]);

        let header = &expected["header"];
        let number = |name: &str| header[name].as_i64().expect("a number");
        let info = recording.info.as_ref().expect("a header");
        check("start", info.clock.sync_ticks.into(), &header["start_raw"]);
        check("StartTime", (info.clock.sync_utc_ns / 100 + UNIX_EPOCH).into(), &header["StartTime"]);
        check("PerfFreq", info.clock.frequency.into(), &header["PerfFreq"]);
        check("PointerSize", info.pointer_size.into(), &header["PointerSize"]);
        check("NumberOfProcessors", info.processor_count.into(), &header["NumberOfProcessors"]);
        check("EventsLost", recording.end.dropped_events.into(), &header["EventsLost"]);
        check("complete", recording.end.complete.into(), &(number("EndTime") != 0).into());
        let value = |key: &str| info.key_values.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
        check("LoggerName", value("logger_name").into(), &header["LoggerName"]);
        check("LogFileName", value("log_file_name").into(), &header["LogFileName"]);
        let lost = if number("EventsLost") > 0 { vec!["dropped_events"] } else { Vec::new() };
        let unclosed = if number("EndTime") == 0 { vec!["no_end_mark"] } else { Vec::new() };
        let codes: Vec<_> = recording.codes().into_iter().filter(|c| !told_of(c)).collect();
        check("problems", serde_json::json!(codes), &serde_json::json!([lost, unclosed].concat()));
        let is_whole = recording.end.complete && number("EventsLost") == 0;
        let is_told = recording.problems.iter().any(|problem| problem.severity > Severity::Info);
        check("stated", (is_whole || is_told).into(), &true.into());
        files += 1;
        events += recording.events.len();
    }
    println!("{events} events of {files} files");
    assert!(files >= 15 && events > 200_000, "{events} events of {files} files");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn first_events_of_real_files() {
    let mut wrong = Vec::new();
    for Shared { name, path, .. } in shared("first_events_of_real_files") {
        let recording = Recording::open(&path);
        let shares = recording.events.iter().all(|e| e.processor == u32::MAX);
        let lines = std::fs::File::open(path.with_file_name(format!("{name}.first-events.jsonl.gz"))).expect("a list");
        let lines = BufReader::new(flate2::read::MultiGzDecoder::new(lines)).lines();
        let mut listed = 0;
        for line in lines {
            listed += 1;
            let expected: Json = serde_json::from_str(&line.expect("a line")).expect("valid JSON");
            let index = expected["i"].as_u64().expect("a number") as usize;
            let seen = &recording.events[index];
            for (what, ours) in described(&recording, seen) {
                let theirs = match (what, &expected[what]) {
                    ("cpu", _) if shares => u32::MAX.into(),
                    ("payload", Json::String(text)) => text.get(..1024).unwrap_or(text).into(),
                    ("guid", Json::String(guid)) if expected["kind"] != "EVENT64" && expected["kind"] != "EVENT32" => {
                        moved(guid, expected["opcode"].as_u64().unwrap_or_default()).into()
                    }
                    (_, theirs) => theirs.clone(),
                };
                if ours != theirs && wrong.len() < 50 {
                    wrong.push(format!("{name} event {index}: {what}: expected {theirs}, read {ours}"));
                }
            }
        }
        assert!(listed > 0, "{name}: no event is listed");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// An event in the words of the list of first events.
fn described(recording: &Recording, seen: &Seen) -> Vec<(&'static str, Json)> {
    let event_type = &recording.info_of(seen).event_type;
    let thread = &recording.threads[seen.capture_thread as usize];
    let clock = recording.info.as_ref().expect("a header").clock;
    let ns = clock.since_start(seen.ticks).expect("a time");
    let hex: String = seen.payload.iter().take(512).map(|byte| format!("{byte:02x}")).collect();
    let optional = |guid: Guid| if guid.is_none() { Json::Null } else { guid.to_string().into() };
    let stack: Vec<u64> = seen.stack.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
    vec![
        ("guid", event_type.provider_guid.map(|g| g.to_string()).into()),
        ("id", id(event_type).into()),
        ("opcode", event_type.opcode.into()),
        ("version", event_type.version.into()),
        ("pid", thread.process_id.into()),
        ("tid", thread.thread_id.into()),
        ("cpu", seen.processor.into()),
        ("rel_ms", Json::from((ns as f64 / 100.0).round() / 10_000.0)),
        ("activity", optional(seen.labels.activity_id)),
        ("related", optional(seen.labels.related_activity_id)),
        ("stack", serde_json::json!(stack)),
        ("payload", hex.into()),
        ("payload_len", seen.payload.len().into()),
    ]
}
