//! Event logs in packings: .zip with one or several of them, .diagsession, .etlgz.

use std::io::{Read, Write};
use std::path::PathBuf;

use tracequet::trace::reader::Order;
use tracequet::trace::source::Input;

use super::expected::shared;
use super::writer::*;
use crate::support::collect::Recording;

/// An archive of these files.
fn archive(folder: &tempfile::TempDir, name: &str, files: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = folder.path().join(name);
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).expect("room"));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).expect("room");
        zip.write_all(bytes).expect("room");
    }
    zip.finish().expect("room");
    path
}

/// A log whose system and clock say this, with these events in one buffer.
fn log(boot: i64, frequency: i64, start: i64, first: i64, events: &[Vec<u8>]) -> Vec<u8> {
    let mut header = log_file_header();
    patch(&mut header, 0xF8, boot.to_le_bytes());
    patch(&mut header, 0x100, frequency.to_le_bytes());
    patch(&mut header, 0x108, start.to_le_bytes());
    let head = Head { kind: 4, sequence: 0, flags: 0x21, ..Head::default() };
    let first = buffer(&head, &[system(0, 0, 2, first, &header)]);
    [first, buffer(&Head::default(), events)].concat()
}

const BOOT: i64 = START - 600_000_000;

/// Times of the events of a provider since the start, in ticks.
fn times(recording: &Recording) -> Vec<(u8, i64)> {
    let base = recording.info.as_ref().expect("a header").clock.sync_ticks;
    let provider = |seen| recording.info_of(seen).event_type.provider_guid.map_or(0, |g| g.0[0]);
    recording
        .events
        .iter()
        .map(|seen| (provider(seen), seen.ticks - base))
        .filter(|(p, _)| (1..0x10).contains(p))
        .collect()
}

fn from(provider: u8, ticks: i64) -> Vec<u8> {
    event(19, [provider; 16], 1, ticks, &[], b"payload!")
}

#[test]
fn the_logs_of_one_session_are_one_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 10), from(1, TICKS + 30)]);
    // The log of the kernel began earlier; the time of the start of the system is rounded differently.
    let kernel = log(BOOT + 4_000_000, 10_000_000, START - 360, TICKS, &[from(2, TICKS + 5), from(2, TICKS + 20)]);
    for name in ["report.diagsession", "app.etl.zip"] {
        let files = [
            ("metadata.xml", b"<Package/>".to_vec()),
            ("5C3F/sc.user_aux.etl", user.clone()),
            ("symbols/app.pdb/1/app.pdb", vec![0; 1000]),
            ("5C3F/sc.kernel.ETL", kernel.clone()),
        ];
        let recording = Recording::open(&archive(&folder, name, &files));
        assert_eq!((&recording.refused, recording.codes()), (&None, vec![]));
        assert!(recording.end.complete);
        assert_eq!(recording.end.bytes, (user.len() + kernel.len()) as u64);
        // One counter: the ticks are compared as they are.
        assert_eq!(times(&recording), [(2, 5), (1, 10), (2, 20), (1, 30)]);
        let start = recording.info.as_ref().map(|info| info.clock.sync_utc_ns / 100 % 10_000_000);
        assert_eq!(start, Some((START - 360 - 116_444_736_000_000_000) % 10_000_000), "of the log that began first");
        let info = recording.info.as_ref().expect("a header");
        assert!(info.key_values.contains(&("logs".into(), "Test, Test".into())), "{:?}", info.key_values);
        // In the order of the file one log follows the other.
        let input = Input::open(&folder.path().join(name)).expect("an archive");
        let by_file = Recording::read_in(input, Order::File);
        assert_eq!(times(&by_file), [(1, 10), (1, 30), (2, 5), (2, 20)]);
    }
}

#[test]
fn logs_with_clocks_of_their_own_meet_in_utc() {
    let folder = tempfile::tempdir().expect("a folder");
    let ours = log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 100), from(1, TICKS + 1000)]);
    // At another rate, its system started some seconds later as it says: 2 µs later in UTC its counter says 5,000.
    let other = log(BOOT + 90_000_000, 1_000_000, START + 20, 5_000, &[from(2, 5_000 + 30), from(2, 5_000 + 300)]);
    let path = archive(&folder, "two.zip", &[("a.etl", ours), ("b.etl", other)]);
    assert_eq!(times(&Recording::open(&path)), [(1, 100), (2, 320), (1, 1000), (2, 3020)]);
}

#[test]
fn damage_of_one_log_leaves_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = || log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 10), from(1, TICKS + 30)]);
    let read = |second: Vec<u8>| {
        let third = log(BOOT, 10_000_000, START, TICKS, &[from(3, TICKS + 20)]);
        let files = [("a.etl", good()), ("b.etl", second), ("c.etl", third)];
        let recording = Recording::open(&archive(&folder, "some.zip", &files));
        let all: Vec<_> = times(&recording).into_iter().filter(|(p, _)| *p != 2).collect();
        assert_eq!(all, [(1, 10), (3, 20), (1, 30)]);
        (recording.codes(), recording.end.complete)
    };
    let second = log(BOOT, 10_000_000, START, TICKS, &[from(2, TICKS + 15)]);
    assert_eq!(read(second.clone()), (vec![], true));
    assert_eq!(read(Vec::new()), (vec![], true), "an empty file holds nothing");
    assert_eq!(read(b"no log at all".to_vec()), (vec!["unreadable_log"], false));
    let cut = second[..second.len() - 5000].to_vec();
    assert_eq!(read(cut), (vec!["missing_buffers", "truncated"], false));
    let mut stray = second;
    patch(&mut stray, BUFFER_SIZE as usize, 7u32.to_le_bytes());
    assert_eq!(read(stray), (vec!["bad_buffer_size", "missing_buffers"], false));
}

