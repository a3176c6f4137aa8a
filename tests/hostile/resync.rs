//! Reading goes on behind damage: a hole costs what stood in it and little more, nothing is made up, and one row of the
//! diagnostics reports each gap.

use std::collections::HashSet;

use tracequet::trace::error::Severity;
use tracequet::trace::guid::Guid;

use crate::support::collect::Recording;
use crate::support::expected::{shared_traces, traces_in};
use crate::support::writer::{Form, Kind, Row, Writer};

const KINDS: [Kind<'static>; 2] = [
    Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" },
    Kind { id: 2, provider: "Shop", event_id: 2, version: 0, name: "Parcel" },
];

/// A recording of `regions` regions with a stack block and four blocks of 50 events each.
pub fn long(form: Form, regions: u32) -> Writer {
    let mut writer = Writer::new(form);
    writer.metadata(&KINDS).threads(&[(1, 77, 1), (2, 77, 2)]);
    for region in 0..regions {
        let stacks: Vec<Vec<u64>> = (1..=20u64).map(|n| vec![n + u64::from(region) * 1000; 3]).collect();
        writer.stacks(1, &stacks).labels(1, &[(Guid([(region % 250) as u8 + 1; 16]), Guid::NONE)]);
        for block in 0..4u32 {
            let events: Vec<Row> = (0..50u32).map(|n| row(region * 200 + block * 50 + n)).collect();
            writer.events(&events);
        }
        let last = (region + 1) * 100;
        writer.sequence_point(i64::from(region + 1) * 20_000, &[(1, last), (2, last)]);
    }
    writer
}

/// The n-th event of a long recording.
fn row(n: u32) -> Row {
    Row {
        metadata_id: n % 2 + 1,
        sequence: n / 2 + 1,
        capture_thread: u64::from(n % 2) + 1,
        thread: u64::from(n % 2) + 1,
        stack_id: n % 20 + 1,
        ticks: i64::from(n) * 100 + 7,
        label_list: 1,
        payload: (0..40u8).map(|byte| byte.wrapping_mul(7) ^ n as u8 | 1).collect(),
        ..Row::default()
    }
}

/// Everything of an event that must be right when it is there at all. Its stack may be missing.
type Key = (i64, u64, Vec<u8>, String);

fn keys(recording: &Recording) -> Vec<Key> {
    let name = |e: &crate::support::collect::Seen| recording.info_of(e).event_type.name.clone();
    recording.events.iter().map(|e| (e.ticks, e.offset, e.payload.clone(), name(e))).collect()
}

fn with_hole(bytes: &[u8], at: usize, len: usize, fill: impl Fn(usize) -> u8) -> Vec<u8> {
    let mut holed = bytes.to_vec();
    for (n, byte) in holed.iter_mut().enumerate().skip(at).take(len) {
        *byte = fill(n);
    }
    holed
}

