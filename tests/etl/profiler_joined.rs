//! ETWClrProfiler and the runtime's own events in one recording: both report the same collections, and each is one row.

use tracequet::facts::fact::Gc;

use super::profiler::{Reports, facts};
use super::writer::{RUNTIME, utf16};
use crate::support::callbacks::Facts;

const CLAMP: u64 = 0xFFFF_FFFF;
const GIB4: u64 = 1 << 32;
const LARGE: u64 = 0x100_0000_0000;
const GEN0: [u64; 3] = [0, 0x1000, 0x1000];

fn runtime(t: &mut Reports, id: u16, version: u8, words: &[u32]) {
    let payload = [words.iter().flat_map(|w| w.to_le_bytes()).collect(), vec![8, 0]].concat();
    t.event(RUNTIME, id, version, &payload);
}

fn suspend(t: &mut Reports) {
    runtime(t, 9, 1, &[1, 0]);
    runtime(t, 8, 1, &[]);
}

fn restart(t: &mut Reports) {
    runtime(t, 3, 1, &[]);
}

/// A blocking collection of generation 2 begins, for small allocations.
fn start(t: &mut Reports, number: u32) {
    let words = [number, 2, 0, 0].map(u32::to_le_bytes).concat();
    t.event(RUNTIME, 1, 2, &[&words[..], &[8, 0], &[0; 8]].concat());
}

fn end(t: &mut Reports, number: u32) {
    runtime(t, 2, 1, &[number, 2]);
}

fn bounds(t: &mut Reports, bounds: &[[u64; 3]]) {
    for [generation, start, length] in bounds {
        let numbers = [*start, *length, *length].map(u64::to_le_bytes).concat();
        t.event(RUNTIME, 23, 0, &[&[*generation as u8], &numbers[..], &[8, 0]].concat());
    }
}

fn ranges<const N: usize>(t: &mut Reports, id: u16, rows: &[[u64; N]]) {
    let mut payload = [0, rows.len() as u32].map(u32::to_le_bytes).concat();
    payload.extend([8, 0]);
    payload.extend(rows.iter().flatten().flat_map(|n| n.to_le_bytes()));
    t.event(RUNTIME, id, 0, &payload);
}

/// A collection that both report, as on .NET 10: the runtime's last bounds and its end come behind the profiler's end.
fn both(t: &mut Reports, number: u32) {
    suspend(t);
    t.started(number, 2, false);
    start(t, number);
    bounds(t, &[GEN0, [3, LARGE, 6_000_000_000]]);
    t.moved(&[[0x1000, 0x3000, 0x40]]).survived(&[[LARGE, CLAMP]]).roots(&[[0x3000, 1, 0, 0]]);
    t.object(0x3000, 5, 24, &[]).finished(number);
    bounds(t, &[[1, 0x3000, 0x40], [3, LARGE, 5_000_000_000]]);
    end(t, number);
    restart(t);
}

/// A collection: gc_id, number, generation, kind, complete, pauses.
type Shape = (u32, u32, Option<u8>, Option<&'static str>, bool, u32);

fn shapes(facts: &Facts) -> Vec<Shape> {
    let shape = |c: &Gc| (c.gc_id, c.gc_number, c.generation, c.kind, c.complete, c.pause_count);
    facts.collections.iter().map(shape).collect()
}

/// A whole blocking collection of generation 2.
fn whole(gc_id: u32, number: u32, pauses: u32) -> Shape {
    (gc_id, number, Some(2), Some("blocking"), true, pauses)
}

#[test]
fn bounds_of_the_runtime_give_generations_to_the_profiler_s_ranges_and_narrow_them() {
    let mut t = Reports::new();
    both(&mut t, 1);
    let facts = t.facts();
    assert_eq!(shapes(&facts), [whole(1, 1, 1)]);
    let (row, large, moved) = (&facts.collections[0], &facts.surviving[0], &facts.moved[0]);
    assert_eq!((large.range_length, large.length_kind), (5_000_000_000, "narrowed"));
    assert_eq!((large.generation_before, large.generation_after), (Some(3), Some(3)));
    assert_eq!((moved.generation_before, moved.generation_after), (Some(0), Some(1)));
    assert_eq!((row.surviving_range_count, row.surviving_bytes, row.moved_range_count), (1, 5_000_000_000, 1));
    assert_eq!((row.root_count, row.heap_object_count, row.reason), (1, 1, Some("AllocSmall")));
    assert_eq!((facts.bounds.len(), facts.roots[0].0), (4, 1));
    assert!(facts.problems.is_empty(), "{:?}", facts.problems);
}

#[test]
fn ranges_that_the_runtime_tells_too_are_told_once_and_exactly() {
    let mut t = Reports::new();
    for number in 1..=2u32 {
        suspend(&mut t);
        t.started(number, 2, false);
        start(&mut t, number);
        // The object moves in the first collection and is found at its new place in the second.
        t.words(11, &[if number == 1 { 0x1010 } else { 0x810 }, 5]);
        t.moved(&[[0x1000, 0x800, 0x40]]).survived(&[[LARGE, CLAMP], [0x9000, 8]]);
        ranges(&mut t, 22, &[[0x1000, 0x800, 0x40]]);
        ranges(&mut t, 21, &[[LARGE, 5_000_000_000]]);
        t.finished(number);
        end(&mut t, number);
        restart(&mut t);
    }
    let facts = t.facts();
    assert_eq!(shapes(&facts), [whole(1, 1, 1), whole(2, 2, 1)]);
    assert_eq!(facts.survived(), [(LARGE, 5_000_000_000, "exact"), (LARGE, 5_000_000_000, "exact")]);
    assert_eq!((facts.moved.len(), facts.collections[1].moved_range_count), (2, 1));
    assert_eq!(facts.finalizable, [(1, "queued", 0x1010), (2, "waiting", 0x810)]);
    // One range of each collection is the profiler's alone.
    let said: Vec<_> = facts.problems.iter().map(|p| (p.code, p.count)).collect();
    assert_eq!(said, [("unpaired_ranges", 2)]);
}

#[test]
fn a_type_that_both_tell_of_stands_once() {
    let bulk = |t: &mut Reports, id: u64, name: &str| {
        let head = [&[1, 0, 0, 0, 8, 0][..], &id.to_le_bytes(), &[0; 8 + 4 + 4 + 1]].concat();
        t.event(RUNTIME, 15, 0, &[head, utf16(name), vec![0; 4]].concat());
    };
    let mut t = Reports::new();
    t.class(0x10, 1, "First");
    bulk(&mut t, 0x10, "First<T>");
    bulk(&mut t, 0x20, "Second<T>");
    t.class(0x20, 1, "Second").class(0x10, 1, "First").class(0x10, 1, "Another").of(65, 19).class(0x10, 1, "Elsewhere");
    let types = t.facts().types;
    let names: Vec<_> = types.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["First", "Second<T>", "Another", "Elsewhere"]);
}

