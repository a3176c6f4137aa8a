//! Cut, mutated and hostile recordings, and those of the format owners' own test writers: what can be read of each is
//! read, and what is wrong with it is said.

use std::path::Path;

use serde_json::Value as Json;
use tracequet::trace::reader::Order;
use tracequet::trace::source::Input;

use crate::support::collect::Recording;
use crate::support::compare::event_differences;
use crate::support::expected::{SharedTrace, shared_traces, traces_in};

/// Recordings whose header cannot be used, and what the message says of them.
const REFUSED: &[(&str, &str)] = &[
    ("cut-empty.nettrace", "0 bytes in all"),
    ("cut-only-magic.nettrace", "at byte 8: no stream header behind the magic"),
    ("cut-mid-trace-object.nettrace", "at byte 70: the file ends inside its header"),
    ("h-freq0.nettrace", "clock frequency 0"),
    ("h-freq-neg.nettrace", "clock frequency -1"),
    ("h-ptr16.nettrace", "pointer size 16"),
    ("h-minreader5.nettrace", "for readers from 5 on"),
    ("h-version5-object.nettrace", "object 'Trace' version 5"),
    ("h6-major7.nettrace", "nettrace version 7"),
    ("h6-kv-count-huge.nettrace", "KeyValueCount cannot be read"),
    ("NegativeObjectTypeLengthThrowsInsteadOfStackOverflow.nettrace", "expected a type name of 0 to 64 bytes"),
    ("ThrowsExceptionOnUnsupportedMajorVersion.nettrace", "nettrace version 7"),
];

/// Problems that are reported of a recording; the others have none.
const PROBLEMS: &[(&str, &[&str])] = &[
    ("cut-after-block-size.nettrace", &["truncated"]),
    ("cut-after-end-object.nettrace", &["no_end_mark"]),
    ("cut-before-end-object.nettrace", &["no_end_mark"]),
    ("cut-mid-event-block-header.nettrace", &["truncated"]),
    ("cut-mid-event-payload.nettrace", &["truncated"]),
    ("cut-mid-metadata-block.nettrace", &["truncated"]),
    ("cut-mid-stack-block.nettrace", &["truncated"]),
    ("cut-mid-type-name.nettrace", &["truncated"]),
    ("cut-no-null-tag.nettrace", &["no_end_mark"]),
    // Its event has no metadata on purpose: what counts is that the block is read.
    ("h-block-version3-min2.nettrace", &["unknown_metadata"]),
    ("h-blockheader-19.nettrace", &["damaged_block"]),
    ("h-blockheader-65535.nettrace", &["damaged_block"]),
    ("h-blocksize-huge.nettrace", &["truncated", "unknown_metadata"]),
    ("h-blocksize-minus-one.nettrace", &["damaged_container"]),
    ("h-blocksize-neg.nettrace", &["damaged_container"]),
    ("h-drops.nettrace", &["dropped_events"]),
    ("h-duplicate-metadata.nettrace", &["duplicate_metadata_id"]),
    ("h-fieldcount-huge.nettrace", &["damaged_field_list"]),
    ("h-fieldcount-negative.nettrace", &["damaged_field_list"]),
    ("h-metadata-id0-in-eventblock.nettrace", &["unknown_metadata"]),
    ("h-month13.nettrace", &["bad_start_time"]),
    ("h-nesting.nettrace", &["damaged_field_list"]),
    ("h-nonzero-padding.nettrace", &["unknown_metadata"]),
    ("h-payload-too-long.nettrace", &["damaged_event"]),
    ("h-sp-threads-huge.nettrace", &["damaged_sequence_point"]),
    ("h-stack-after-sp.nettrace", &["unknown_stack"]),
    ("h-ts-max.nettrace", &["time_out_of_range"]),
    ("h-stack-count-wrong.nettrace", &["damaged_stack_block"]),
    ("h-stack-size-neg.nettrace", &["damaged_stack_block", "unknown_stack"]),
    ("h-typecode-unknown.nettrace", &["damaged_field_list"]),
    ("h-unknown-metadata.nettrace", &["unknown_metadata"]),
    ("h-unknown-object.nettrace", &["unknown_block"]),
    ("h-v5-tag-length-huge.nettrace", &["damaged_metadata_tag"]),
    ("h-v5-v2field-size0.nettrace", &["damaged_field_list"]),
    ("h-varint-overlong.nettrace", &["damaged_event"]),
    ("h-varint32-overflow.nettrace", &["damaged_event"]),
    ("h-year0.nettrace", &["bad_start_time"]),
    ("h6-block-truncated.nettrace", &["truncated"]),
    ("h6-label-count-huge.nettrace", &["damaged_label_block"]),
    ("h6-label-no-end.nettrace", &["damaged_label_block", "unknown_label_list"]),
    ("h6-label-unknown-id.nettrace", &["unknown_label_list"]),
    ("h6-label-unknown-kind.nettrace", &["damaged_label_block"]),
    ("h6-nesting.nettrace", &["damaged_field_list"]),
    ("h6-optional-unknown.nettrace", &["unknown_optional_metadata"]),
    ("h6-relloc-of-varint.nettrace", &["damaged_field_list"]),
    ("h6-seq-mid0.nettrace", &["unknown_metadata"]),
    ("h6-sp-flush-all.nettrace", &["unknown_metadata", "unknown_thread"]),
    ("h6-string-len-huge.nettrace", &["damaged_metadata", "unknown_metadata"]),
    ("h6-thread-dup.nettrace", &["duplicate_thread_index"]),
    ("h6-thread-unknown-info.nettrace", &["unknown_thread_info"]),
    ("h6-unknown-block.nettrace", &["unknown_block"]),
    ("v2-no-trailer.netperf", &["truncated"]),
    ("ParseV6CompressedEventHeaders.nettrace", &["dropped_events"]),
    ("V5IncompleteTraceThrowsException.nettrace", &["no_end_mark"]),
    ("V6DataLocThrowsOnVariableSizedElementType.nettrace", &["damaged_field_list"]),
    ("V6DoubleRemoveThreadBlockThrowsException.nettrace", &["unknown_thread"]),
    ("V6IncompleteTraceThrowsException.nettrace", &["no_end_mark"]),
    ("V6MismatchedRemoveThreadBlockThrowsException.nettrace", &["unknown_thread"]),
    ("V6MissingThreadBlockThrowsException.nettrace", &["unknown_thread"]),
    ("V6RedefinedMetadataIndexThrowsFormatException.nettrace", &["duplicate_metadata_id"]),
    ("V6RedefinedThreadIndexThrowsFormatException.nettrace", &["duplicate_thread_index"]),
    ("V6RefAfterRemoveThreadBlockThrowsException.nettrace", &["unknown_thread"]),
    ("V6RelLocThrowsOnVariableSizedElementType.nettrace", &["damaged_field_list"]),
    ("V6SequencePointDetectsDroppedEvents.nettrace", &["dropped_events"]),
    ("V6UnrecognizedBlockTypesAreSkipped.nettrace", &["unknown_block"]),
];

