//! Recorded profiler callbacks: what the rules about surviving ranges say, one test for each.

use proptest::prelude::*;
use tracequet::facts::fact::NON_GC_HEAP;
use tracequet::trace::reader::callback::format::{self, FLAG_CONTINUES, FLAG_FAILED, kind};
use tracequet::trace::reader::callback::{decode, encode};

use crate::support::callbacks::{Facts, MONITOR_SUSPENDS, Making, header};

const CLAMP: u64 = 0xFFFF_FFFF;
const GIB4: u64 = 1 << 32;
const GEN0: [u64; 3] = [0, 0x1000, 0x1000];
const GEN1: [u64; 3] = [1, 0x2000, 0x1000];
const LARGE: [u64; 3] = [3, 0x100_0000_0000, 0x4_0000_0000];

/// Rule 2: the union over all calls, from all threads.
#[test]
fn ranges_of_all_threads_and_calls_are_one_union() {
    let mut m = Making::new();
    m.started(0, &[GEN0]).surviving(1, 2, &[[0x1100, 0x40]]).surviving(0, 2, &[[0x1000, 0x18]]);
    let facts = m.surviving(1, 2, &[[0x1200, 0x20]]).finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x1000, 0x18, "exact"), (0x1100, 0x40, "exact"), (0x1200, 0x20, "exact")]);
    let row = &facts.collections[0];
    assert_eq!((row.surviving_range_count, row.surviving_bytes, row.complete), (3, 0x78, true));
    assert!(facts.end.complete && facts.problems.is_empty(), "{:?}", facts.problems);
}

/// Rule 9: the bounds at the start by the old address, those at the end by the new one.
#[test]
fn generations_come_from_the_bounds_before_and_after_by_old_and_new_address() {
    let mut m = Making::new();
    m.started(1, &[GEN0, GEN1]).moved(0, 2, &[[0x1000, 0x2800, 0x18], [0x2010, 0x2010, 0x20], [0x9000, 0x9000, 8]]);
    let facts = m.finished(&[[1, 0x2800, 0x800], [2, 0x2000, 0x800]]).facts();
    let seen: Vec<_> = facts.moved.iter().map(|r| (r.generation_before, r.generation_after)).collect();
    assert_eq!(seen, [(Some(0), Some(1)), (Some(1), Some(2)), (None, None)]);
    assert_eq!(facts.collections[0].generation, Some(1));
}

/// Rule 4: the addresses show what moved.
#[test]
fn surviving_and_moved_may_come_in_one_collection_and_moved_may_stay() {
    let mut m = Making::new();
    m.started(2, &[GEN0, LARGE]).surviving(0, 2, &[[LARGE[1], 0x1000]]).moved(0, 2, &[[0x1000, 0x1000, 0x18]]);
    let facts = m.finished(&[[1, 0x1000, 0x18], LARGE]).facts();
    assert_eq!((facts.surviving.len(), facts.moved.len()), (1, 1));
    let stayed = facts.moved[0];
    assert_eq!((stayed.old_range_start, stayed.new_range_start), (0x1000, 0x1000));
    assert_eq!((stayed.generation_before, stayed.generation_after), (Some(0), Some(1)));
}

/// Rule 5: both versions pair on their thread.
#[test]
fn both_versions_pair_on_their_thread_and_keep_the_exact_length() {
    let mut m = Making::new();
    m.started(2, &[LARGE]);
    m.surviving(0, 2, &[[LARGE[1], 5_000_000_000], [LARGE[1] + 0x2_0000_0000, 64]]).surviving(1, 2, &[[0x1000, 24]]);
    m.surviving(0, 1, &[[LARGE[1], CLAMP], [LARGE[1] + 0x2_0000_0000, 64]]).surviving(1, 1, &[[0x1000, 24]]);
    m.moved(0, 2, &[[0x3000, 0x2000, GIB4]]).moved(0, 1, &[[0x3000, 0x2000, CLAMP]]);
    let facts = m.finished(&[]).facts();
    let large = LARGE[1];
    let expected = [(0x1000, 24, "paired"), (large, 5_000_000_000, "paired"), (large + 0x2_0000_0000, 64, "paired")];
    assert_eq!(facts.survived(), expected);
    assert_eq!((facts.moved[0].range_length, facts.moved[0].length_kind), (GIB4, "paired"));
    let paired = facts.problems.iter().find(|p| p.code == "paired_callbacks").unwrap();
    assert_eq!(paired.count, 3);
}

