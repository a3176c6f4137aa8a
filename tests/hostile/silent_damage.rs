//! Damage is reported: two holes in a recording, of zeros, of other bytes, or where bytes are missing; times that
//! changed; a false end mark.
//!
//! `TRACEQUET_FUZZ_TIMES=20` makes twenty times as many.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use tracequet::trace::error::Severity;

use crate::hostile::resync::long;
use crate::support::collect::Recording;
use crate::support::mutate::Random;
use crate::support::writer::{Form, Writer};

/// What stands where bytes of the recording stood.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Zeros,
    Noise,
    /// The bytes are missing: what is behind them stands earlier.
    Nothing,
}

/// Two holes, the second one behind the first, and either next to the border of a block or anywhere.
fn holes(random: &mut Random, length: usize, borders: &[usize]) -> [Range<usize>; 2] {
    let mut hole = || {
        let size = [1, 4, 20, 300, 3000][random.below(5)].min(length / 8);
        let size = 1 + random.below(size);
        let at = match random.below(2) {
            0 => borders[random.below(borders.len())].saturating_sub(random.below(40)),
            _ => random.below(length),
        };
        at..(at + size).min(length)
    };
    let (a, b) = (hole(), hole());
    if a.start <= b.start { [a, b] } else { [b, a] }
}

fn damaged(bytes: &[u8], holes: &[Range<usize>; 2], fill: Fill, random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for hole in holes.iter().rev() {
        let hole = hole.start.min(damaged.len())..hole.end.min(damaged.len());
        match fill {
            Fill::Zeros => damaged[hole].fill(0),
            Fill::Noise => damaged[hole].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
            Fill::Nothing => drop(damaged.drain(hole)),
        }
    }
    damaged
}

/// Where blocks of events begin and end.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let names: [&[u8]; 5] = [b"EventBlock", b"MetadataBlock", b"StackBlock", b"SPBlock", b"\x05\x05"];
    let found = names.iter().flat_map(|name| {
        bytes.windows(name.len()).enumerate().filter(move |(_, window)| window == name).map(|(at, _)| at)
    });
    let mut found: Vec<usize> = found.collect();
    // V6: each block begins with its length and its kind.
    let (mut at, mut blocks) = (20, Vec::new());
    while let Some(header) = bytes.get(at..at + 4) {
        blocks.push(at);
        at += 4 + (u32::from_le_bytes(header.try_into().unwrap()) & 0xFF_FFFF) as usize;
    }
    if bytes.starts_with(b"Nettrace") && bytes[8..12] == [0; 4] {
        found = blocks;
    }
    if found.is_empty() { vec![0] } else { found }
}

/// Reads a recording with `times` pairs of holes of each kind. Fewer or other events have to be reported. Gives how
/// many pairs cost events.
fn check(name: &str, bytes: &[u8], times: usize, seed: u64) -> usize {
    let whole = Recording::mapped(bytes);
    assert!(whole.refused.is_none() && !whole.events.is_empty(), "{name}: {:?}", whole.refused);
    let there: HashSet<u64> = whole.events.iter().map(|event| event.offset).collect();
    let borders = borders(bytes);
    let (mut random, mut lossy) = (Random(seed | 1), 0);
    for fill in [Fill::Zeros, Fill::Noise, Fill::Nothing] {
        for _ in 0..times {
            let holes = holes(&mut random, bytes.len(), &borders);
            let recording = Recording::mapped(&damaged(bytes, &holes, fill, &mut random));
            let stated = || format!("{name}, {fill:?} at {holes:?}: {:#?}", recording.problems);
            if recording.refused.is_some() {
                continue;
            }
            let has_losses = recording.problems.iter().any(|problem| problem.severity != Severity::Info);
            if recording.events.len() < whole.events.len() {
                lossy += 1;
                assert!(has_losses, "{} of {} events: {}", recording.events.len(), whole.events.len(), stated());
            }
            // There are no checksums: a few bytes within the header of an event may make others of those behind it in
            // the block, whose places are not those of events then.
            let made_up = recording.events.iter().any(|event| !there.contains(&event.offset));
            assert!(has_losses || !made_up || matches!(fill, Fill::Nothing), "events are made up: {}", stated());
        }
    }
    lossy
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let names = ["events.nettrace", "exit-early.nettrace", "gc-churn-3.1.nettrace"];
    names.iter().map(|name| ((*name).to_owned(), std::fs::read(folder.join(name)).expect("a sample"))).collect()
}

#[test]
fn what_two_holes_cost_is_told() {
    let times = std::env::var("TRACEQUET_FUZZ_TIMES").map_or(1, |text| text.parse::<usize>().expect("a number"));
    let mut all = samples();
    all.extend([Form::V4, Form::V6].map(|form| (format!("{form:?}"), long(form, 4).end())));
    for (name, bytes) in all {
        let found = check(&name, &bytes, 20 * times, 0x5EED);
        assert!(found > 0, "{name}");
    }
}

/// An end mark is the end only where the file ends: one that says that it is longer than the file is damage.
#[test]
fn an_end_mark_that_is_longer_than_the_file_is_no_end() {
    let bytes = long(Form::V6, 4).end();
    let borders = borders(&bytes);
    for at in &borders[2..borders.len() - 2] {
        for size in [0xFF_FFFFu32, bytes.len() as u32] {
            let mut damaged = bytes.clone();
            damaged[*at..at + 4].copy_from_slice(&size.to_le_bytes());
            let recording = Recording::mapped(&damaged);
            assert!(recording.codes().contains(&"damaged_container"), "block at {at}: {:?}", recording.codes());
            assert!(recording.events.len() >= 600, "block at {at}: {} events", recording.events.len());
        }
    }
}

/// The headers of blocks that runtimes write have the least and the greatest time, which reveals a changed time.
#[test]
fn changed_times_are_told_by_the_header_of_the_block() {
    let (_, bytes) = samples().remove(0);
    let whole = Recording::mapped(&bytes);
    let times = |recording: &Recording| {
        let ticks = || recording.events.iter().map(|event| event.ticks);
        (recording.events.len(), ticks().min(), ticks().max())
    };
    let from = whole.events[0].offset as usize;
    let mut changed = 0;
    for at in (from..from + 6000).step_by(5) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let recording = Recording::mapped(&flipped);
        if times(&recording) != times(&whole) && recording.events.len() == whole.events.len() {
            changed += 1;
            assert!(!recording.codes().is_empty(), "changed at {at}");
        }
    }
    assert!(changed > 20, "{changed}");
}

#[test]
fn bytes_behind_the_end_mark_are_told_of_a_pipe_too() {
    // More than is looked at for another recording.
    for length in [5, (64 << 20) + 12_345] {
        let bytes = [Writer::new(Form::V4).end(), vec![0; length]].concat();
        let behind =
            [Recording::mapped(&bytes), Recording::piped(&bytes)].map(|recording| recording.end.trailing_bytes);
        assert_eq!(behind, [length as u64; 2]);
    }
}