/// Where tracequet reads on and the independent decoder gave up: how many events more, and why that is right.
const RECOVERED: &[(&str, usize, &str)] = &[
    ("h-month13.nettrace", 1, "a bad start time takes the time of day away, not the events"),
    ("h-year0.nettrace", 1, "as above"),
    ("h-sp-threads-huge.nettrace", 1, "the thread list of a sequence point only serves to find drops"),
    ("h-stack-size-neg.nettrace", 1, "a damaged stack block takes the stacks away, not the events"),
    ("h6-label-count-huge.nettrace", 1, "damaged labels take the labels away, not the events"),
    ("h6-label-no-end.nettrace", 1, "as above"),
    ("h6-label-unknown-kind.nettrace", 1, "as above"),
    ("h6-nesting.nettrace", 1, "an unreadable field list leaves the payload raw"),
    ("h6-relloc-of-varint.nettrace", 1, "as above"),
    ("h6-string-len-huge.nettrace", 1, "an event without metadata is kept raw"),
];

/// Where the end mark is reached because blocks are framed by their size, whatever is in them; the independent decoder
/// stopped at the first one it could not read.
const REACHED_THE_END: &[&str] = &[
    "h-blockheader-19.nettrace",
    "h-blockheader-65535.nettrace",
    "h-payload-too-long.nettrace",
    "h-sp-threads-huge.nettrace",
    "h-stack-size-neg.nettrace",
    "h-unknown-object.nettrace",
    "h-varint-overlong.nettrace",
    "h-varint32-overflow.nettrace",
    "h6-label-count-huge.nettrace",
    "h6-label-no-end.nettrace",
    "h6-label-unknown-kind.nettrace",
    "h6-nesting.nettrace",
    "h6-relloc-of-varint.nettrace",
    "h6-string-len-huge.nettrace",
];

/// Differences that are meant.
fn is_meant(name: &str, difference: &str) -> bool {
    // Ids have 32 bits in the recording; the independent decoder cuts them to 16, as TraceEvent does.
    name == "h-metadata-level-version-big.nettrace" && difference == "event_id: expected 9029, read 74565"
}

