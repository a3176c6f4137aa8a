//! Values that no writer should write: each row of the table of hostile values is a test. None may panic, hang or take
//! memory that the file does not justify, and what is sound beside the damage is read.

use tracequet::trace::reader::{EtwForm, Format, Layout, Order};
use tracequet::trace::source::HEAD;

use super::writer::*;
use crate::support::collect::{Recording, mapped, piped};
use crate::support::patience::ends;

pub const PROVIDER: [u8; 16] = [9; 16];
/// Microsoft-Windows-DotNETRuntime.
pub const RUNTIME: [u8; 16] =
    [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];

pub fn plain(at: i64) -> Vec<u8> {
    event(19, PROVIDER, 1, TICKS + at, &[], b"payload!")
}

/// A file of a header event and these, in one buffer.
pub fn file(events: &[Vec<u8>]) -> Vec<u8> {
    Writer::new().events(1, events).bytes
}

pub fn read(bytes: &[u8]) -> Recording {
    let recording = Recording::mapped(bytes);
    // A pipe gives the same, and the order of the file gives as many.
    let pipe = Recording::read(piped(bytes));
    assert_eq!(
        (pipe.events.len(), pipe.codes(), pipe.refused.is_some()),
        (recording.events.len(), recording.codes(), recording.refused.is_some())
    );
    assert_eq!(Recording::read_in(mapped(bytes), Order::File).events.len(), recording.events.len());
    recording
}

/// Number of events, and codes of the problems.
pub fn outcome(bytes: &[u8]) -> (usize, Vec<&'static str>) {
    let recording = read(bytes);
    assert_eq!(recording.refused, None);
    (recording.events.len(), recording.codes())
}

#[test]
fn a_written_file_is_read() {
    let bytes = file(&[plain(5), plain(6)]);
    assert_eq!(Format::detect(&bytes[..HEAD]), Some(Format::Etl));
    assert_eq!(outcome(&bytes), (3, vec![]));
    let recording = Recording::mapped(&bytes);
    assert!(recording.end.complete);
    assert_eq!(recording.events[1].payload, b"payload!");
    assert_eq!(recording.events[1].ticks, TICKS + 5);
    assert_eq!(recording.threads[recording.events[1].thread as usize].process_id, 5);
}

#[test]
fn a_buffer_size_that_leads_nowhere_costs_its_buffer() {
    for size in [0u32, 1, 0x47, (64 << 20) + 1, u32::MAX] {
        let mut bytes = Writer::new().events(1, &[plain(1)]).events(2, &[plain(2)]).events(3, &[plain(3)]).bytes;
        patch(&mut bytes, 2 * BUFFER_SIZE as usize, size.to_le_bytes());
        assert_eq!(outcome(&bytes), (3, vec!["bad_buffer_size", "sequence_gap"]), "{size}");
        assert!(!Recording::mapped(&bytes).end.complete);
    }
}

#[test]
fn a_buffer_larger_than_the_rest_is_read_as_far_as_it_goes() {
    let mut bytes = file(&[plain(1)]);
    patch(&mut bytes, BUFFER_SIZE as usize, (2 * BUFFER_SIZE).to_le_bytes());
    assert_eq!(outcome(&bytes), (2, vec!["truncated"]));
}

#[test]
fn what_does_not_begin_with_a_header_buffer_is_refused() {
    let good = file(&[]);
    let refused = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        read(&bytes).refused.expect("a refusal")
    };
    for (at, value) in
        [(0x36, [0, 0]), (0, [0, 0]), (0x30, [8, 0]), (0x4A, [19, 0xC0]), (0x4A, [2, 0x40]), (0x4E, [1, 0])]
    {
        assert!(refused(at, &value).contains("no recording that tracequet knows"), "{at:#x}");
    }
    // The header event is too short for what it has to say, or longer than its buffer.
    assert!(refused(0x4C, &[0x40, 0]).contains("cannot be read"));
    assert!(refused(0x4C, &[0xFF, 0xFF]).contains("larger than what is left"));
    assert!(refused(0x4C, &[1, 0]).contains("smaller than its header"));
}

#[test]
fn valid_bytes_are_bounded_by_the_buffer() {
    let at = BUFFER_SIZE as usize + 0x30;
    for (valid, expected) in [
        (0u32, (1, vec!["bad_buffer_offset"])),
        (0x47, (1, vec!["bad_buffer_offset"])),
        (0x48, (1, vec![])),
        (u32::MAX, (2, vec!["bad_buffer_offset", "damaged_event"])),
    ] {
        let mut bytes = file(&[plain(1)]);
        patch(&mut bytes, at, valid.to_le_bytes());
        assert_eq!(outcome(&bytes), expected, "{valid:#x}");
    }
}