#[test]
fn a_second_version_alone_is_exact() {
    let mut m = Making::new();
    m.started(0, &[]).surviving(0, 2, &[[0x1000, 24]]).moved(0, 2, &[[0x2000, 0x1800, 32]]).finished(&[]);
    // The second version fails: the first is not called, and what follows on the thread is another call's.
    m.started(0, &[]).record(0, kind::SURVIVING2, FLAG_FAILED, |out| encode::surviving(out, [[0x5000, 8]].into_iter()));
    let facts = m.surviving(0, 1, &[[0x6000, 8]]).finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x1000, 24, "exact"), (0x5000, 8, "exact"), (0x6000, 8, "exact")]);
    assert_eq!(facts.moved[0].length_kind, "exact");
}

/// Rule 6: the first version alone is a lower bound.
#[test]
fn a_clamped_length_is_a_lower_bound_and_never_four_gib_less_one() {
    let mut m = Making::new();
    m.started(2, &[]).surviving(0, 1, &[[0x10_0000, CLAMP], [0x8_0000_0000, 4_294_967_288]]);
    let facts = m.moved(0, 1, &[[0x20_0000_0000, 0x10_0000_0000, CLAMP]]).finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x10_0000, GIB4, "clamped"), (0x8_0000_0000, 4_294_967_288, "exact")]);
    assert_eq!((facts.moved[0].range_length, facts.moved[0].length_kind), (GIB4, "clamped"));
}

/// Rule 6: narrowed where the bounds prove it.
#[test]
fn bounds_narrow_the_last_range_of_a_part_of_the_large_object_heap() {
    let [_, start, length] = LARGE;
    let mut m = Making::new();
    m.started(2, &[LARGE]).surviving(0, 1, &[[start, CLAMP], [start + 0x2_0000_0000, CLAMP]]);
    let facts = m.finished(&[LARGE]).facts();
    let second = start + 0x2_0000_0000;
    assert_eq!(facts.survived(), [(start, GIB4, "clamped"), (second, length - 0x2_0000_0000, "narrowed")]);
    // In a generation whose parts are not cut off behind the last survivor, its end proves nothing.
    let part = [2, start, length];
    m.started(2, &[part]).surviving(0, 1, &[[start, CLAMP]]);
    assert_eq!(m.finished(&[part]).facts().survived(), [(start, GIB4, "clamped")]);
    // Moved: by the new address.
    let mut m = Making::new();
    m.started(2, &[]).moved(0, 1, &[[start + 0x10_0000_0000, start, CLAMP]]);
    let facts = m.finished(&[[3, start, 5_000_000_000]]).facts();
    assert_eq!((facts.moved[0].range_length, facts.moved[0].length_kind), (5_000_000_000, "narrowed"));
}

#[test]
fn a_clamped_range_in_less_room_than_four_gib_is_damage() {
    let mut m = Making::new();
    m.started(2, &[]).surviving(0, 1, &[[0x1000, CLAMP]]);
    let facts = m.finished(&[[3, 0x1000, 0x1000]]).facts();
    assert_eq!(facts.survived(), [(0x1000, GIB4, "clamped")]);
    assert_eq!(facts.codes(), ["range_beyond_bounds"]);
}

/// Rule 7: nothing is clamped in 32 bits.
#[test]
fn nothing_is_clamped_in_a_32_bit_process() {
    let mut m = Making::with(&format::Header { pointer_size: 4, ..header() });
    m.started(2, &[]).surviving(0, 1, &[[0x1000, CLAMP]]).surviving(0, 1, &[[0x10, 12]]);
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.survived()[0], (0x10, 12, "exact"));
    assert_eq!(facts.survived()[1], (0x1000, CLAMP, "exact"));
}

/// Rule 5: a contradiction is damage.
#[test]
fn a_first_version_that_contradicts_its_second_is_reported_and_the_second_counts() {
    let mut m = Making::new();
    m.started(0, &[]).surviving(0, 2, &[[0x1000, 24]]).surviving(0, 1, &[[0x1000, 32]]);
    m.moved(0, 2, &[[0x2000, 0x1800, 24]]).moved(0, 1, &[[0x2000, 0x1900, 24]]);
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x1000, 24, "exact")]);
    assert_eq!(facts.moved.len(), 1);
    assert_eq!(facts.moved[0].new_range_start, 0x1800);
    assert_eq!(facts.codes(), ["v1_contradicts_v2"]);
}

