//! Values that no writer should write: each row of the table of hostile values is a test. None may panic, hang or take
//! memory that the file does not justify, and what is sound beside the damage is read.

use std::io::{Read, Write};

use tracequet::reader::{EtwForm, Format, Layout, Order};
use tracequet::source::{HEAD, Input};

use super::expected::shared;
use super::writer::*;
use crate::support::collect::{Recording, mapped, piped};

const PROVIDER: [u8; 16] = [9; 16];
/// Microsoft-Windows-DotNETRuntime.
const RUNTIME: [u8; 16] =
    [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];

fn plain(at: i64) -> Vec<u8> {
    event(19, PROVIDER, 1, TICKS + at, &[], b"payload!")
}

/// A file of a header event and these, in one buffer.
fn file(events: &[Vec<u8>]) -> Vec<u8> {
    Writer::new().events(1, events).bytes
}

fn read(bytes: &[u8]) -> Recording {
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
fn outcome(bytes: &[u8]) -> (usize, Vec<&'static str>) {
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
fn buffer_sizes_that_lead_nowhere_end_the_chain() {
    for size in [0u32, 1, 0x47, (64 << 20) + 1, u32::MAX] {
        let mut bytes = Writer::new().events(1, &[plain(1)]).events(2, &[plain(2)]).events(3, &[plain(3)]).bytes;
        patch(&mut bytes, 2 * BUFFER_SIZE as usize, size.to_le_bytes());
        assert_eq!(outcome(&bytes), (2, vec!["bad_buffer_size"]), "{size}");
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
fn equal_and_negative_sequence_numbers_keep_the_order_of_the_file() {
    let writer = Writer::new().events(5, &[plain(3)]).events(5, &[plain(4)]).events(i64::MIN, &[plain(1)]);
    let recording = read(&writer.events(i64::MAX, &[plain(9)]).bytes);
    let times: Vec<_> = recording.events[1..].iter().map(|e| e.ticks - TICKS).collect();
    assert_eq!((recording.events.len(), recording.codes()), (5, vec!["late_events", "sequence_gap"]));
    assert!(times.ends_with(&[3, 4, 9]), "{times:?}");
}

fn trace_logging(schema: &[u8], payload: &[u8]) -> Recording {
    read(&file(&[event(19, PROVIDER, 1, TICKS + 1, &item(11, false, schema), payload), plain(2)]))
}

#[test]
fn hostile_trace_logging_is_kept_raw_or_short() {
    // A size beyond the data, names without end, more members than fields, nesting, a type that is none.
    let nested = [b"\0\0\0E\0".as_slice(), &b"s\0\x98\x01".repeat(40)].concat();
    let sized = |mut schema: Vec<u8>| {
        let size = schema.len() as u16;
        patch(&mut schema, 0, size.to_le_bytes());
        schema
    };
    for schema in [
        vec![],
        vec![200, 0, 0, b'E', 0],
        sized(b"\0\0\0E".to_vec()),
        sized(b"\0\0\0E\0s\0\x98\x7F".to_vec()),
        sized(nested),
        sized(b"\0\0\0E\0a\0\x1F".to_vec()),
    ] {
        let recording = trace_logging(&schema, b"12345678");
        let info = recording.info_of(&recording.events[1]);
        assert!(matches!(info.event_type.layout, Layout::Unreadable(_)), "{schema:?}");
    }
    // 65,535 empty structures, and arrays that are longer than the payload.
    let empty = trace_logging(&sized(b"\0\0\0E\0s\0\x98\x00a\0\xD8\x00".to_vec()), &[0xFF, 0xFF]);
    empty.with_event(&empty.events[1], |event| assert!(event.fields().unwrap().1.is_exact()));
    let array = trace_logging(&sized(b"\0\0\0E\0a\0\x48".to_vec()), &[0xFF, 0xFF, 1, 2, 3, 4]);
    array.with_event(&array.events[1], |event| assert!(event.fields().unwrap().1.short.is_some()));
}

#[test]
fn hostile_embedded_schemas_are_kept_raw() {
    const EVENT_INFO: [u8; 16] =
        [0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48, 0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71];
    let with = |count: u32, top: u32, properties: &[[u32; 6]]| {
        let mut blob = vec![0u8; 0x70];
        blob[..16].copy_from_slice(&PROVIDER);
        patch(&mut blob, 0x20, 1u16.to_le_bytes());
        patch(&mut blob, 0x44, u32::MAX.to_le_bytes());
        patch(&mut blob, 0x64, count.to_le_bytes());
        patch(&mut blob, 0x68, top.to_le_bytes());
        properties.iter().flatten().for_each(|word| blob.extend(word.to_le_bytes()));
        // The schema comes behind the event that it describes.
        let recording = read(&file(&[plain(1), full(EVENT_INFO, 32, TICKS + 2, &blob)]));
        recording.info_of(&recording.events[1]).event_type.layout.clone()
    };
    let number = [0, 0, 10, 0, 1, 0];
    assert!(matches!(with(1, 1, &[number]), Layout::Etw(etw) if etw.fields.as_ref().is_some_and(|f| f.len() == 1)));
    for layout in [
        with(u32::MAX, u32::MAX, &[]),
        with(1, 2, &[number]),
        with(1, 1, &[[1, 0, 1 << 16, 0, 0, 0]]),
        with(1, 1, &[[1, 0, 9 | 9 << 16, 0, 0, 0]]),
        with(1, 1, &[[4, 0, 8, 0, 9, 0]]),
    ] {
        assert!(matches!(layout, Layout::Unreadable(_)), "{layout:?}");
    }
}

#[test]
fn hostile_manifests_are_kept_raw() {
    let chunk = |total: u16, number: u16, text: &[u8]| {
        let head = [&[1, 1, 0, 0x5B][..], &total.to_le_bytes(), &number.to_le_bytes()].concat();
        event(19, PROVIDER, 0xFFFE, TICKS + 1, &[], &[&head, text].concat())
    };
    let xml = b"<m><provider name='P' guid='x'><events><event value='1' symbol='One'/></events></provider></m>";
    let (first, second) = xml.split_at(30);
    let name = |events: &[Vec<u8>]| {
        let recording = read(&file(&[events, &[plain(9)]].concat()));
        let last = recording.events.last().unwrap();
        (recording.info_of(last).provider.clone(), recording.codes())
    };
    let unknown = "09090909-0909-0909-0909-090909090909".to_owned();
    assert_eq!(name(&[chunk(2, 1, second), chunk(2, 0, first)]), ("P".to_owned(), vec![]));
    assert_eq!(name(&[chunk(2, 0, first)]), (unknown.clone(), vec!["incomplete_manifest"]));
    for events in [chunk(0, 0, xml), chunk(300, 0, xml), chunk(2, 7, xml)] {
        assert_eq!(name(&[events]), (unknown.clone(), vec![]));
    }
    let bomb = b"<!DOCTYPE a [<!ENTITY x 'yy'>]><provider name='&x;&x;'/>";
    for text in [&b"<m>"[..], b"\xFF\xFE", bomb, &b"<a>".repeat(1000)] {
        assert_eq!(name(&[chunk(1, 0, text)]), (unknown.clone(), vec!["damaged_manifest"]));
    }
}

#[test]
fn stack_keys_that_nobody_defines_are_events_like_others() {
    let reference = [&[0u8; 16][..], &77u64.to_le_bytes()].concat();
    let events: Vec<_> = (0..40).map(|i| system(0x18, 0x25, 2, TICKS + i, &reference)).collect();
    assert_eq!(outcome(&file(&events)), (41, vec!["unattached_stacks"]));
}

#[test]
fn a_hundred_thousand_tiny_buffers_take_no_time() {
    let tiny = buffer_of(&Head::default(), &[], 0x48, 0x48);
    let bytes = Writer::new().raw(&tiny.repeat(100_000)).bytes;
    let started = std::time::Instant::now();
    assert_eq!(Recording::mapped(&bytes).events.len(), 1);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
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

#[test]
fn a_file_can_be_cut_anywhere() {
    let mut header = log_file_header();
    patch(&mut header, 0x24, 3u32.to_le_bytes());
    let small = Writer::with_header(&header).events(1, &[plain(1), plain(2)]).events(2, &[plain(3)]).bytes;
    let whole = Recording::mapped(&small).events.len();
    let mut last = 0;
    for end in 0..small.len() {
        let recording = Recording::mapped(&small[..end]);
        assert!(recording.events.len() <= whole && recording.events.len() >= last, "{end}");
        assert!(recording.refused.is_some() || !recording.codes().is_empty(), "{end}");
        last = recording.events.len();
    }
    for file in shared("a_file_can_be_cut_anywhere") {
        let bytes = std::fs::read(&file.path).expect("a readable file");
        let whole = Recording::mapped(&bytes).events.len();
        let step = if bytes.len() < 10_000 { 1 } else { bytes.len() / 23 };
        for end in (0..bytes.len()).step_by(step) {
            assert!(Recording::mapped(&bytes[..end]).events.len() <= whole, "{} {end}", file.name);
        }
    }
}

#[test]
fn a_file_can_be_damaged_anywhere() {
    let mut seed = 0x9E37_79B9u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for file in shared("a_file_can_be_damaged_anywhere") {
        let bytes = std::fs::read(&file.path).expect("a readable file");
        let bytes = &bytes[..bytes.len().min(300_000)];
        for _ in 0..12 {
            let mut damaged = bytes.to_vec();
            for _ in 0..1 + next() % 20 {
                let at = next() as usize % damaged.len();
                damaged[at] = next() as u8;
            }
            let recording = Recording::mapped(&damaged);
            for seen in &recording.events {
                recording.with_event(seen, |event| drop(event.fields()));
            }
        }
    }
}

#[test]
fn a_zip_of_several_logs_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.diagsession");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).expect("room"));
    for name in ["a/one.etl", "b/two.ETL", "metadata.xml"] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).expect("room");
        zip.write_all(&file(&[])).expect("room");
    }
    zip.finish().expect("room");
    let error = Input::open(&path).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("holds a/one.etl, b/two.ETL"), "{error}");
}

#[test]
fn packed_files_are_seen_through() {
    for file in shared("packed_files_are_seen_through").iter().filter(|f| f.name == "gcevents.etl") {
        let plain = Recording::open(&file.path);
        let zip = Recording::open(&file.path.with_extension("etl.zip"));
        assert_eq!((plain.events.len(), plain.events == zip.events), (71, true));
        let folder = tempfile::tempdir().expect("a folder");
        let packed = folder.path().join("gcevents.etlgz");
        let mut gz = Vec::new();
        let source = std::fs::File::open(&file.path).expect("a readable file");
        flate2::read::GzEncoder::new(source, flate2::Compression::fast()).read_to_end(&mut gz).expect("room");
        std::fs::write(&packed, &gz).expect("room");
        assert!(Recording::open(&packed).events == plain.events);
        // A packing that is cut gives what came.
        std::fs::write(&packed, &gz[..gz.len() / 2]).expect("room");
        let cut = Recording::read(Input::open(&packed).expect("an input"));
        assert!(cut.codes().contains(&"stream_error") && !cut.events.is_empty(), "{:?}", cut.codes());
    }
}
