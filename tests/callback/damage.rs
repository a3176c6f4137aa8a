//! Damaged recordings of callbacks: what is left is read, what is lost is reported, and nothing panics.

use tracequet::trace::reader::callback::Writer;
use tracequet::trace::reader::callback::encode;
use tracequet::trace::reader::callback::format::{FLAG_CUT, Header, kind};

use crate::support::callbacks::{Facts, Making, facts, header};

/// A recording with something of everything.
pub fn sample() -> Vec<u8> {
    let mut m = Making::new();
    for turn in 0..6u64 {
        let at = 0x1000 + turn * 0x100;
        m.suspend(1).started(2, &[[0, at, 0x80], [3, 0x9000, 0x100]]);
        m.surviving(1, 2, &[[at, 24], [at + 0x20, 0x30]]).surviving(1, 1, &[[at, 24], [at + 0x20, 0x30]]);
        m.moved(0, 2, &[[0x9000, 0x8000, 24]]).roots2(&[[at, 1, 0, 0x55]]);
        m.numbers(kind::FINALIZEABLE, &[0, at]).finished(&[[0, at, 0x40]]).resume();
        m.record(0, kind::THREAD_NAME, 0, |out| encode::named(out, &[7], "worker"));
    }
    m.bytes()
}

fn ranges(facts: &Facts) -> Vec<(u64, u64)> {
    facts.surviving.iter().map(|r| (r.range_start, r.range_length)).collect()
}

#[test]
fn a_whole_recording_has_no_problems() {
    let facts = facts(&sample()).unwrap();
    assert_eq!(facts.codes(), ["paired_callbacks"]);
    assert_eq!((facts.collections.len(), facts.surviving.len(), facts.moved.len()), (6, 12, 6));
}

#[test]
fn a_recording_cut_at_every_byte_gives_what_is_left() {
    let whole = sample();
    let all = facts(&whole).unwrap();
    let (mut readable, mut most) = (0, 0);
    for cut in 0..whole.len() {
        let Ok(part) = facts(&whole[..cut]) else {
            assert!(cut < 200, "the header is there at {cut}");
            continue;
        };
        readable += 1;
        most = most.max(part.records);
        assert!(part.records <= all.records);
        if part.records < all.records {
            assert!(!part.problems.is_empty(), "nothing is said of the cut at {cut}");
            assert!(!part.end.complete || part.end.dropped_events > 0, "cut at {cut}");
        }
        let known = ranges(&all);
        assert!(ranges(&part).iter().all(|range| known.contains(range)), "invented ranges at {cut}");
    }
    assert!(readable > whole.len() - 200 && most >= all.records - 1);
}

#[test]
fn a_flipped_bit_is_noticed_and_costs_little() {
    let whole = sample();
    let all = facts(&whole).unwrap();
    let known = ranges(&all);
    for (byte, bit) in (0..whole.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << bit;
        let Ok(part) = facts(&damaged) else {
            assert!(byte < 104 + 200, "the header is not at {byte}");
            continue;
        };
        let same = part.records == all.records && ranges(&part) == known && part.end.complete;
        let stated = part.problems.iter().any(|p| p.code != "paired_callbacks");
        assert!(same || stated, "byte {byte}: {} of {} records, and nothing said", part.records, all.records);
        assert!(ranges(&part).iter().all(|range| known.contains(range)), "invented ranges at {byte}");
    }
}

#[test]
fn counts_beyond_the_bytes_left_are_refused_without_allocating() {
    let mut m = Making::new();
    for kind in [kind::SURVIVING2, kind::MOVED2, kind::ROOTS2, kind::WEAK, kind::ROOTS, kind::BY_CLASS] {
        m.record(0, kind, 0, |out| {
            encode::varint(out, u64::MAX >> 1);
            out.extend([0; 40]);
        });
    }
    m.record(0, kind::THREAD_NAME, 0, |out| encode::numbers(out, &[1, 1 << 40]));
    let facts = m.started(0, &[]).finished(&[]).facts();
    assert_eq!(facts.codes(), ["bad_record"]);
    assert_eq!((facts.problems.len(), facts.collections.len()), (7, 1));
}