/// Pseudo-random bytes.
fn noise(n: usize) -> u8 {
    ((n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 29) as u8
}

#[test]
fn a_hole_anywhere_costs_its_blocks_and_nothing_is_made_up() {
    for form in [Form::V4, Form::V6] {
        let bytes = long(form, 6).end();
        let whole = Recording::mapped(&bytes);
        assert_eq!((whole.events.len(), whole.codes()), (1200, vec![]), "{form:?}");
        let known: HashSet<Key> = keys(&whole).into_iter().collect();
        for at in (200..bytes.len() - 700).step_by(97) {
            let holed = with_hole(&bytes, at, 600, |_| 0);
            let recording = Recording::mapped(&holed);
            let reported = format!("{form:?}, hole at {at}: {:#?}", recording.problems);
            // The hole reaches into no more than two blocks of events, or it takes the descriptions with it.
            assert!(recording.events.len() >= 1100, "{} events; {reported}", recording.events.len());
            assert!(recording.problems.iter().any(|p| p.severity == Severity::Error), "{reported}");
            if at > 600 {
                let strange = keys(&recording).into_iter().filter(|key| !known.contains(key)).count();
                // One event may have the hole in its payload.
                assert!(strange <= 1, "{strange} events are made up; {reported}");
            }
            let gaps = recording.problems.iter().filter(|p| p.code == "damaged_container");
            assert!(gaps.clone().count() <= 1, "{reported}");
            assert!(gaps.map(|p| p.count).sum::<u64>() <= 600 + 2 * 2600, "{reported}");
            assert_eq!(recording.end.dropped_events, 0, "{reported}");
            assert!(recording.end.complete, "{reported}");
            let stream = Recording::piped(&holed);
            assert_eq!((keys(&stream), stream.codes()), (keys(&recording), recording.codes()), "{reported}");
        }
    }
}

#[test]
fn a_hole_of_noise_ends_at_the_next_block() {
    for form in [Form::V4, Form::V6] {
        let bytes = long(form, 6).end();
        for at in (1000..bytes.len() - 700).step_by(211) {
            let recording = Recording::mapped(&with_hole(&bytes, at, 600, noise));
            assert!(recording.events.len() >= 1100, "{form:?}, hole at {at}: {} events", recording.events.len());
            assert!(recording.end.complete, "{form:?}, hole at {at}");
        }
    }
}

#[test]
fn behind_a_gap_that_may_hide_a_sequence_point_no_event_gets_a_stack_of_before() {
    for form in [Form::V4, Form::V6] {
        let bytes = long(form, 6).end();
        let whole = Recording::mapped(&bytes);
        let stack_of = |offset: u64| whole.events.iter().find(|e| e.offset == offset).map(|e| (&e.stack, &e.labels));
        let mut lost = 0;
        for at in (1000..bytes.len() - 3000).step_by(331) {
            // Large enough for a sequence point with the stack block behind it.
            let recording = Recording::mapped(&with_hole(&bytes, at, 2500, |_| 0));
            for event in &recording.events {
                let Some((stack, labels)) = stack_of(event.offset) else { continue };
                assert!(event.stack.is_empty() || event.stack == *stack, "{form:?}, hole at {at}: another stack");
                assert!(
                    event.labels == Default::default() || event.labels == *labels,
                    "{form:?}, hole at {at}: labels"
                );
                lost += usize::from(event.stack.is_empty());
            }
            assert!(recording.problems.iter().filter(|p| p.code == "unknown_stack").count() <= 1);
        }
        assert!(lost > 0, "some hole takes a stack block");
    }
}

#[test]
fn a_zeroed_block_header_is_not_the_end() {
    let bytes = long(Form::V6, 4).end();
    let whole = Recording::mapped(&bytes);
    // Behind the header of the recording, block by block.
    let (mut at, mut blocks) = (20, 0);
    while at + 4 < bytes.len() {
        let size = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        if blocks > 1 {
            let recording = Recording::mapped(&with_hole(&bytes, at, 4, |_| 0));
            assert!(recording.events.len() + 50 >= whole.events.len(), "block at {at}: {}", recording.events.len());
            assert!(recording.codes().contains(&"damaged_container"), "block at {at}: {:?}", recording.codes());
            // Of the last block nothing but the end mark is left.
            let is_last = at + 8 + (size & 0xFF_FFFF) as usize == bytes.len();
            assert_eq!(recording.end.complete, !is_last, "block at {at}");
        }
        at += 4 + (size & 0xFF_FFFF) as usize;
        blocks += 1;
    }
    assert_eq!((at + 4, blocks), (bytes.len(), 31));
}

/// Of both, one header in front of a sequence point is zeroed, its kind or all of it.
#[test]
fn real_recordings_with_a_zeroed_header_lose_no_event() {
    let Some(folder) = shared_traces("real_recordings_with_a_zeroed_header_lose_no_event") else { return };
    for name in ["v6-zero1.nettrace.zst", "v6-zero4.nettrace.zst"] {
        let recording = Recording::open(&folder.join("hostile").join(name));
        assert_eq!(recording.events.len(), 200_006, "{name}: {:#?}", recording.problems);
        assert_eq!(recording.codes(), ["damaged_container"], "{name}");
    }
}

#[test]
fn what_damage_hides_was_not_dropped() {
    for form in [Form::V4, Form::V6] {
        let bytes = long(form, 6).end();
        let mut damaged = 0;
        for at in 1000..4000 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0xFF;
            let recording = Recording::mapped(&flipped);
            let codes = recording.codes();
            // A changed number that leaves everything readable is a gap like any other; one that does not is not.
            if codes.iter().any(|code| code.starts_with("damaged")) {
                damaged += 1;
                let dropped = recording.end.dropped_events;
                assert!(dropped <= 1200, "{form:?}, flipped at {at}: {dropped} dropped, {codes:?}");
            }
        }
        assert!(damaged > 100, "{damaged}");
    }
}

