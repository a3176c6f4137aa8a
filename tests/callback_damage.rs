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
    facts.surviving.iter().map(|(_, r)| (r.start, r.length)).collect()
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
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 8);
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
fn what_is_no_recording_is_refused_with_the_place() {
    for (bytes, what) in [(&b""[..], "magic"), (b".corprof", "version"), (b".corproX\x01\0\0\0", "magic")] {
        let error = facts(bytes).err().expect("an error").to_string();
        assert!(error.contains(what), "{error}");
    }
    let mut newer = sample();
    newer[8] = 2;
    assert!(facts(&newer).err().expect("an error").to_string().contains("at byte 8"));
}