/// A compressed session: `body` expands to `valid` - 0x48 bytes, says its header; a sound buffer follows.
fn compressed(state: u32, body: &[u8], valid: u32) -> (usize, Vec<&'static str>) {
    let head = Head { flags: 0x60, ..Head::default() };
    let buffer = buffer_of(&head, body, valid, 0x48 + body.len() as u32);
    let mut bytes = Writer::new().raw(&buffer).events(2, &[plain(2)]).bytes;
    patch(&mut bytes, 0x2C, state.to_le_bytes());
    outcome(&bytes)
}

/// Literals only.
fn xpress_literals(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(32).flat_map(|part| [&[0; 4], part].concat()).collect()
}

#[test]
fn damaged_compression_costs_its_buffer_only() {
    let body = plain(1);
    let whole = xpress_literals(&body);
    let valid = 0x48 + body.len() as u32;
    assert_eq!(compressed(3, &whole, valid), (3, vec![]));
    assert_eq!(compressed(3, &whole[..whole.len() - 9], valid), (2, vec!["damaged_compression"]));
    // A match before the first byte.
    assert_eq!(compressed(3, &[0xFF; 40], valid), (2, vec!["damaged_compression"]));
    // More than the session's buffers hold: nothing is expanded.
    assert_eq!(compressed(3, &whole, BUFFER_SIZE + 1), (2, vec!["bad_buffer_offset"]));
    assert_eq!(compressed(3, &whole, u32::MAX), (2, vec!["bad_buffer_offset"]));
    // A match of 4 GiB ends where the buffer ends.
    let mut bomb = 0x7FFF_FFFFu32.to_le_bytes().to_vec();
    bomb.extend([b'x', 7, 0, 15, 255, 0, 0, 255, 255, 255, 255]);
    assert_eq!(compressed(3, &bomb, BUFFER_SIZE), (2, vec!["damaged_event"]));
}

#[test]
fn a_compression_that_is_not_known_costs_the_compressed_buffers() {
    let body = plain(1);
    for state in [0, 1, 4, 9, 0xFFFF] {
        let valid = 0x48 + body.len() as u32;
        assert_eq!(compressed(state, &xpress_literals(&body), valid), (2, vec!["damaged_compression"]), "{state}");
    }
}

#[test]
fn events_of_impossible_size_cost_the_rest_of_their_buffer() {
    for size in [0u16, 1, 8, 0x4F, u16::MAX] {
        let mut bad = plain(2);
        patch(&mut bad, 0, size.to_le_bytes());
        let bytes = Writer::new().events(1, &[plain(1), bad, plain(3)]).events(2, &[plain(4)]).bytes;
        assert_eq!(outcome(&bytes), (3, vec!["damaged_event"]), "{size}");
    }
}

#[test]
fn headers_that_are_not_known_cost_the_rest_of_their_buffer() {
    for marker in [[0, 0, 0, 0], [0xFF; 4], [8, 0, 19, 0x40], [8, 0, 12, 0xC0], [8, 0, 0, 0xB0], [0, 0, 99, 0xC0]] {
        let mut bad = plain(2);
        patch(&mut bad, 0, marker);
        let bytes = Writer::new().events(1, &[plain(1), bad, plain(3)]).events(2, &[plain(4)]).bytes;
        assert_eq!(outcome(&bytes), (3, vec!["damaged_event"]), "{marker:?}");
    }
}

#[test]
fn extended_items_end_with_the_event() {
    let beyond = item(6, false, &[0; 24]);
    let mut beyond = beyond;
    patch(&mut beyond, 6, 0xFFF0u16.to_le_bytes());
    let forever = item(99, true, &[]).repeat(200);
    for items in [beyond, forever, vec![1, 2, 3]] {
        let bytes = file(&[event(19, PROVIDER, 1, TICKS + 1, &items, b""), plain(2)]);
        assert_eq!(outcome(&bytes), (3, vec!["damaged_items"]));
    }
}

