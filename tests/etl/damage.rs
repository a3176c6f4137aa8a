//! Real and made files, cut and damaged anywhere.

use super::expected::shared;
use super::hostile::*;
use super::sample;
use super::writer::*;
use crate::support::collect::Recording;

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
        let mut read = 0;
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
            read += recording.events.len();
        }
        assert!(read > 0, "{}: nothing is left of any damaged copy", file.name);
    }
}

/// What is read of damaged bytes: nothing panics, neither reading nor decoding.
fn look(bytes: &[u8]) -> usize {
    let recording = Recording::piped(bytes);
    for seen in &recording.events {
        recording.with_event(seen, |event| drop(event.fields()));
    }
    recording.events.len()
}

#[test]
fn every_byte_of_a_recording_of_everything_can_be_damaged() {
    let whole = sample::recording(3);
    let all = look(&whole);
    for at in 0..whole.len() {
        for with in [1, 0x80, 0xFF] {
            let mut damaged = whole.clone();
            damaged[at] ^= with;
            look(&damaged);
        }
        let mut damaged = whole.clone();
        damaged[at] = 0;
        look(&damaged);
    }
    assert!((0..whole.len()).all(|end| look(&whole[..end]) <= all), "a part holds no more than the whole");
}
