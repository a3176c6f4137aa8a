//! Collections of made-up heaps, recorded as a runtime would: the tables never claim more than is true.

use proptest::collection::vec;
use proptest::prelude::*;
use tracequet::facts::fact::GcMovedRange;
use tracequet::trace::reader::callback::encode;
use tracequet::trace::reader::callback::format::{self, FLAG_FAILED, kind};

use crate::support::callbacks::{Facts, Making, header};

const GIB4: u64 = 1 << 32;
const CLAMP: u64 = 0xFFFF_FFFF;
const LARGE: u64 = 3;

/// Which versions of the callbacks are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Versions {
    First,
    Second,
    SecondFails,
    Both,
}

/// A range as it is.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    old: u64,
    new: u64,
    length: u64,
    before: u8,
    after: u8,
    /// Whether the part that it ends up in is one of large objects and ends with it.
    ends_large_part: bool,
}

/// One collection as it is.
#[derive(Clone, Debug, Default)]
struct Truth {
    /// (generation, start, length) at the start and at the end.
    bounds: [Vec<[u64; 3]>; 2],
    survivors: Vec<Survivor>,
}

/// A part of the heap: its generation, whether its objects move, and each survivor with the garbage before it.
type Part = (u64, bool, Vec<(u64, u64)>);

fn part(wide: bool) -> impl Strategy<Value = Part> {
    // Around 4 GiB, where 32 bits end, and well beyond.
    let large = prop_oneof![Just(GIB4 - 8), Just(GIB4), Just(GIB4 + 8), (1u64..1 << 30).prop_map(|n| GIB4 + n * 8),];
    let length = if wide {
        prop_oneof![3 => (3u64..500).prop_map(|n| n * 8), 1 => large].boxed()
    } else {
        (3u64..500).prop_map(|n| n * 4).boxed()
    };
    let unit = if wide { 8 } else { 4 };
    (0u64..5, any::<bool>(), vec(((0u64..300).prop_map(move |n| n * unit), length), 0..6))
}

/// Lays parts out: at their old addresses one behind the other, at the new ones likewise in another place, or in place.
fn truth(parts: &[Part]) -> Truth {
    let mut truth = Truth::default();
    let (mut at, mut to) = (0x10_0000u64, 0x1000_0000_0000u64);
    if parts.iter().flat_map(|p| &p.2).all(|(_, length)| *length < GIB4 - 8) {
        to = 0x8000_0000; // 32 bits
    }
    for (generation, moves, survivors) in parts {
        // Pinned objects never move. What is swept stays, one generation older.
        let moves = *moves && *generation != 4;
        let after = if *generation < 2 { generation + 1 } else { *generation };
        let (start, new_start) = (at, to);
        let first = truth.survivors.len();
        for (gap, length) in survivors {
            at += gap;
            let new = if moves { to } else { at };
            let (before, after) = (*generation as u8, after as u8);
            truth.survivors.push(Survivor { old: at, new, length: *length, before, after, ends_large_part: false });
            at += length;
            to += if moves { *length } else { 0 };
        }
        // The collector cuts a part of the large object heap off behind its last survivor; other parts may go on.
        let slack = if *generation == LARGE { 0 } else { 0x400 };
        let (end, new_end) = (at, to);
        at += 0x800;
        to += 0x800;
        truth.bounds[0].push([*generation, start, end + 0x400 - start]);
        let [new_start, new_end] = if moves { [new_start, new_end] } else { [start, end] };
        truth.bounds[1].push([after, new_start, new_end + slack - new_start]);
        if *generation == LARGE && truth.survivors.len() > first {
            truth.survivors.last_mut().expect("one").ends_large_part = true;
        }
    }
    truth
}