#[test]
fn times_beyond_64_bits_are_told() {
    let made = |header: &Header, ticks: &[u64]| {
        let mut writer = Writer::new(Vec::new(), header).unwrap();
        let thread = writer.thread(100);
        for at in ticks {
            writer.record(thread, kind::CLOCK, 0, *at, &[0; 8]).unwrap();
        }
        writer.finish(*ticks.last().unwrap()).unwrap()
    };
    let stated = |bytes: &[u8]| {
        let problems = facts(bytes).unwrap().problems;
        let found = problems.iter().find(|problem| problem.code == "time_out_of_range");
        found.map(|problem| problem.count)
    };
    let usual = header();
    assert_eq!(stated(&made(&usual, &[2_000, 3_000])), None);
    assert_eq!(stated(&made(&usual, &[2_000, u64::MAX, 1 << 63, 3_000])), Some(2));
    // Three of them: nanoseconds since 1970 do not fit, either.
    let slow = Header { frequency: 1, ..header() };
    assert_eq!(stated(&made(&slow, &[2_000, 1 << 40, 1 << 62, 1 << 62])), Some(4));
    let late = Header { start_ticks: u64::MAX, ..header() };
    assert_eq!(stated(&made(&late, &[u64::MAX])), Some(2));
}

#[test]
fn unknown_kinds_and_longer_payloads_are_skipped() {
    let mut m = Making::new();
    m.record(0, 200, 0, |out| out.extend([1, 2, 3])).started(0, &[]);
    m.record(0, kind::SURVIVING2, 0, |out| {
        encode::surviving(out, [[0x1000, 24]].into_iter());
        out.extend(b"of a later version");
    });
    let facts = m.finished(&[]).facts();
    assert_eq!(ranges(&facts), [(0x1000, 24)]);
    assert_eq!(facts.codes(), ["unknown_record"]);
}

#[test]
fn records_with_missing_rows_and_lost_records_are_losses() {
    let mut m = Making::new();
    m.record(0, kind::BY_CLASS, FLAG_CUT, |out| encode::columns(out, [[1, 2]].into_iter()));
    let facts = m.numbers(kind::LOST, &[7]).facts();
    assert_eq!(facts.codes(), ["cut_record", "lost_records"]);
}

#[test]
fn a_record_longer_than_its_chunk_has_a_code_of_its_own() {
    let whole = sample();
    // The highest byte of some record's length is among these.
    let found = (0..whole.len()).filter(|at| {
        let mut longer = whole.clone();
        longer[*at] = 0xFF;
        facts(&longer).is_ok_and(|facts| facts.codes().contains(&"overlong_record"))
    });
    assert!(found.count() > 0);
}

#[test]
fn what_is_no_recording_is_refused_with_the_place() {
    for (bytes, what) in [(&b""[..], "magic"), (b".corprof", "version"), (b".corproX\x01\0\0\0", "magic")] {
        let error = facts(bytes).err().expect("an error").to_string();
        assert!(error.contains(what), "{error}");
    }
    let mut newer = sample();
    newer[8] = 2;
    assert!(facts(&newer).err().expect("an error").to_string().contains("at byte 8"));
}

/// Where in the header a field lies that cannot be right is said to the byte.
#[test]
fn errors_of_the_header_name_the_byte_of_the_field() {
    let whole = sample();
    let wrong: [(usize, &[u8], &str); 7] = [
        (0, b"X", "magic"),
        (8, &[9, 0], "version"),
        (12, &[10, 0, 0, 0], "header length"),
        (20, &[3, 0, 0, 0], "chunk alignment"),
        (24, &[5], "pointer size"),
        (48, &[0; 8], "clock frequency"),
        (104, &[0xFF; 4], "text"),
    ];
    for (at, bytes, field) in wrong {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        let error = facts(&damaged).err().expect("an error").to_string();
        // A text that is too long has no bytes: the error is where they begin.
        let at = if field == "text" { at + 4 } else { at };
        assert!(error.contains(&format!("at byte {at}")) && error.contains(field), "{field}: {error}");
    }
}

/// A recording of some megabytes as the recorder lays it out: chunks of up to 64 KiB at multiples of 4096.
fn long(records: u64) -> Vec<u8> {
    let header = Header { chunk_align: 4096, ..header() };
    let mut writer = Writer::new(Vec::new(), &header).unwrap().chunk_bytes(60 << 10);
    let threads = [100, 101, 102].map(|id| writer.thread(id));
    let mut payload = Vec::new();
    for n in 0..records {
        payload.clear();
        encode::numbers(&mut payload, &[n, n.wrapping_mul(0x9E37_79B9_7F4A_7C15)]);
        let thread = threads[(n / 7 % 3) as usize];
        writer.record(thread, kind::HANDLE_CREATED, 0, 1_000 + n, &payload).unwrap();
    }
    writer.finish(records + 2_000).unwrap()
}