/// Rule 21: what no sound runtime says is kept and reported.
#[test]
fn overlapping_and_empty_ranges_and_overlapping_bounds_are_reported() {
    let mut m = Making::new();
    m.started(0, &[[0, 0x1000, 0x100], [1, 0x1080, 0x100]]);
    m.surviving(0, 2, &[[0x1000, 0x20], [0x1010, 0x20], [0x1090, 0], [0x1100, 8]]);
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.codes(), ["empty_range", "overlapping_bounds", "overlapping_ranges"]);
    let generations: Vec<_> = facts.surviving.iter().map(|r| r.generation_before).collect();
    assert_eq!(generations, [Some(0), Some(0), None, None], "where bounds disagree, nothing is known");
}

fn shapes(facts: &Facts) -> Vec<(Option<u8>, Option<&'static str>, bool)> {
    facts.collections.iter().map(|c| (c.generation, c.kind, c.complete)).collect()
}

/// Rule 11: nested starts and ends.
#[test]
fn a_background_collection_goes_on_while_others_start_and_end() {
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    m.suspend(1).started(2, &[]).resume();
    m.suspend(1).started(0, &[]).finished(&[]).resume();
    m.suspend(7).resume();
    let facts = m.finished(&[]).suspend(1).started(1, &[]).finished(&[]).resume().facts();
    let expected =
        [(Some(2), Some("background"), true), (Some(0), Some("foreground"), true), (Some(1), Some("blocking"), true)];
    assert_eq!(shapes(&facts), expected);
    assert_eq!(facts.pauses.iter().map(|p| p.gc_id).collect::<Vec<_>>(), [1, 2, 1, 3]);
    assert!(facts.problems.is_empty(), "{:?}", facts.problems);
}

/// Rule 11: an end without a start.
#[test]
fn a_hidden_collection_before_a_background_one_has_an_end_and_no_start() {
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    m.suspend(1).started(2, &[]).finished(&[]).resume();
    m.suspend(7).resume();
    let facts = m.finished(&[]).facts();
    assert_eq!(shapes(&facts), [(Some(2), Some("background"), true), (None, None, false)]);
    // The same start and end without a pause for the background: a blocking collection.
    m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    m.suspend(1).started(2, &[]).finished(&[]).resume();
    m.suspend(1).started(2, &[]).finished(&[]).resume();
    let facts = m.facts();
    assert_eq!(shapes(&facts), [(Some(2), Some("blocking"), true), (Some(2), Some("blocking"), true)]);
}

/// No runtime lets this many threads stop the others at once; a forged recording may claim it.
#[test]
fn pauses_of_more_threads_than_are_remembered_are_told() {
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    for thread in 0..64 + 44 {
        m.thread(200 + u64::from(thread)).record(thread, kind::SUSPEND_STARTED, 0, |out| encode::numbers(out, &[0]));
    }
    let facts = m.facts();
    let stated: Vec<_> = facts.problems.iter().map(|problem| (problem.code, problem.count)).collect();
    assert_eq!(stated, [("too_many_pauses", 44)]);
}

/// Rule 11: undecided without suspensions.
#[test]
fn without_suspensions_full_collections_are_uncertain() {
    let mut m = Making::with(&format::Header { granted: [0, 0x10], policy: 0, ..header() });
    let facts = m.started(2, &[]).finished(&[]).started(0, &[]).finished(&[]).facts();
    assert_eq!(shapes(&facts), [(Some(2), None, true), (Some(0), Some("blocking"), true)]);
    assert_eq!(facts.codes(), ["uncertain_pairs"]);
}

/// Rule 12: ranges before any start.
#[test]
fn ranges_and_an_end_without_a_start_are_a_collection_of_unknown_generation() {
    let mut m = Making::new();
    m.surviving(0, 2, &[[0x1000, 24]]).finished(&[GEN0]);
    let facts = m.started(0, &[]).finished(&[]).facts();
    assert_eq!(shapes(&facts), [(None, None, false), (Some(0), Some("blocking"), true)]);
    assert_eq!(facts.surviving[0].gc_id, 1);
    assert_eq!(facts.surviving[0].generation_after, Some(0));
    assert_eq!(facts.codes(), ["finished_without_started"]);
}