#[test]
fn a_second_recording_behind_the_first_is_told() {
    let (v4, v6) = (long(Form::V4, 2).end(), long(Form::V6, 2).end());
    for (first, second) in [(&v4, &v6), (&v6, &v4), (&v4, &v4), (&v6, &v6)] {
        let alone = Recording::mapped(first).events.len();
        let both = [first.as_slice(), second].concat();
        for recording in [Recording::mapped(&both), Recording::piped(&both)] {
            assert_eq!((recording.events.len(), recording.codes()), (alone, vec!["second_recording"]));
            let reported = &recording.problems[0];
            assert_eq!((reported.offset, reported.severity), (first.len() as u64, Severity::DataLoss));
        }
        // A first one without its end takes nothing of the second for its own.
        let cut = [&first[..first.len() - 3000], second].concat();
        let recording = Recording::mapped(&cut);
        assert!(recording.codes().contains(&"second_recording"), "{:?}", recording.codes());
        assert!(recording.events.len() < alone && !recording.end.complete);
    }
}

#[test]
fn names_without_end_are_bounded() {
    let mut writer = Writer::new(Form::V6);
    writer.metadata(&KINDS);
    let mut rows = Vec::new();
    for n in 0..1500u32 {
        let name = format!("{n:060000}");
        let mut row = Vec::new();
        crate::support::writer::varuint(&mut row, u64::from(n));
        row.push(1);
        crate::support::writer::varuint(&mut row, name.len() as u64);
        row.extend(name.bytes());
        rows.extend((row.len() as u16).to_le_bytes());
        rows.extend(row);
        if rows.len() > 8 << 20 {
            writer.block("", 6, &std::mem::take(&mut rows));
        }
    }
    writer.block("", 6, &rows);
    let recording = Recording::mapped(&writer.end());
    let kept: usize = recording.threads.iter().filter_map(|t| t.name.as_ref()).map(String::len).sum();
    assert!((20 << 20..=24 << 20).contains(&kept), "{kept} bytes of names");
    assert_eq!(recording.codes(), ["too_much_text"]);
}

const HOLE: usize = 64 << 10;

/// Reads each large real recording with a hole at `positions` places: what is lost lies in the hole or in the block in
/// which it ends, and that is no more than 5 % of the events, but where the events lie closer than elsewhere.
fn worst_holes(test: &str, smallest: usize, positions: usize) {
    let Some(folder) = shared_traces(test) else { return };
    let traces: Vec<_> = [folder.clone(), folder.join("net10")].iter().flat_map(|folder| traces_in(folder)).collect();
    let mut measured = 0;
    for trace in traces {
        let mut bytes = Vec::new();
        let packed = std::fs::read(&trace.path).expect("a recording");
        match packed.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) {
            true => std::io::copy(&mut zstd_reader(&packed), &mut bytes).map(drop).expect("whole"),
            false => bytes = packed,
        }
        if bytes.len() < smallest {
            continue;
        }
        measured += 1;
        let whole = Recording::mapped(&bytes);
        let mut worst = (1.0f64, 0);
        for nth in 0..positions {
            let at = 1024 + (bytes.len() - HOLE - 1024) / positions * nth;
            let recording = Recording::mapped(&with_hole(&bytes, at, HOLE, |_| 0));
            let left = recording.events.len() as f64 / whole.events.len() as f64;
            let seen: HashSet<u64> = recording.events.iter().map(|e| e.offset).collect();
            // Blocks and events of the runtime have 100 KB at most.
            let near = (at as u64).saturating_sub(110 << 10)..(at + HOLE + (110 << 10)) as u64;
            let lost: Vec<u64> = whole.events.iter().map(|e| e.offset).filter(|o| !seen.contains(o)).collect();
            let far = lost.iter().filter(|offset| !near.contains(offset)).count();
            assert_eq!(far, 0, "{}: a hole at {at} costs events elsewhere", trace.name);
            let there: HashSet<u64> = whole.events.iter().map(|e| e.offset).collect();
            let made_up = recording.events.iter().filter(|e| !there.contains(&e.offset)).count();
            assert!(made_up <= 1, "{}: {made_up} events are made up, hole at {at}", trace.name);
            // At the beginning small events lie close together. The rest of the block in which the hole ends is lost
            // with it: the headers of its events say what is different from the event before.
            let promised = if nth == 0 { 0.85 } else { 0.95 };
            assert!(left >= promised || bytes.len() < 12 << 20, "{}: hole at {at} leaves {left}", trace.name);
            if left < worst.0 {
                worst = (left, at);
            }
        }
        println!("{}: {} bytes, worst hole at {} leaves {:.2} %", trace.name, bytes.len(), worst.1, worst.0 * 100.0);
    }
    assert!(measured >= 3, "{measured} recordings");
}