#[test]
fn a_hole_of_64_kib_anywhere_costs_little_more_than_itself() {
    let whole = long(80_000);
    let all = facts(&whole).unwrap();
    assert!(all.problems.is_empty() && whole.len() > 3 << 20, "{} bytes, {:?}", whole.len(), all.problems);
    const HOLE: usize = 64 << 10;
    let mut worst = u64::MAX;
    for start in (4096..whole.len() - HOLE).step_by(37_003) {
        for noise in [false, true] {
            let mut damaged = whole.clone();
            for (n, byte) in damaged[start..start + HOLE].iter_mut().enumerate() {
                *byte = if noise { (n as u32).wrapping_mul(2_654_435_761).rotate_left(9) as u8 | 1 } else { 0 };
            }
            let part = facts(&damaged).unwrap();
            assert!(part.codes().contains(&"missing_records"), "{start}: {:?}", part.codes());
            worst = worst.min(part.records);
        }
    }
    println!("{worst} of {} records in the worst case", all.records);
    assert!(worst * 100 >= all.records * 97, "{worst} of {} records", all.records);
}

/// The header of a chunk is 40 bytes; its records have CRCs of their own.
#[test]
fn a_damaged_chunk_header_costs_no_record() {
    let whole = long(20_000);
    let all = facts(&whole).unwrap();
    let chunks: Vec<usize> = (4096..whole.len()).step_by(4096).filter(|at| whole[*at..].starts_with(b"CHNK")).collect();
    assert!(chunks.len() > 10);
    for at in chunks {
        let mut damaged = whole.clone();
        damaged[at + 4] ^= 0x40;
        let part = facts(&damaged).unwrap();
        assert_eq!((part.records, part.end.complete), (all.records, true), "chunk at {at}");
        assert_eq!(part.codes(), ["damaged_chunk"], "chunk at {at}");
    }
}

/// A profiler that writes when a callback returns: what was called within it is written first.
#[test]
fn records_of_a_thread_are_sorted_by_their_entry() {
    let mut records: Vec<u64> = (1..=400).collect();
    // Outer callbacks with 63 others within them; and some that are only swapped.
    records[10..74].rotate_left(1);
    records[100..164].rotate_left(1);
    (200..300).step_by(2).for_each(|at| records.swap(at, at + 1));
    let bytes = numbered(&records);
    let facts = facts(&bytes).unwrap();
    assert!(facts.problems.is_empty(), "{:?}", facts.problems);
    assert!(facts.handles.iter().map(|handle| handle.1).eq(1..=400));
    // Farther than that: read where it stands, and said.
    records.rotate_left(1);
    let facts = crate::support::callbacks::facts(&numbered(&records)).unwrap();
    assert_eq!((facts.codes(), facts.handles.len()), (vec!["disordered_record", "missing_records"], 400));
}

/// A recording of one thread whose records have these sequence numbers, and an end.
fn numbered(sequences: &[u64]) -> Vec<u8> {
    use tracequet::trace::reader::callback::format::{CHUNK_HEADER, chunk_header, commit_word, record_header};

    let mut out = header().encode();
    out.resize(out.len().next_multiple_of(8), 0);
    let mut records = Vec::new();
    for sequence in sequences {
        let mut payload = Vec::new();
        encode::numbers(&mut payload, &[*sequence, 1]);
        records.extend(record_header(kind::HANDLE_CREATED, 0, *sequence, 1_000 + sequence, 0, &payload));
        records.extend(payload);
    }
    let last = sequences.iter().max().copied().unwrap_or(0) + 1;
    records.extend(record_header(kind::END, 0, last, 9_000, 0, &[]));
    let capacity = (CHUNK_HEADER + records.len()).next_multiple_of(8);
    let mut head = chunk_header(capacity as u32, 100, 0, 0);
    head[24..32].copy_from_slice(&commit_word(records.len() as u32).to_le_bytes());
    let end = out.len() + capacity;
    out.extend(head);
    out.extend(records);
    out.resize(end, 0);
    out
}

