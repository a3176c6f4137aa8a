//! Two holes in a recording of callbacks: no event is invented, and each loss is reported.

use std::collections::HashSet;

use tracequet::trace::error::Severity;
use tracequet::trace::reader::callback::format::kind;

use crate::support::callbacks::{Facts, Making, facts};
use crate::support::mutate::Random;

/// Collections one after the other, each in its pause, with ranges that no other has.
fn recording() -> Vec<u8> {
    let mut m = Making::new();
    for n in 1..=400_u64 {
        let (young, old) = ([0, n << 20, 0x10000], [1, (n << 20) + 0x10000, 0x10000]);
        m.suspend(1).started((n % 2) as u32, &[young, old]);
        m.surviving(0, 2, &[[n << 20, 0x20], [(n << 20) + 0x100, 0x40]]);
        m.moved(1, 2, &[[(n << 20) + 0x1000, (n << 20) + 0x10000, 0x18]]);
        m.finished(&[young, old]).resume();
    }
    m.bytes()
}

/// Collections that say that they can be trusted, with their pauses; all pauses and all ranges.
fn rows(facts: &Facts) -> HashSet<(&'static str, [i64; 4])> {
    let trusted = facts.collections.iter().filter(|gc| gc.complete && !gc.touches_gap);
    let mut rows: HashSet<_> = trusted
        .map(|gc| {
            let counts = (gc.surviving_range_count << 32 | gc.moved_range_count).cast_signed();
            ("gc", [gc.start_ts_ns, gc.end_ts_ns.unwrap_or(-1), counts, gc.pause_ns])
        })
        .collect();
    let signed = |numbers: [u64; 3]| [numbers[0].cast_signed(), numbers[1].cast_signed(), numbers[2].cast_signed(), 0];
    rows.extend(facts.surviving.iter().map(|r| ("surviving", signed([r.range_start, r.range_length, 0]))));
    rows.extend(facts.pauses.iter().map(|pause| ("pause", [pause.start_ts_ns, pause.duration_ns, 0, 0])));
    let moved = facts.moved.iter();
    rows.extend(moved.map(|r| ("moved", signed([r.old_range_start, r.new_range_start, r.range_length]))));
    rows
}

#[test]
fn two_holes_make_no_row_up_and_are_told() {
    let whole = recording();
    let all = facts(&whole).unwrap();
    let known = rows(&all);
    assert_eq!((all.problems.len(), known.len()), (0, 400 * 5), "{:?}", all.problems);
    let mut left = 0;
    for seed in 1..=120_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut damaged = whole.clone();
        for _ in 0..2 {
            let len = [1, 16, 300, 5000][random.below(4)];
            let at = 4096 + random.below(damaged.len() - 4096 - len);
            match random.below(3) {
                0 => damaged[at..at + len].fill(0),
                1 => damaged[at..at + len].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
                _ => drop(damaged.drain(at..at + len)),
            }
        }
        let part = facts(&damaged).unwrap();
        let rows = rows(&part);
        let made_up: Vec<_> = rows.difference(&known).collect();
        assert!(made_up.is_empty(), "seed {seed}: {made_up:?} {:#?}", part.problems);
        let is_told = part.problems.iter().any(|problem| problem.severity != Severity::Info);
        assert!(is_told || rows.len() == known.len(), "seed {seed}: {} rows, {:?}", rows.len(), part.problems);
        left += rows.len();
    }
    println!("{left} of {} rows", 120 * known.len());
    assert!(left * 100 > 120 * known.len() * 80, "{left}");
}

#[test]
fn a_collection_whose_suspension_may_be_lost_touches_the_gap() {
    let young = [0, 0x1000, 0x1000];
    let mut m = Making::new();
    for lost in [false, true, false] {
        if lost {
            m.numbers(kind::LOST, &[2]);
        } else {
            m.suspend(1);
        }
        m.started(0, &[young]).surviving(0, 2, &[[0x1000, 0x20]]).finished(&[young]).resume();
    }
    let gaps: Vec<_> = m.facts().collections.iter().map(|gc| (gc.touches_gap, gc.pause_ns > 0)).collect();
    assert_eq!(gaps, [(false, true), (true, false), (false, true)]);
}
