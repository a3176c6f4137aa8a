//! Reading goes on at the next buffer behind damage to the chain of buffers.

use super::expected::shared_file;
use super::hostile::plain;
use super::writer::*;
use crate::support::collect::Recording;
use crate::support::patience::ends;

const SIZE: usize = BUFFER_SIZE as usize;

/// A log of `count` buffers of one event each.
fn log(buffers: i64) -> Vec<u8> {
    let mut header = log_file_header();
    patch(&mut header, 0x24, (buffers as u32 + 1).to_le_bytes());
    (1..=buffers).fold(Writer::with_header(&header), |log, n| log.events(n, &[plain(n)])).bytes
}

/// Bytes that were passed over, by the rows about them.
fn gaps(recording: &Recording) -> Vec<(u64, u64)> {
    let gaps = recording.problems.iter().filter(|p| p.code == "bad_buffer_size");
    gaps.map(|p| (p.offset, p.count)).collect()
}

fn times(recording: &Recording) -> Vec<i64> {
    recording.events[1..].iter().map(|event| event.ticks - TICKS).collect()
}

#[test]
fn a_hole_of_zeros_costs_the_buffers_in_it() {
    let whole = log(20);
    let mut damaged = whole.clone();
    // From the middle of buffer 4 to that of buffer 8: what buffer 4 holds stands before the hole.
    damaged[4 * SIZE + 2000..8 * SIZE + 2000].fill(0);
    let recording = Recording::mapped(&damaged);
    assert_eq!(times(&recording), (1..=4).chain(9..=20).collect::<Vec<_>>());
    assert_eq!(gaps(&recording), [(5 * SIZE as u64, 4 * SIZE as u64)]);
    assert_eq!(recording.codes(), ["bad_buffer_size", "missing_buffers", "sequence_gap"]);
    assert!(!recording.end.complete && recording.end.bytes == whole.len() as u64);
}

#[test]
fn other_bytes_and_missing_bytes_are_passed_over_too() {
    let whole = log(9);
    let mut noise = whole.clone();
    let mut seed = 7u32;
    for byte in &mut noise[3 * SIZE..5 * SIZE] {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (seed >> 24) as u8;
    }
    assert_eq!(times(&Recording::mapped(&noise)), [1, 2, 5, 6, 7, 8, 9]);
    // A piece is missing, so that buffers lie at other places than their size says.
    let torn = [&whole[..4 * SIZE + 100], &whole[6 * SIZE + 300..]].concat();
    let recording = Recording::mapped(&torn);
    assert_eq!(times(&recording), [1, 2, 3, 4, 7, 8, 9]);
    assert_eq!(recording.codes(), ["bad_buffer_size", "missing_buffers", "sequence_gap"]);
}

#[test]
fn a_size_that_is_possible_but_wrong_costs_nothing_behind_it() {
    let whole = log(9);
    for size in [0x48u32, 0x100, 5000, 3 * BUFFER_SIZE + 8, 100 * BUFFER_SIZE] {
        let mut damaged = whole.clone();
        patch(&mut damaged, 4 * SIZE, size.to_le_bytes());
        let times = times(&Recording::mapped(&damaged));
        assert!(times.len() >= 8 && times.ends_with(&[5, 6, 7, 8, 9]), "{size}: {times:?}");
    }
}

#[test]
fn a_log_of_nothing_behind_its_header_ends() {
    let mut bytes = log(1);
    bytes.truncate(SIZE);
    bytes.resize(SIZE + (4 << 20), 0);
    let recording = ends("a log of nothing", || Recording::mapped(&bytes));
    assert_eq!((recording.events.len(), gaps(&recording)), (1, vec![(SIZE as u64, 4 << 20)]));
}

/// Compressed buffers have any size and begin anywhere.
#[test]
fn holes_in_a_real_file_cost_little() {
    let Some(file) = shared_file("holes_in_a_real_file_cost_little", "net.4.5.2.x64.etl") else { return };
    let whole = std::fs::read(&file.path).expect("a readable file");
    let events = file.expected["events"].as_u64().expect("a number") as usize;
    for part in 1..6 {
        let mut damaged = whole.clone();
        let at = whole.len() / 6 * part + 12_345;
        damaged[at..at + (64 << 10)].fill(0);
        let recording = Recording::mapped(&damaged);
        assert_eq!(gaps(&recording).len(), 1, "{part}: {:?}", gaps(&recording));
        println!("{part}: {} of {events} events", recording.events.len());
        assert!(recording.events.len() * 100 > events * 95, "{part}: {} of {events}", recording.events.len());
    }
}