#[test]
fn an_archive_that_is_damaged_gives_the_logs_that_can_be_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = |provider| {
        let payload: Vec<u8> = (0..3000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        log(
            BOOT,
            10_000_000,
            START,
            TICKS,
            &[from(provider, TICKS + 10), event(19, [9; 16], 1, TICKS + 11, &[], &payload)],
        )
    };
    let path = archive(&folder, "some.zip", &[("a.etl", log(1)), ("b.etl", log(2)), ("c.etl", log(3))]);
    let bytes = std::fs::read(&path).expect("a file");
    let second = bytes.windows(5).position(|w| w == b"b.etl").expect("the name of the second");
    for at in [second + 200, second + 2000] {
        let mut damaged = bytes.clone();
        damaged[at..at + 40].fill(0xA5);
        std::fs::write(&path, damaged).expect("room");
        let recording = Recording::open(&path);
        assert!(recording.codes().contains(&"stream_error"), "{:?}", recording.codes());
        assert!(times(&recording).contains(&(1, 10)) && times(&recording).contains(&(3, 10)));
        assert!(!recording.end.complete);
    }
}

#[test]
fn an_archive_that_expands_beyond_reason_is_cut_off() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bomb.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).expect("room"));
    let good = log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 10)]);
    let nothing = vec![0u8; 1 << 20];
    for (name, count) in [("a.etl", 0), ("b.etl", 1100)] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).expect("room");
        zip.write_all(&good).expect("room");
        (0..count).for_each(|_| zip.write_all(&nothing).expect("room"));
    }
    zip.finish().expect("room");
    assert!(std::fs::metadata(&path).expect("a file").len() < 4 << 20);
    let recording = Recording::open(&path);
    assert!(recording.codes().contains(&"stream_error"), "{:?}", recording.codes());
    assert!(recording.end.bytes < 1 << 20, "zeros are no buffers");
    assert_eq!(times(&recording), [(1, 10), (1, 10)]);
}

#[test]
fn many_logs_in_one_archive_have_a_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = (0..70).map(|n| format!("{n}.etl")).collect();
    let one = log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 10)]);
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), one.clone())).collect();
    let recording = Recording::open(&archive(&folder, "many.zip", &files));
    assert_eq!(times(&recording).len(), 64);
    assert_eq!(recording.codes(), ["stream_error"]);
}

#[test]
fn logs_of_several_systems_are_refused() {
    // Ids of processes would be mixed up.
    let files = shared("logs_of_several_systems_are_refused");
    let folder = tempfile::tempdir().expect("a folder");
    let one = log(BOOT, 10_000_000, START, TICKS, &[from(1, TICKS + 10)]);
    let other = log(BOOT + 9_000_000_000, 10_000_000, START, TICKS, &[from(1, TICKS + 10)]);
    let mut archives = vec![archive(&folder, "made.zip", &[("a.etl", one), ("b.etl", other)])];
    let real = ["gcevents.etl", "diaghub.kernel.etl"].map(|name| files.iter().find(|f| f.name == name));
    if let [Some(a), Some(b)] = real {
        let bytes = [a, b].map(|f| std::fs::read(&f.path).expect("a readable file"));
        let [a, b] = bytes;
        archives.push(archive(&folder, "real.zip", &[("a.etl", a), ("b.etl", b)]));
    }
    for path in archives {
        let refused = Recording::open(&path).refused.expect("a refusal");
        assert!(refused.contains("another system") && refused.contains("one by one"), "{refused}");
    }
}

/// A real log, taken apart by processors into three, is itself again when they are read together.
#[test]
fn a_real_log_taken_apart_is_put_together() {
    for file in shared("a_real_log_taken_apart_is_put_together") {
        let bytes = std::fs::read(&file.path).expect("a readable file");
        let number = |at: usize, width: usize| {
            let bytes = &bytes[at..at + width];
            bytes.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let header = number(0, 4);
        let mut parts = [0; 3].map(|_| bytes[..header].to_vec());
        let mut at = header;
        while at < bytes.len() {
            let processor = number(at + 0x28, 2) & if number(at + 0x34, 2) & 0x20 == 0 { 0xFF } else { 0x7FF };
            let end = (at + number(at, 4)).min(bytes.len());
            parts[processor % 3].extend(&bytes[at..end]);
            at = end;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [a, b, c] = parts;
        let path = archive(&folder, "parts.zip", &[("a.etl", a), ("b.etl", b), ("c.etl", c)]);
        let (whole, parts) = (Recording::open(&file.path), Recording::open(&path));
        // The events of the header buffer stand three times.
        let key = |seen: &crate::support::collect::Seen| (seen.ticks, seen.processor, seen.payload.clone());
        let mut ours: Vec<_> = parts.events.iter().map(key).collect();
        let mut theirs: Vec<_> = whole.events.iter().map(key).collect();
        assert!(ours.is_sorted_by_key(|(ticks, ..)| *ticks) == theirs.is_sorted_by_key(|(ticks, ..)| *ticks));
        ours.sort_unstable();
        theirs.sort_unstable();
        ours.dedup();
        theirs.dedup();
        assert!(ours == theirs, "{}: {} of {}", file.name, ours.len(), theirs.len());
    }
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
