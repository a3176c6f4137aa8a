//! Damaged recordings of callbacks: what is left is read, what is not is told, and nothing panics.

use tracequet::reader::callback::encode;
use tracequet::reader::callback::format::{FLAG_CUT, kind};

use crate::support::callbacks::{Facts, Making, facts};

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
        let told = part.problems.iter().any(|p| p.code != "paired_callbacks");
        assert!(same || told, "byte {byte}: {} of {} records, and nothing said", part.records, all.records);
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

/// What can be wrong with a recording: its name, its bytes, and the diagnostics that tell of it.
#[cfg(feature = "cli")]
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
        ("a start without an end", Making::new().started(0, &[]).bytes(), &["open_collection"]),
        (
            "unaligned ranges",
            Making::new().started(0, &[]).surviving(0, 2, &[[0x1001, 24]]).finished(&[]).bytes(),
            &["unaligned_range"],
        ),
        ("lost records", Making::new().numbers(kind::LOST, &[7]).bytes(), &["lost_records"]),
    ]
}

#[cfg(feature = "cli")]
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
        let (told, severities) = (diagnostics.texts("code"), diagnostics.texts("severity"));
        assert!(severities.iter().any(|severity| severity != "info"), "{name}: {told:?}");
        assert!(codes.iter().all(|code| told.iter().any(|t| t == code)), "{name}: {told:?}");
        let kept = Table::open(&output.join("gc.parquet")).rows();
        assert!(kept > 0 || codes.contains(&"lost_records"), "{name}");
        let inspect = program().arg("inspect").arg(&recording).output().unwrap();
        assert_eq!(inspect.status.code(), Some(2), "{name}: inspect");
    }
    // And a whole one ends with 0.
    std::fs::write(&recording, sample()).unwrap();
    let output = folder.path().join("whole");
    let mut whole = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    assert_eq!(
        whole.args(["convert", "-q", "-o"]).arg(output).arg(&recording).output().unwrap().status.code(),
        Some(0)
    );
}

/// The tables of a recording that is cut anywhere are whole, and say so.
#[cfg(feature = "tables")]
#[test]
fn a_recording_cut_anywhere_is_converted_with_losses() {
    use tracequet::pipeline::{Convert, convert};

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