fn zstd_reader(packed: &[u8]) -> impl std::io::Read {
    zstd::stream::read::Decoder::new(std::io::Cursor::new(packed.to_vec())).expect("a decoder")
}

#[test]
fn the_worst_hole_of_64_kb_leaves_most_events() {
    worst_holes("the_worst_hole_of_64_kb_leaves_most_events", 12 << 20, 6);
}

/// What each container promises: a hole costs the blocks that it touches, and no more, wherever it lies.
#[test]
fn a_hole_costs_no_more_than_the_blocks_that_it_touches() {
    const HOLE: usize = 64 << 10;
    for (form, rows) in [(Form::V4, 1_000), (Form::V6, 1_000), (Form::V6, 10_000)] {
        let mut writer = Writer::new(form);
        writer.metadata(&KINDS).threads(&[(1, 77, 1), (2, 77, 2)]);
        let mut sizes = Vec::new();
        let mut starts = Vec::new();
        for block in 0..60_000 / rows {
            let numbers = block * rows..(block + 1) * rows;
            let events: Vec<_> = numbers.map(|n| Row { stack_id: 0, label_list: 0, ..row(n) }).collect();
            let before = writer.bytes.len();
            starts.push(before);
            writer.events(&events);
            sizes.push(writer.bytes.len() - before);
        }
        let bytes = writer.end();
        let whole = Recording::mapped(&bytes).events.len();
        let (mut worst, mut worst_at) = (whole, 0);
        for nth in 0..12 {
            let at = starts[0] + (bytes.len() - HOLE - starts[0]) / 12 * nth;
            let recording = Recording::mapped(&with_hole(&bytes, at, HOLE, |_| 0));
            let touched =
                starts.iter().zip(&sizes).filter(|(start, size)| **start < at + HOLE && at < **start + **size);
            let lost = whole - recording.events.len().min(whole);
            assert!(lost <= touched.count() * rows as usize, "{form:?}, {rows} a block, hole at {at}: {lost} lost");
            if recording.events.len() < worst {
                (worst, worst_at) = (recording.events.len(), at);
            }
        }
        let share = worst as f64 / whole as f64;
        let block = sizes.iter().max().copied().unwrap_or_default();
        println!(
            "{form:?}: {} bytes, blocks of {block}: hole at {worst_at} leaves {:.1} %",
            bytes.len(),
            share * 100.0
        );
        let promised = 1.0 - (HOLE + 2 * block) as f64 / bytes.len() as f64;
        assert!(share >= promised, "{form:?}, {rows} a block: {share}, promised {promised}");
    }
}

/// The same at many more places: minutes. `cargo test -- --ignored many_holes --nocapture` shows the figures.
#[test]
#[ignore = "takes minutes"]
fn many_holes_of_64_kb_leave_most_events() {
    worst_holes("many_holes_of_64_kb_leave_most_events", 4 << 20, 200);
}

#[test]
fn times_beyond_64_bits_are_told() {
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&KINDS);
    let far = |n: u32, ticks| Row { stack_id: 0, ticks, ..row(n) };
    writer.events(&[far(0, 5), far(2, i64::MAX / 2), far(4, i64::MIN / 2)]);
    let recording = Recording::mapped(&writer.end());
    let reported: Vec<_> = recording.problems.iter().map(|p| (p.code, p.count)).collect();
    assert_eq!((recording.events.len(), reported), (3, vec![("time_out_of_range", 2)]));
}