#[test]
fn a_torn_frame_of_a_stack_is_left_out() {
    let addresses = [[0u8; 8], 7u64.to_le_bytes()].concat();
    let torn = [addresses.as_slice(), &[1, 2, 3]].concat();
    let narrow = [&[0u8; 8], 7u32.to_le_bytes().as_slice(), &[1]].concat();
    let bytes = file(&[
        event(19, PROVIDER, 1, TICKS + 1, &item(6, false, &torn), b""),
        event(18, PROVIDER, 1, TICKS + 2, &item(5, false, &narrow), b""),
        event(19, PROVIDER, 1, TICKS + 3, &item(6, false, &[1, 2]), b""),
    ]);
    let recording = read(&bytes);
    let stacks: Vec<_> = recording.events[1..].iter().map(|e| e.stack.clone()).collect();
    assert_eq!(stacks, [7u64.to_le_bytes().to_vec(), 7u64.to_le_bytes().to_vec(), vec![]]);
}

#[test]
fn processors_beyond_their_number_are_taken_as_they_come() {
    for count in [0u32, 1, u32::MAX] {
        let mut header = log_file_header();
        patch(&mut header, 0x0C, count.to_le_bytes());
        let mut writer = Writer::with_header(&header);
        for (sequence, processor) in [(1, 0x7FF), (2, 3), (3, 0xFFFF)] {
            writer = writer.raw(&buffer(&Head { sequence, processor, ..Head::default() }, &[plain(sequence)]));
        }
        let recording = read(&writer.bytes);
        let processors: Vec<_> = recording.events.iter().map(|e| e.processor).collect();
        assert_eq!(processors, [0, 0x7FF, 3, 0x7FF], "{count}");
    }
}

#[test]
fn a_clock_that_stands_still_is_replaced() {
    for frequency in [0i64, -1, i64::MIN] {
        let mut header = log_file_header();
        patch(&mut header, 0x100, frequency.to_le_bytes());
        let recording = read(&Writer::with_header(&header).events(1, &[plain(1)]).bytes);
        assert_eq!(recording.info.as_ref().unwrap().clock.frequency, 10_000_000);
        assert_eq!(recording.codes(), ["bad_clock_frequency"]);
    }
}

#[test]
fn times_beyond_the_calendar_are_no_panic() {
    for (start, ticks) in [(i64::MAX, i64::MIN), (0, i64::MAX), (i64::MIN, 0), (START, i64::MIN)] {
        let mut header = log_file_header();
        patch(&mut header, 0x108, start.to_le_bytes());
        patch(&mut header, 0xF8, start.to_le_bytes());
        patch(&mut header, 0x10, ticks.to_le_bytes());
        let mut late = plain(1);
        patch(&mut late, 0x10, ticks.to_le_bytes());
        let recording = read(&Writer::with_header(&header).events(1, &[plain(1), late]).bytes);
        assert_eq!(recording.events.len(), 3);
        for seen in &recording.events {
            recording.with_event(seen, |event| drop(event.fields()));
        }
    }
}

#[test]
fn names_without_end_are_bounded_by_the_event() {
    let mut header = log_file_header();
    header.truncate(0x118);
    header.extend([b'A', 0].repeat(100));
    let recording = read(&Writer::with_header(&header).bytes);
    let name = recording.info.unwrap().key_values.into_iter().find(|(key, _)| key == "logger_name").unwrap().1;
    assert_eq!(name, "A".repeat(100));
    header.truncate(0x117);
    assert!(read(&Writer::with_header(&header).bytes).refused.is_some());
}

#[test]
fn buffers_are_read_by_sequence_number_however_large() {
    let writer = Writer::new().events(i64::MAX, &[plain(9)]).events(5, &[plain(3)]).events(7, &[plain(4)]);
    let recording = read(&writer.bytes);
    let times: Vec<_> = recording.events[1..].iter().map(|e| e.ticks - TICKS).collect();
    assert_eq!((times, recording.codes()), (vec![3, 4, 9], vec!["sequence_gap"]));
    let recording = read(&Writer::new().events(1, &[plain(3)]).events(i64::MIN, &[plain(1)]).bytes);
    assert_eq!((recording.events.len(), recording.codes()), (3, vec!["late_events"]));
}