/// Rule 13: the last collection stays open.
#[test]
fn a_recording_that_ends_in_a_collection_leaves_it_incomplete() {
    let mut m = Making::new();
    m.started(0, &[GEN0]).surviving(0, 2, &[[0x1000, 24]]);
    let facts = crate::support::callbacks::facts(&m.cut()).unwrap();
    assert_eq!(shapes(&facts), [(Some(0), Some("blocking"), false)]);
    assert_eq!(facts.survived(), [(0x1000, 24, "exact")]);
    assert_eq!(facts.codes(), ["no_end_mark", "running_collection"]);
    assert!(!facts.end.complete);
}

#[test]
fn a_start_before_the_end_of_the_one_before_abandons_that() {
    let facts = Making::new().started(0, &[]).started(1, &[]).finished(&[]).facts();
    assert_eq!(shapes(&facts), [(Some(0), Some("blocking"), false), (Some(1), Some("blocking"), true)]);
    assert_eq!(facts.codes(), ["open_collection"]);
}

/// Rule 17: kinds of roots, null roots and id 0.
#[test]
fn kinds_of_roots_are_those_of_callbacks_and_null_roots_stay() {
    let mut m = Making::new();
    m.started(0, &[]).roots2(&[[0, 1, 4, 0], [0x1000, 2, 0, 0], [0x1008, 3, 3, 0x77], [0x1010, 0, 0, 0]]);
    let objects = [0, 0x1000, 0x1008, 0x1010];
    m.record(0, kind::ROOTS, 0, |out| encode::objects(out, objects.into_iter()));
    let facts = m.finished(&[]).facts();
    let expected = [
        (1, 0, "stack", 4, 0),
        (1, 0x1000, "finalizer", 0, 0),
        (1, 0x1008, "handle", 3, 0x77),
        (1, 0x1010, "other", 0, 0),
    ];
    assert_eq!(facts.roots, expected);
    assert_eq!(facts.collections[0].root_count, 4);
}

/// Rule 19: waiting for a finalizer is a state.
#[test]
fn waiting_for_a_finalizer_is_a_state_that_follows_its_object() {
    let mut m = Making::new();
    m.started(0, &[]).numbers(kind::FINALIZEABLE, &[0, 0x1010]).moved(0, 2, &[[0x1000, 0x800, 0x20]]).finished(&[]);
    m.started(0, &[]).numbers(kind::FINALIZEABLE, &[0, 0x810]).numbers(kind::FINALIZEABLE, &[1, 0x2000]).finished(&[]);
    let facts = m.started(0, &[]).numbers(kind::FINALIZEABLE, &[1, 0x2000]).finished(&[]).facts();
    assert_eq!(facts.finalizer_flags, [0, 0, 1, 1], "critical finalizers");
    let expected = [(1, "queued", 0x1010), (2, "waiting", 0x810), (2, "queued", 0x2000), (3, "waiting", 0x2000)];
    assert_eq!(facts.finalizable, expected);
}

/// Rule 20: an id may come to mean another class.
#[test]
fn an_id_that_means_another_class_is_another_row() {
    let mut m = Making::new();
    let class = |m: &mut Making, name: &str| {
        m.record(0, kind::CLASS, 0, |out| {
            encode::numbers(out, &[0x77, 1, 2]);
            out.push(0);
            encode::named(out, &[0, 0], name);
        });
    };
    class(&mut m, "First");
    class(&mut m, "First");
    m.numbers(kind::CLASS_UNLOADED, &[0x77]);
    class(&mut m, "Second");
    assert_eq!(m.facts().types, [(0x77, "First".to_owned()), (0x77, "Second".to_owned())]);
}

/// Rule 20: the same for methods. Roots on stacks are named by them.
#[test]
fn an_id_that_means_another_method_is_another_row() {
    let mut m = Making::new();
    let function = |m: &mut Making, name: &str| {
        m.record(0, kind::FUNCTION, 0, |out| encode::named(out, &[0x55, 1, 2, 3], name));
    };
    for name in ["Space.Type.Method", "Space.Type.Method", "Space.Type..ctor"] {
        function(&mut m, name);
    }
    m.numbers(kind::FUNCTION_UNLOADED, &[0x55]);
    function(&mut m, "bare");
    let expected = [("Space.Type", "Method"), ("Space.Type", ".ctor"), ("", "bare")];
    assert_eq!(m.facts().methods, expected.map(|(space, name)| (0x55, space.to_owned(), name.to_owned())));
}