#[test]
fn strict_stops_at_the_first_damage_and_writes_nothing() {
    use tracequet::trace::error::Error as TraceError;
    use tracequet::{Convert, convert};
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = long(Form::V4, 3).end();
    let (whole, damaged) = (folder.path().join("whole.nettrace"), folder.path().join("damaged.nettrace"));
    std::fs::write(&whole, &bytes).expect("room");
    std::fs::write(&damaged, with_hole(&bytes, 5000, 900, |_| 0)).expect("room");
    let out = folder.path().join("out");
    let request = |input: &std::path::Path| Convert::new([input], &out).overwrite(true);
    match convert(&request(&damaged).strict(true), &mut |_| {}) {
        Err(tracequet::Error::Trace(TraceError::Damaged { path, offset, .. })) => {
            assert_eq!(path, damaged);
            assert!((2000..6000).contains(&offset), "{offset}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!out.exists());
    let lenient = convert(&request(&damaged), &mut |_| {}).expect("a dataset");
    assert!(lenient.inputs[0].has_losses());
    let strict = convert(&request(&whole).strict(true), &mut |_| {}).expect("a dataset");
    assert!(!strict.inputs[0].has_losses());
}

/// Packed zeros behind the header of a V1 recording, which is spooled.
#[test]
fn a_small_packed_file_cannot_fill_the_disk() {
    use std::io::Read;
    let mut head = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x01\0\0\0\0\0\0\0\x26\0\0\0".to_vec();
    head.extend(b"Microsoft.DotNet.Runtime.EventPipeFile\x06\0\0\0\0");
    head.extend([0xE1, 7, 9, 0, 1, 0, 18, 0, 1, 0, 1, 0, 1, 0, 0, 0]);
    head.extend(1i64.to_le_bytes());
    head.extend(1_000_000_000i64.to_le_bytes());
    let bomb = std::io::Cursor::new(head).chain(std::io::repeat(0).take(200 << 20));
    let file = tempfile::Builder::new().suffix(".zst").tempfile().expect("a file");
    zstd::stream::copy_encode(bomb, file.as_file(), 1).expect("room");
    let recording = Recording::open(file.path());
    assert!(recording.codes().contains(&"stream_error"), "{:?} {:?}", recording.refused, recording.codes());
    assert!(recording.end.bytes <= 65 << 20, "{} bytes were spooled", recording.end.bytes);
    assert!(recording.events.is_empty() && !recording.end.complete);
}

#[test]
fn recordings_in_one_zip_or_several_members_are_not_passed_over() {
    use std::io::Write;
    let (a, b) = (long(Form::V4, 1).end(), long(Form::V6, 1).end());
    let folder = tempfile::tempdir().expect("a folder");
    let zipped = folder.path().join("both.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&zipped).expect("a file"));
    for (name, bytes) in [("a.nettrace", &a), ("b.nettrace", &b)] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).expect("an entry");
        zip.write_all(bytes).expect("room");
    }
    zip.finish().expect("a directory");
    let gzipped = folder.path().join("both.nettrace.gz");
    let mut file = std::fs::File::create(&gzipped).expect("a file");
    for bytes in [&a, &b] {
        let mut member = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        member.write_all(bytes).expect("room");
        member.finish().expect("a member");
    }
    for path in [zipped, gzipped] {
        let recording = Recording::open(&path);
        assert_eq!((recording.events.len(), recording.codes()), (200, vec!["second_recording"]), "{}", path.display());
    }
}

#[cfg(unix)]
fn tracequet() -> std::process::Command {
    std::process::Command::new(env!("CARGO_BIN_EXE_tracequet"))
}

#[cfg(unix)]
#[test]
fn a_fifo_is_opened_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let bytes = long(Form::V4, 2).end();
    for _ in 0..5 {
        let mut child =
            tracequet().arg("inspect").arg(&fifo).stdout(std::process::Stdio::null()).spawn().expect("it runs");
        // One writer, once: who opens the FIFO again waits for another.
        std::fs::write(&fifo, &bytes).expect("a reader");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break Some(status);
            }
            if std::time::Instant::now() > deadline {
                child.kill().ok();
                child.wait().ok();
                break None;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}