#[test]
fn what_the_recorder_has_to_say_is_a_diagnostic() {
    let mut m = Making::new();
    m.record(0, kind::NOTE, 0, |out| encode::named(out, &[1], "TRACEQUET_RANGES=v9 is not understood"));
    m.record(0, kind::NOTE, 0, |out| encode::named(out, &[2], "the recorder failed and stopped"));
    let facts = m.facts();
    assert_eq!(facts.codes(), ["recorder_failed", "recorder_setting"]);
    assert_eq!(facts.problems[0].message, "TRACEQUET_RANGES=v9 is not understood");
    assert!(facts.problems[1].severity > facts.problems[0].severity, "a setting is no loss");
}

/// Threads read in many places of the file, from beginning to end: pages that are done are given back.
#[test]
fn a_large_recording_takes_little_memory() {
    use crate::hostile::limits::{is_alone, peak_mb};

    if !is_alone("callback::damage::a_large_recording_takes_little_memory") {
        return;
    }
    let mut file = std::io::BufWriter::new(tempfile::NamedTempFile::new().unwrap());
    let header = Header { chunk_align: 4096, ..header() };
    let mut writer = Writer::new(&mut file, &header).unwrap();
    let threads = [100, 101].map(|id| writer.thread(id));
    let rows: Vec<[u64; 2]> = (0..4_000).map(|n| [(n * 0x9E37_79B9) % (1 << 40), n]).collect();
    let mut payload = Vec::new();
    encode::columns(&mut payload, rows.iter().copied());
    // The second thread has a record at either end only, as a thread that waits.
    writer.record(threads[1], kind::BY_CLASS, 0, 1_000, &payload).unwrap();
    let mut bytes = 0;
    for n in 0.. {
        writer.record(threads[0], kind::BY_CLASS, 0, 1_001 + n, &payload).unwrap();
        bytes += payload.len();
        if bytes > 200 << 20 {
            break;
        }
    }
    writer.record(threads[1], kind::BY_CLASS, 0, 9_000_000, &payload).unwrap();
    writer.finish(9_000_001).unwrap();
    std::io::Write::flush(&mut file).unwrap();
    let path = file.get_ref().path().to_owned();

    struct Count(u64);
    impl tracequet::trace::reader::callback::Visitor for Count {
        fn record(&mut self, _: &tracequet::trace::reader::callback::Record<'_>) -> std::ops::ControlFlow<()> {
            self.0 += 1;
            std::ops::ControlFlow::Continue(())
        }
        fn problem(&mut self, problem: tracequet::trace::error::Problem) {
            panic!("{problem:?}");
        }
    }
    let mut count = Count(0);
    tracequet::trace::reader::callback::read(tracequet::trace::source::Input::open(&path).unwrap(), &mut count)
        .unwrap();
    println!("{} records, {:?} MB", count.0, peak_mb());
    assert!(count.0 > 5_000);
    assert!(peak_mb().is_none_or(|peak| peak < 60), "{:?} MB", peak_mb());
}

/// What can be wrong with a recording: its name, its bytes, and the diagnostics that report it.
fn damaged() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let whole = sample();
    let mut flipped = whole.clone();
    let at = whole.len() / 2;
    flipped[at] ^= 0x10;
    let mut counts = Making::new();
    counts.started(0, &[]).record(0, kind::SURVIVING2, 0, |out| encode::varint(out, u64::MAX >> 1));
    let ranges = [[0x1000, 24], [0x1010, 24], [0x1040, 0]];
    let mut unpaired = Making::new();
    unpaired.started(0, &[]).surviving(0, 2, &[[0x1000, 24]]).surviving(0, 1, &[[0x1000, 32]]);
    vec![
        ("a cut end", whole[..whole.len() - 40].to_vec(), &["cut_recording"]),
        ("a flipped bit", flipped, &[]),
        ("a count beyond the bytes left", counts.finished(&[]).bytes(), &["bad_record"]),
        (
            "bounds and ranges that overlap",
            Making::new()
                .started(0, &[[0, 0x1000, 0x100], [1, 0x1080, 0x80]])
                .surviving(0, 2, &ranges)
                .finished(&[])
                .bytes(),
            &["overlapping_bounds", "overlapping_ranges", "empty_range"],
        ),
        ("a first version that contradicts its second", unpaired.finished(&[]).bytes(), &["v1_contradicts_v2"]),
        ("an end without a start", Making::new().finished(&[]).bytes(), &["finished_without_started"]),
        (
            "a start without an end",
            Making::new().started(0, &[]).started(0, &[]).finished(&[]).bytes(),
            &["open_collection"],
        ),
        (
            "unaligned ranges",
            Making::new().started(0, &[]).surviving(0, 2, &[[0x1001, 24]]).finished(&[]).bytes(),
            &["unaligned_range"],
        ),
        ("lost records", Making::new().numbers(kind::LOST, &[7]).bytes(), &["lost_records"]),
    ]
}