#[test]
fn objects_handles_weak_elements_and_counts_by_class_are_kept() {
    let mut m = Making::new();
    m.numbers(kind::HANDLE_CREATED, &[0x77, 0x1000]).numbers(kind::HANDLE_DESTROYED, &[0x77]).started(0, &[]);
    m.record(0, kind::OBJECT, FLAG_CONTINUES, |out| encode::object(out, 0x1000, 5, [0x2000].into_iter()));
    m.record(0, kind::OBJECT, 0, |out| encode::object(out, 0x1000, 5, [0x3000, 0x3000].into_iter()));
    m.record(0, kind::WEAK, 0, |out| encode::columns(out, [[1, 2, 3]].into_iter()));
    m.record(0, kind::BY_CLASS, 0, |out| encode::columns(out, [[5, 17]].into_iter()));
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.objects, [(0x1000, 5, 3)]);
    assert_eq!(facts.references, [(0x1000, 0x2000), (0x1000, 0x3000), (0x1000, 0x3000)]);
    assert_eq!(facts.weak, [(1, 1, 2, 3)]);
    assert_eq!(facts.handles, [("created", 0x77, 0x1000, 100), ("destroyed", 0x77, 0, 100)]);
    assert_eq!(facts.allocations, [("generation_0", 5, Some(17.0))]);
}

/// Rule 9: without bounds there is no generation; large and pinned objects have theirs by number.
#[test]
fn without_bounds_there_is_no_generation_and_large_and_pinned_objects_have_their_own() {
    let mut m = Making::new();
    m.started(2, &[]).surviving(0, 2, &[[0x1000, 24]]).finished(&[]);
    let parts = [[3, 0x1000, 0x1000], [4, 0x2000, 0x1000], [1, 0x5000, 0]];
    let facts = m.started(2, &parts).surviving(0, 2, &[[0x1000, 24], [0x2000, 24]]).finished(&parts).facts();
    let seen: Vec<_> = facts.surviving.iter().map(|r| (r.generation_before, r.generation_after)).collect();
    assert_eq!(seen, [(None, None), (Some(3), Some(3)), (Some(4), Some(4))]);
    assert!(facts.problems.is_empty(), "empty bounds are normal: {:?}", facts.problems);
}

/// Rule 10: the heap that is never collected has bounds of its own, and no ranges.
#[test]
fn the_non_gc_heap_is_a_generation_of_its_own_in_the_bounds() {
    let mut m = Making::new();
    m.non_gc = vec![[0x9000, 0x80, 0x1000]];
    m.started(0, &[GEN0]);
    m.non_gc = vec![[0x9000, 0xC0, 0x1000]];
    let facts = m.surviving(0, 2, &[[0x1000, 24]]).finished(&[GEN0]).facts();
    let frozen: Vec<_> = facts.bounds.iter().filter(|b| b.generation == NON_GC_HEAP).collect();
    let seen: Vec<_> = frozen
        .iter()
        .map(|b| (b.gc_id, b.is_at_end(), b.range_start, b.range_length, b.range_length_reserved))
        .collect();
    assert_eq!(seen, [(1, false, 0x9000, 0x80, 0x1000), (1, true, 0x9000, 0xC0, 0x1000)]);
    assert_eq!((facts.bounds.len(), facts.collections[0].surviving_bytes), (4, 24));
    assert!(facts.problems.is_empty(), "{:?}", facts.problems);
}

/// Rule 15: collections are numbered by their starts. Rule 16: an induced one says so, another says nothing.
#[test]
fn collections_count_from_one_and_only_an_induced_one_has_a_reason() {
    let mut m = Making::new();
    let said = encode::BoundsSaid::default();
    for reason in [0, 1] {
        m.record(0, kind::GC_STARTED, 0, |out| encode::gc_started(out, 5, 1, reason, &said)).finished(&[]);
    }
    let facts = m.facts();
    let seen: Vec<_> = facts.collections.iter().map(|c| (c.gc_id, c.gc_number, c.reason)).collect();
    assert_eq!(seen, [(1, 0, None), (2, 0, Some("Induced"))]);
}