/// Records of the ranges, a few in each, dealt out to two threads that run in between each other.
fn record(m: &mut Making, truth: &Truth, versions: Versions, deal: &[usize]) {
    let short = |length: u64| length.min(CLAMP);
    let mut threads: [Vec<(u8, u8, Vec<u8>)>; 2] = Default::default();
    let mut deal = deal.iter().copied().cycle();
    let mut rest = truth.survivors.as_slice();
    while let Some(first) = rest.first() {
        // A call is of one kind; a range that stays may come in either.
        let moved = first.old != first.new || deal.next() == Some(1);
        let same = rest.iter().take_while(|s| (s.old != s.new) == (first.old != first.new)).count();
        let (rows, others) = rest.split_at(same.min(1 + deal.next().unwrap_or(0)));
        rest = others;
        let thread = &mut threads[deal.next().unwrap_or(0) % 2];
        let mut call = |version: u8, flags: u8| {
            let length = |s: &Survivor| if version == 1 { short(s.length) } else { s.length };
            let mut out = Vec::new();
            let kind = if moved {
                encode::moved(&mut out, rows.iter().map(|s| [s.old, s.new, length(s)]));
                [kind::MOVED, kind::MOVED2]
            } else {
                encode::surviving(&mut out, rows.iter().map(|s| [s.old, length(s)]));
                [kind::SURVIVING, kind::SURVIVING2]
            };
            thread.push((kind[usize::from(version - 1)], flags, out));
        };
        match versions {
            Versions::First => call(1, 0),
            Versions::Second => call(2, 0),
            Versions::SecondFails => call(2, FLAG_FAILED),
            Versions::Both => {
                call(2, 0);
                call(1, 0);
            }
        }
    }
    let mut queues = threads.map(Vec::into_iter);
    while queues.iter().any(|queue| queue.len() > 0) {
        let thread = deal.next().unwrap_or(0) % 2;
        let thread = if queues[thread].len() > 0 { thread } else { 1 - thread };
        let (kind, flags, payload) = queues[thread].next().expect("a call");
        m.record(thread as u32, kind, flags, |out| *out = payload);
    }
}

fn tell(truth: &Truth, versions: Versions, deal: &[usize], pointer_size: u8) -> Making {
    let mut m = Making::with(&format::Header { pointer_size, ..header() });
    m.started(2, &truth.bounds[0]);
    record(&mut m, truth, versions, deal);
    m.finished(&truth.bounds[1]);
    m
}

/// All ranges that came out, those that stayed as well, by their old starts.
fn came_out(facts: &Facts) -> Vec<GcMovedRange> {
    let stayed = facts.surviving.iter().map(|r| GcMovedRange {
        gc_id: r.gc_id,
        old_range_start: r.range_start,
        new_range_start: r.range_start,
        range_length: r.range_length,
        length_kind: r.length_kind,
        generation_before: r.generation_before,
        generation_after: r.generation_after,
    });
    let mut all: Vec<_> = stayed.chain(facts.moved.iter().copied()).collect();
    all.sort_unstable_by_key(|r| r.old_range_start);
    all
}

fn versions() -> impl Strategy<Value = Versions> {
    prop_oneof![Just(Versions::First), Just(Versions::Second), Just(Versions::SecondFails), Just(Versions::Both)]
}