#[test]
fn a_log_that_was_appended_is_read_in_the_order_of_the_file() {
    let session = |writer: Writer, from: i64| {
        writer.events(1, &[plain(from), plain(from + 3)]).events(2, &[plain(from + 4), plain(from + 7)])
    };
    let times = |recording: &Recording| recording.events[1..].iter().map(|e| e.ticks - TICKS).collect::<Vec<_>>();
    let recording = read(&session(session(Writer::new(), 1), 11).bytes);
    assert_eq!(times(&recording), [1, 4, 5, 8, 11, 14, 15, 18]);
    assert!(!recording.codes().contains(&"late_events"), "{:?}", recording.codes());
    // A copy of the same times: all events are there, and those that go back in time are counted.
    let recording = read(&session(session(Writer::new(), 1), 1).bytes);
    assert_eq!(times(&recording), [1, 4, 5, 8, 1, 4, 5, 8]);
    assert_eq!(recording.problems.iter().find(|p| p.code == "late_events").map(|p| p.count), Some(3));
}

#[test]
fn as_many_tiny_buffers_as_wanted_are_read() {
    let tiny = buffer_of(&Head::default(), &[], 0x48, 0x48);
    let bytes = Writer::new().raw(&tiny.repeat(400_000)).bytes;
    assert_eq!(ends("a log of tiny buffers", || Recording::mapped(&bytes)).events.len(), 1);
}

#[test]
fn other_kinds_of_buffers_and_lost_events_are_counted() {
    let context = buffer(&Head { kind: 2, ..Head::default() }, &[plain(1)]);
    let lossy = buffer(&Head { flags: 0x22, sequence: 2, ..Head::default() }, &[plain(2)]);
    let mut header = log_file_header();
    patch(&mut header, 0x30, 11u32.to_le_bytes());
    patch(&mut header, 0x114, 3u32.to_le_bytes());
    let recording = read(&Writer::with_header(&header).raw(&context).raw(&lossy).bytes);
    let codes = ["dropped_buffers", "dropped_events", "lossy_buffers", "sequence_gap", "skipped_buffers"];
    assert_eq!((recording.events.len(), recording.end.dropped_events), (2, 11));
    assert_eq!(recording.codes(), codes.into_iter().filter(|c| *c != "sequence_gap").collect::<Vec<_>>());
}

#[test]
fn processes_of_both_widths_stand_side_by_side() {
    // GCCreateSegment: two 64-bit numbers and a type; BulkSurvivingObjectRanges has pointers.
    let ranges = |form: u8, width: usize, at| {
        let mut payload = [0u32, 1].map(u32::to_le_bytes).concat();
        payload.extend([8, 0]);
        payload.extend(&0x1000u64.to_le_bytes()[..width]);
        payload.extend(0x20u64.to_le_bytes());
        event(form, RUNTIME, 21, TICKS + at, &[], &payload)
    };
    let recording = read(&file(&[ranges(18, 4, 1), ranges(19, 8, 2)]));
    for seen in &recording.events[1..] {
        recording.with_event(seen, |event| {
            let (fields, fit) = event.fields().expect("fields");
            assert!(fit.is_exact(), "{fit:?}");
            assert!(format!("{fields:?}").contains("Uint(4096)"), "{fields:?}");
        });
    }
    let forms = recording.types.iter().filter_map(|t| match &t.event_type.layout {
        Layout::Etw(etw) if etw.form == EtwForm::Manifest => Some(etw.pointer_size),
        _ => None,
    });
    assert_eq!(forms.collect::<Vec<_>>(), [4, 8]);
}

#[test]
fn messages_have_the_fields_that_their_options_say() {
    // Nothing, not even a time: that of the event before.
    let bare = [&[0x0C, 0, 0, 0x90][..], &43u16.to_le_bytes(), &[0, 0], b"args"].concat();
    let mut rich = [&[0, 0, 0, 0x90][..], &44u16.to_le_bytes(), &0x6Bu16.to_le_bytes()].concat();
    rich.extend(1u32.to_le_bytes());
    rich.extend(PROVIDER);
    rich.extend((TICKS + 9).to_le_bytes());
    rich.extend([7u32, 5].map(u32::to_le_bytes).concat());
    rich.extend(b"more");
    rich[0] = rich.len() as u8;
    let recording = read(&file(&[plain(4), bare, rich]));
    let seen: Vec<_> = recording.events[2..].iter().map(|e| (e.ticks - TICKS, e.payload.as_slice())).collect();
    assert_eq!(seen, [(4, b"args".as_slice()), (9, b"more")]);
    let info = recording.info_of(&recording.events[3]);
    assert_eq!((info.name.as_str(), info.event_type.provider_guid.map(|g| g.0)), ("message_44", Some(PROVIDER)));
}