#[test]
fn a_recording_of_both_can_be_cut_anywhere() {
    let mut t = Reports::new();
    (1..=2).for_each(|number| both(&mut t, number));
    let whole = t.bytes();
    for cut in 0x1000..whole.len() {
        let part = facts(&whole[..cut]);
        assert!(part.collections.len() <= 2 && part.surviving.len() <= 2 && part.moved.len() <= 2, "{cut}");
        let ids: Vec<_> = part.collections.iter().map(|c| c.gc_id).collect();
        assert!(ids.iter().copied().eq(1..=ids.len() as u32), "{cut}: {ids:?}");
        let counted: u64 = part.collections.iter().map(|c| c.surviving_range_count).sum();
        assert_eq!(counted, part.surviving.len() as u64, "{cut}");
    }
}

#[test]
fn the_order_of_starts_and_ends_does_not_matter() {
    let mut t = Reports::new();
    for number in 1..=3u32 {
        suspend(&mut t);
        start(&mut t, number);
        t.started(number, 2, true).survived(&[[LARGE, CLAMP]]);
        end(&mut t, number);
        t.finished(number);
        restart(&mut t);
    }
    let facts = t.facts();
    assert_eq!(shapes(&facts), [whole(1, 1, 1), whole(2, 2, 1), whole(3, 3, 1)]);
    assert_eq!(facts.survived(), [(LARGE, GIB4, "clamped"); 3]);
    assert_eq!(facts.surviving.iter().map(|r| r.gc_id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(facts.problems.is_empty(), "{:?}", facts.problems);
}

#[test]
fn collections_of_processes_without_the_profiler_stay_what_they_are() {
    let mut t = Reports::new();
    t.started(1, 0, false).of(65, 19);
    suspend(&mut t);
    start(&mut t, 4);
    t.of(64, 19).survived(&[[0x1000, 8]]).finished(1).of(65, 19);
    end(&mut t, 4);
    let facts = t.facts();
    let seen: Vec<_> = facts.collections.iter().map(|c| (c.process_id, c.gc_id, c.gc_number, c.complete)).collect();
    assert_eq!(seen, [(64, 1, 0, true), (65, 2, 4, true)]);
    assert_eq!(facts.collections[1].surviving_range_count, 0);
}

#[test]
fn lost_starts_and_ends_of_either_side_leave_the_ranges_where_they_belong() {
    // What is left out of the second of three collections.
    for lost in ["started", "start", "finished", "end", "finished end", "started start"] {
        for (runtime_lists, starts_first) in [(false, false), (true, false), (false, true), (true, true)] {
            let what = format!("without {lost}, {runtime_lists} {starts_first}");
            let mut t = Reports::new();
            for number in 1..=3u32 {
                let keeps = |word: &str| number != 2 || !lost.split(' ').any(|l| l == word);
                suspend(&mut t);
                if starts_first && keeps("start") {
                    start(&mut t, number);
                }
                if keeps("started") {
                    t.started(number, 2, false);
                }
                if !starts_first && keeps("start") {
                    start(&mut t, number);
                }
                t.survived(&[[0x1000 * u64::from(number), 8]]);
                if runtime_lists {
                    ranges(&mut t, 21, &[[0x1000 * u64::from(number), 8]]);
                }
                if keeps("finished") {
                    t.finished(number);
                }
                if keeps("end") {
                    end(&mut t, number);
                }
                restart(&mut t);
            }
            let facts = t.facts();
            // An end of the runtime's that comes behind that of the profiler, and has nothing before it, is a row of
            // its own.
            let stray = !runtime_lists && lost.split(' ').any(|l| l == "start");
            let reported: Vec<_> = facts.collections.iter().filter(|c| !stray || c.surviving_range_count > 0).collect();
            assert_eq!(facts.collections.len(), 3 + usize::from(stray), "{what}: {:#?}", facts.collections);
            assert_eq!(reported.iter().map(|c| c.surviving_range_count).collect::<Vec<_>>(), [1, 1, 1], "{what}");
            let complete: Vec<_> = reported.iter().map(|c| c.complete).collect();
            assert_eq!(complete, [true, !lost.contains(' '), true], "{what}");
            let rows: Vec<_> = facts.surviving.iter().map(|r| (r.gc_id, r.range_start)).collect();
            let expected: Vec<_> = reported.iter().zip(1..).map(|(c, number)| (c.gc_id, 0x1000 * number)).collect();
            assert_eq!(rows, expected, "{what}");
            assert!(lost.contains("start") || !facts.problems.is_empty(), "{what}: nothing is said");
        }
    }
}