#[test]
fn damage_gives_what_could_be_read_a_diagnostic_and_exit_code_2() {
    use std::process::Command;

    use crate::support::dataset::Table;

    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("damaged.corprof");
    for (name, bytes, codes) in damaged() {
        std::fs::write(&recording, &bytes).unwrap();
        let output = folder.path().join("out");
        let program = || Command::new(env!("CARGO_BIN_EXE_tracequet"));
        let convert = program().args(["convert", "--quiet", "--overwrite", "-o"]).arg(&output).arg(&recording).output();
        let convert = convert.unwrap();
        let said = String::from_utf8_lossy(&convert.stderr).into_owned();
        assert_eq!(convert.status.code(), Some(2), "{name}: {said}");
        let diagnostics = Table::open(&output.join("diagnostic.parquet"));
        let (stated, severities) = (diagnostics.texts("code"), diagnostics.texts("severity"));
        assert!(severities.iter().any(|severity| severity != "info"), "{name}: {stated:?}");
        assert!(codes.iter().all(|code| stated.iter().any(|t| t == code)), "{name}: {stated:?}");
        let kept = Table::open(&output.join("gc.parquet")).rows();
        assert!(kept > 0 || codes.contains(&"lost_records"), "{name}");
        let inspect = program().arg("inspect").arg(&recording).output().unwrap();
        assert_eq!(inspect.status.code(), Some(2), "{name}: inspect");
    }
    // And a whole one ends with 0, also where a collection was running when the recording was stopped.
    for (name, bytes) in [("whole", sample()), ("running", Making::new().started(0, &[]).bytes())] {
        std::fs::write(&recording, bytes).unwrap();
        let convert = || Command::new(env!("CARGO_BIN_EXE_tracequet"));
        let output = folder.path().join(name);
        let status = convert().args(["convert", "-q", "-o"]).arg(output).arg(&recording).output().unwrap().status;
        assert_eq!(status.code(), Some(0), "{name}");
        let status = convert().arg("inspect").arg(&recording).output().unwrap().status;
        assert_eq!(status.code(), Some(0), "{name}: inspect");
    }
}

/// The tables of a recording that is cut anywhere are whole, and say so.
#[test]
fn a_recording_cut_anywhere_is_converted_with_losses() {
    use tracequet::{Convert, convert};

    let whole = sample();
    let folder = tempfile::tempdir().unwrap();
    let (recording, output) = (folder.path().join("cut.corprof"), folder.path().join("out"));
    for cut in (256..whole.len()).step_by(whole.len() / 40) {
        std::fs::write(&recording, &whole[..cut]).unwrap();
        let request = Convert::new([recording.clone()], output.clone()).overwrite(true);
        let summary = convert(&request, &mut |_| {}).unwrap();
        assert!(summary.inputs[0].has_losses(), "cut at {cut} of {}", whole.len());
    }
}

/// A packed recording whose packing is cut gives what came.
#[test]
fn a_packed_recording_that_is_cut_gives_what_came() {
    let whole = long(20_000);
    let packed = zstd::encode_all(whole.as_slice(), 1).unwrap();
    let cut = packed[..packed.len() / 2].to_vec();
    let input = tracequet::trace::source::Input::from_reader("-".as_ref(), Box::new(std::io::Cursor::new(cut)), None);
    let (all, part) = (facts(&whole).unwrap(), crate::support::callbacks::facts_of(input.unwrap()).unwrap());
    assert!(part.codes().contains(&"stream_error"), "{:?}", part.codes());
    assert!(part.records * 10 > all.records && part.records < all.records, "{} of {}", part.records, all.records);
}