proptest! {
    /// Rule 8: a length is exact where the second version is known, else a lower bound.
    #[test]
    fn any_heap_recorded_in_any_way_comes_out_as_it_is_or_as_a_lower_bound(
        parts in vec(part(true), 1..6), versions in versions(), deal in vec(0usize..4, 1..20)
    ) {
        let truth = truth(&parts);
        let facts = tell(&truth, versions, &deal, 8).facts();
        let seen = came_out(&facts);
        prop_assert_eq!(seen.len(), truth.survivors.len());
        for (seen, is) in seen.iter().zip(&truth.survivors) {
            let generations = (seen.generation_before, seen.generation_after);
            prop_assert_eq!((seen.old_range_start, seen.new_range_start), (is.old, is.new));
            prop_assert_eq!(generations, (Some(is.before), Some(is.after)));
            let expected = match (versions, is.length < GIB4 - 1) {
                (Versions::Second | Versions::SecondFails, _) | (Versions::First, true) => "exact",
                (Versions::Both, _) => "paired",
                (Versions::First, false) if is.ends_large_part => "narrowed",
                (Versions::First, false) => "clamped",
            };
            prop_assert_eq!(seen.length_kind, expected);
            prop_assert_eq!(seen.range_length, if expected == "clamped" { GIB4 } else { is.length });
            prop_assert!(seen.range_length <= is.length, "{} is more than {}", seen.range_length, is.length);
        }
        let reported: Vec<_> = facts.codes().into_iter().filter(|code| *code != "paired_callbacks").collect();
        prop_assert!(reported.is_empty(), "{:?}", reported);
    }

    #[test]
    fn any_heap_of_32_bits_comes_out_as_it_is(
        parts in vec(part(false), 1..6), versions in versions(), deal in vec(0usize..4, 1..20)
    ) {
        let truth = truth(&parts);
        let facts = tell(&truth, versions, &deal, 4).facts();
        let expected = if versions == Versions::Both { "paired" } else { "exact" };
        let seen: Vec<_> = came_out(&facts).iter().map(|r| (r.old_range_start, r.new_range_start, r.range_length, r.length_kind)).collect();
        let is: Vec<_> = truth.survivors.iter().map(|s| (s.old, s.new, s.length, expected)).collect();
        prop_assert_eq!(seen, is);
    }
}

/// What became of any object, by the tables: never dead when it lives, never alive when it is dead.
#[test]
fn of_no_object_anything_untrue_is_said() {
    use crate::support::dataset::survived;
    use tracequet::analyze::survived::Fate;
    use tracequet::{Convert, convert};

    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    let cases = (vec(part(true), 1..4), versions(), vec(0usize..4, 1..20));
    proptest::test_runner::TestRunner::new(config)
        .run(&cases, |(parts, versions, deal)| {
            let truth = truth(&parts);
            let folder = tempfile::tempdir().expect("a folder");
            let recording = folder.path().join("made.corprof");
            std::fs::write(&recording, tell(&truth, versions, &deal, 8).bytes()).expect("a file");
            let output = folder.path().join("out");
            let request = Convert::new([recording], output.clone());
            convert(&request, &mut |_| {}).expect("a dataset");
            let edges = |start: u64, length: u64| [start.wrapping_sub(8), start, start + length - 8, start + length];
            let mut asked: Vec<u64> = truth.survivors.iter().flat_map(|s| edges(s.old, s.length)).collect();
            asked.extend(truth.survivors.iter().filter(|s| s.length > GIB4).map(|s| s.old + GIB4));
            asked.extend(truth.bounds[0].iter().flat_map(|[_, start, length]| edges(*start, *length)));
            for address in asked {
                let step = &survived(&output, None, 1, address, false).expect("an answer")[0];
                let holds = |start: u64, length: u64| address >= start && address - start < length;
                let lives = truth.survivors.iter().find(|s| holds(s.old, s.length));
                let is_heap = truth.bounds[0].iter().any(|[_, start, length]| holds(*start, *length));
                let what = format!("{versions:?} {address:#x} {lives:?} {step:?}");
                match (lives, step.fate) {
                    (Some(s), Fate::Alive | Fate::Moved) => {
                        prop_assert_eq!(step.address_after, Some(s.new + (address - s.old)), "{}", what);
                        prop_assert_eq!(step.fate == Fate::Alive, s.old == s.new, "{}", what);
                    }
                    // Only of what lies behind 4 GiB it may be unknown.
                    (Some(s), Fate::Unknown(_)) => {
                        prop_assert!(versions == Versions::First && address - s.old >= GIB4, "{}", what);
                    }
                    (None, Fate::Dead) => prop_assert!(is_heap, "{}", what),
                    (None, Fate::Unknown(_)) => {
                        let is_exact = versions != Versions::First && !truth.survivors.is_empty();
                        prop_assert!(!is_heap || !is_exact, "{}", what);
                    }
                    _ => prop_assert!(false, "{}", what),
                }
            }
            Ok(())
        })
        .expect("nothing untrue");
}