/// Rule 18: only what waits for its finalizer is looked up at its address before; roots are where they are after.
#[test]
fn addresses_of_roots_are_after_the_collection_and_those_of_finalizers_before() {
    let mut m = Making::new();
    m.started(0, &[GEN0]).numbers(kind::FINALIZEABLE, &[0, 0x1008]).moved(0, 2, &[[0x1000, 0x2000, 0x20]]);
    m.roots2(&[[0x2008, 1, 0, 0]]).numbers(kind::HANDLE_CREATED, &[0x77, 0x2008]).finished(&[GEN1]);
    m.started(1, &[GEN1]).numbers(kind::FINALIZEABLE, &[0, 0x2008]).moved(0, 2, &[[0x2000, 0x1000, 0x20]]);
    let facts = m.finished(&[GEN0]).facts();
    assert_eq!(facts.finalizable, [(1, "queued", 0x1008), (2, "waiting", 0x2008)]);
    assert_eq!((facts.roots[0].1, facts.handles[0].2), (0x2008, 0x2008));
}

/// Rule 20: a ThreadID is not the id of the OS.
#[test]
fn names_of_threads_go_to_the_thread_of_the_os() {
    let mut m = Making::new();
    m.numbers(kind::THREAD_ASSIGNED, &[7, 101]);
    m.record(0, kind::THREAD_NAME, 0, |out| encode::named(out, &[7], "worker"));
    m.numbers(kind::THREAD_DESTROYED, &[7]);
    m.record(0, kind::THREAD_NAME, 0, |out| encode::named(out, &[7], "nobody's"));
    assert_eq!(m.facts().thread_names, [(101, "worker".to_owned())]);
}

/// Rule 21: objects begin and end at multiples of the pointer's size.
#[test]
fn unaligned_ranges_are_kept_and_reported() {
    for (pointer_size, starts, unaligned) in
        [(8, [0x1000, 0x1104], 1), (4, [0x1000, 0x1104], 0), (4, [0x1002, 0x1104], 1)]
    {
        let mut m = Making::with(&format::Header { pointer_size, ..header() });
        let facts = m.started(0, &[]).surviving(0, 1, &starts.map(|start| [start, 24])).finished(&[]).facts();
        let stated = facts.problems.iter().find(|p| p.code == "unaligned_range").map_or(0, |p| p.count);
        assert_eq!((facts.surviving.len(), stated), (2, unaligned), "{pointer_size} {starts:x?}");
    }
}

/// Rule 22: ranges count whatever mask was asked for.
#[test]
fn ranges_count_under_a_mask_that_does_not_promise_them() {
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x20], ..header() });
    m.suspend(1).surviving(0, 2, &[[0x1000, 24]]).moved(0, 2, &[[0x2000, 0x1800, 24]]);
    let facts = m.resume().facts();
    assert_eq!((facts.survived(), facts.moved.len()), (vec![(0x1000, 24, "exact")], 1));
    assert_eq!(shapes(&facts), [(None, None, false)]);
}

proptest! {
    #[test]
    fn any_surviving_ranges_come_back(rows: Vec<[u64; 2]>) {
        let mut bytes = Vec::new();
        encode::surviving(&mut bytes, rows.iter().copied());
        let mut scratch = decode::Scratch::default();
        let body = decode::body(kind::SURVIVING2, &bytes, &mut scratch).unwrap();
        let Some(decode::Body::Surviving { version: 2, rows: back }) = body else { panic!() };
        prop_assert_eq!(back, &rows[..]);
    }

    #[test]
    fn any_moved_ranges_come_back(rows: Vec<[u64; 3]>) {
        let mut bytes = Vec::new();
        encode::moved(&mut bytes, rows.iter().copied());
        let mut scratch = decode::Scratch::default();
        let body = decode::body(kind::MOVED, &bytes, &mut scratch).unwrap();
        let Some(decode::Body::Moved { version: 1, rows: back }) = body else { panic!() };
        prop_assert_eq!(back, &rows[..]);
    }

    #[test]
    fn any_columns_come_back(rows: Vec<[u64; 4]>) {
        let mut bytes = Vec::new();
        encode::columns(&mut bytes, rows.iter().copied());
        let mut scratch = decode::Scratch::default();
        let body = decode::body(kind::ROOTS2, &bytes, &mut scratch).unwrap();
        let Some(decode::Body::Roots2 { rows: back }) = body else { panic!() };
        prop_assert_eq!(back, &rows[..]);
    }

    #[test]
    fn no_payload_makes_the_decoder_panic(kind: u8, bytes: Vec<u8>) {
        decode::body(kind, &bytes, &mut decode::Scratch::default()).ok();
    }
}