#[test]
fn damaged_recordings_give_what_is_whole_and_say_what_is_not() {
    let test = "damaged_recordings_give_what_is_whole_and_say_what_is_not";
    let Some(folder) = shared_traces(test) else { return };
    let manifest = std::fs::read_to_string(folder.join("damaged/MANIFEST.jsonl")).expect("MANIFEST.jsonl");
    let rows: Vec<Json> = manifest.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    check_folder(&folder.join("damaged"), 112, |trace| {
        let row = rows.iter().find(|row| row["file"] == trace.name.as_str());
        Some(row.unwrap_or_else(|| panic!("{} is not in MANIFEST.jsonl", trace.name)))
    });
}

#[test]
fn recordings_of_the_owners_test_writers_are_read() {
    let Some(folder) = shared_traces("recordings_of_the_owners_test_writers_are_read") else { return };
    // What these hold is in their expected events alone.
    check_folder(&folder.join("v6-writer"), 58, |trace| {
        assert!(trace.events().is_some(), "{}: nothing is expected of it", trace.name);
        None
    });
}

fn check_folder<'r>(folder: &Path, files: usize, row: impl Fn(&SharedTrace) -> Option<&'r Json>) {
    let traces = traces_in(folder);
    assert_eq!(traces.len(), files);
    let mut wrong = Vec::new();
    for trace in &traces {
        let bytes = std::fs::read(&trace.path).expect("a readable file");
        let recording = Recording::open(&trace.path);
        let piped = Recording::piped(&bytes);
        if recording.events != piped.events || recording.codes() != piped.codes() {
            wrong.push(format!("{}: a pipe gives something else", trace.name));
        }
        let unordered = Recording::read_in(Input::open(&trace.path).expect("a file"), Order::File);
        if unordered.events.len() != recording.events.len() {
            wrong.push(format!("{}: {} events in file order", trace.name, unordered.events.len()));
        }
        let found = differences(trace, row(trace), &recording, &bytes);
        wrong.extend(found.into_iter().map(|what| format!("{}: {what}", trace.name)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn differences(trace: &SharedTrace, manifest: Option<&Json>, recording: &Recording, bytes: &[u8]) -> Vec<String> {
    let name = trace.name.as_str();
    let mut out = Vec::new();
    if let Some((_, message)) = REFUSED.iter().find(|(file, _)| *file == name) {
        match &recording.refused {
            Some(refused) if refused.contains(message) => {}
            other => out.push(format!("expected to be refused with '{message}', not {other:?}")),
        }
        return out;
    }
    if let Some(refused) = &recording.refused {
        return vec![format!("refused: {refused}")];
    }
    let codes = PROBLEMS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, codes)| codes);
    if recording.codes() != codes {
        out.push(format!("expected the problems {codes:?}, read {:#?}", recording.problems));
    }
    if recording.problems.iter().any(|p| p.offset > bytes.len() as u64) {
        out.push("a problem lies behind the end of the file".to_owned());
    }
    for event in &recording.events {
        let start = event.offset as usize;
        if bytes.get(start..start + event.payload.len()) != Some(&event.payload) {
            out.push(format!("no payload at {start}"));
        }
    }
    let expected = trace.events();
    if expected.is_none() && manifest.is_none_or(|row| row["events"] != 0) {
        out.push("no file says which events are in it".to_owned());
    }
    let expected = expected.unwrap_or_default();
    let expected = if expected.first().is_some_and(|e| e["error"].is_string()) { Vec::new() } else { expected };
    let more = RECOVERED.iter().find(|(file, _, _)| *file == name).map_or(0, |(_, more, _)| *more);
    if expected.len() + more != recording.events.len() {
        out.push(format!("expected {} and {more} more events, read {}", expected.len(), recording.events.len()));
    }
    for (index, (expected, seen)) in expected.iter().zip(&recording.events).enumerate() {
        let found = event_differences(expected, seen, recording).into_iter().filter(|d| !is_meant(name, d));
        out.extend(found.map(|difference| format!("event {index}: {difference}")).take(5));
    }
    if let Some(manifest) = manifest.filter(|row| row["error"].is_null()) {
        let end = recording.end;
        let complete = manifest["complete"] == true || REACHED_THE_END.contains(&name);
        if end.complete != complete {
            out.push(format!("expected complete = {complete}"));
        }
        if manifest["trailing_bytes"] != end.trailing_bytes {
            out.push(format!("expected {} trailing bytes, read {}", manifest["trailing_bytes"], end.trailing_bytes));
        }
        if manifest["dropped"] != end.dropped_events {
            out.push(format!("expected {} dropped events, read {}", manifest["dropped"], end.dropped_events));
        }
    }
    out
}
